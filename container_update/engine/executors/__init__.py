# SPDX-License-Identifier: Apache-2.0
"""How each kind of step gets to the cluster, and back."""
