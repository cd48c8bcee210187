# SPDX-License-Identifier: Apache-2.0
"""From an uploaded zip to a package that VNFs can be made from."""
