# SPDX-License-Identifier: Apache-2.0
"""Make and check packages."""
