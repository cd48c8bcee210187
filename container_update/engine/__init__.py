# SPDX-License-Identifier: Apache-2.0
"""Carry out a goal: plan it, write it to the cluster, undo it, or go on after an interruption.

Read :mod:`container_update.engine.run` first.
"""
