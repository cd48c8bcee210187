"""The REST API: a module for each resource. It reads requests, asks, and shows; nothing else."""
