# SPDX-License-Identifier: Apache-2.0
"""Coordination scripts of a package: when they run, in which process, and what they read."""
