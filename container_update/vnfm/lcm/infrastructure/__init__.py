"""What an operation does in the VIM: in a Kubernetes cluster, or in an OpenStack cloud."""
