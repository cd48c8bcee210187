# SPDX-License-Identifier: Apache-2.0
"""The REST API: one module for each resource. It reads requests and builds responses."""
