"""The REST API: one module for each resource. It reads requests and builds responses."""
