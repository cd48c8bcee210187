"""What is known about each kind of workload, and what a pod template references. Pure."""
