# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan on a cluster, undo it, or go on with one that was interrupted."""
