"""Argo Rollouts' Rollout: a kind of workload from elsewhere, and a controller for the emulator."""
