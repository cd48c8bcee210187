# SPDX-License-Identifier: Apache-2.0
"""Demonstrations on the emulators: a scenario for each kind of operation."""
