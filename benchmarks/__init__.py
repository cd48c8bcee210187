# SPDX-License-Identifier: Apache-2.0
"""What the project costs: seconds, processor time, memory, requests. ``python -m benchmarks``."""
