"""The upgrade types that this project provides."""

BLUE_GREEN, ROLLING = "Blue-Green", "RollingUpdate"
UPGRADE_TYPES = (BLUE_GREEN, ROLLING)
