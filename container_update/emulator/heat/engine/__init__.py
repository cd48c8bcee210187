# SPDX-License-Identifier: Apache-2.0
"""Heat's convergence engine: brings stacks to what their templates say."""

from container_update.emulator.heat.engine.traversals import Engine

__all__ = ["Engine"]
