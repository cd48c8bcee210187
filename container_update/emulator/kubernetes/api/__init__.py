# SPDX-License-Identifier: Apache-2.0
"""The HTTP side of the API server: paths, verbs, representations, discovery."""
