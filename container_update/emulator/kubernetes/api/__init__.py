"""The HTTP side of the API server: paths, verbs, representations, discovery."""
