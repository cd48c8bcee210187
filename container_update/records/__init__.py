# SPDX-License-Identifier: Apache-2.0
"""What a VNFM records of a VNF: instantiatedVnfInfo, its resources, the pods or servers."""
