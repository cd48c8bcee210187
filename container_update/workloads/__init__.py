# SPDX-License-Identifier: Apache-2.0
"""What is known about each kind of workload, and what a pod template references. Pure."""
