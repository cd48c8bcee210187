"""What the project costs: seconds, processor time, memory, requests. ``python -m benchmarks``."""
