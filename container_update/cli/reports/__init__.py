# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes, as text and JSON or as an HTML page."""
