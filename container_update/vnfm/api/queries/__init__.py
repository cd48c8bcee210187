# SPDX-License-Identifier: Apache-2.0
"""The query of a GET request for a list: filter, attribute selectors, pages (SOL013 5.2 to 5.4)."""
