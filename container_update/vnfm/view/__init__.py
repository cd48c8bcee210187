"""``/view``: what the page shows, beside the resources of SOL003 and SOL005."""
