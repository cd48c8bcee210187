# SPDX-License-Identifier: Apache-2.0
"""Random histories of two hosts on one VNF."""
