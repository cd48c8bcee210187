# SPDX-License-Identifier: Apache-2.0
"""What a VNF manager loads: adapters that translate, nothing else."""
