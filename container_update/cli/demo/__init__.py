"""Demonstrations on the emulators: a scenario for each kind of operation."""
