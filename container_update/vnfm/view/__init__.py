# SPDX-License-Identifier: Apache-2.0
"""``/view``: what the page shows, beside the resources of SOL003 and SOL005."""
