"""Move a running CNF to a new package, restarting no more than the change touches.

Start reading in :mod:`container_update.operations.update`.
"""
