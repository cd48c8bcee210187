# SPDX-License-Identifier: Apache-2.0
"""The kinds of workload that Kubernetes has, one file each. Listed in ``workloads.registry``."""
