# SPDX-License-Identifier: Apache-2.0
"""Argo Rollouts' Rollout: a third-party kind of workload, and a controller for the emulator."""
