"""ChangeCurrentVNFPackage (ETSI GS NFV-SOL 003): Blue-Green and rolling update.

Start with ``change``, which tells the story; ``strategy`` is what each way of changing implements.
"""
