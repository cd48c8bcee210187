"""HTTP apart from the resources: authentication, limits, problem details, health, logs."""
