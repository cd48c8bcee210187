# SPDX-License-Identifier: Apache-2.0
"""The distribution of the plugin: its entry point is all that container-update looks for."""

from setuptools import setup

setup(
    name="container-update-argo-rollouts",
    version="1.0",
    py_modules=["container_update_argo_rollouts"],
    entry_points={
        "container_update.workloads": ["Rollout = container_update_argo_rollouts:Rollout"]
    },
)
