# SPDX-License-Identifier: Apache-2.0
"""The live resources of a VNF instance, for readers."""
