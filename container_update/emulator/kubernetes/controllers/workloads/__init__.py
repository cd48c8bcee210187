"""The controllers of the kinds that run pods."""
