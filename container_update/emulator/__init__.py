"""Servers on loopback that stand in for Kubernetes and OpenStack, for demos and tests.

Each starts in one process and imports nothing else of this project:
:class:`~container_update.emulator.kubernetes.EmbeddedCluster` and
:class:`~container_update.emulator.heat.EmbeddedOpenStack`.
"""
