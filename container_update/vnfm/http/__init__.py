"""The HTTP side apart from SOL003: authentication, limits, problem details, metrics."""
