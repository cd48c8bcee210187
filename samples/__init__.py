"""The samples: packages, requests, scripts and roles to begin with."""
