# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan of stacks, and undo it."""
