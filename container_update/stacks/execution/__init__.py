"""Carry out a plan of stacks, and undo it."""
