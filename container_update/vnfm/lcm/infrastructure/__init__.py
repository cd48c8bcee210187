# SPDX-License-Identifier: Apache-2.0
"""What an operation does in the VIM: in a Kubernetes cluster, or in an OpenStack cloud."""
