# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API server: client, retries, watches, lease and journal; execution of plans."""
