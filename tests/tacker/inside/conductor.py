# SPDX-License-Identifier: Apache-2.0
"""Runs ``tacker-conductor``, which looks every half second, not every ten, at what it waits for.

Its workers are processes of their own that import this module too.
"""

import sys

from tacker.cmd import conductor
from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes_common, kubernetes_resource

kubernetes_common.CHECK_INTERVAL = kubernetes_resource.CHECK_INTERVAL = 0.5

if __name__ == "__main__":
    sys.exit(conductor.main())
