# SPDX-License-Identifier: Apache-2.0
"""Old package, new package and live objects to a plan. Pure: neither network nor files."""
