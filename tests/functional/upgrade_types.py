# SPDX-License-Identifier: Apache-2.0
"""The upgrade types that this project provides."""

BLUE_GREEN, CANARY, ROLLING = "Blue-Green", "Canary", "RollingUpdate"
UPGRADE_TYPES = (BLUE_GREEN, ROLLING)
"""On every VIM."""
