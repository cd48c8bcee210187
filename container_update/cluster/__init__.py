"""The Kubernetes API server: client, retries, watches, lease and journal; execution of plans."""
