"""The upgrade types that this project brings along."""

BLUE_GREEN, ROLLING = "Blue-Green", "RollingUpdate"
UPGRADE_TYPES = (BLUE_GREEN, ROLLING)
