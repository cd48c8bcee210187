# SPDX-License-Identifier: Apache-2.0
"""Emulated Kubernetes and OpenStack APIs on loopback, for demos and tests.

Each runs within the process that starts it. Nothing else of this project is imported here. See
:class:`~container_update.emulator.kubernetes.EmbeddedCluster` and
:class:`~container_update.emulator.heat.EmbeddedOpenStack`.
"""
