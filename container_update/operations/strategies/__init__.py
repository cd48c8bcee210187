"""The ways to change a package: Blue-Green and rolling, on Kubernetes and on OpenStack."""
