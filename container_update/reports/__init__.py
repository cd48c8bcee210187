# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes, as text, JSON and Markdown."""
