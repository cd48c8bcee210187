# SPDX-License-Identifier: Apache-2.0
"""Whether the functional tests run on a real API server."""

from __future__ import annotations

import os

REAL = os.environ.get("CONTAINER_UPDATE_KUBECONFIG")
"""The administrator's kubeconfig of a real API server; None: on the embedded cluster."""

SETTLE_SECONDS = 60.0 if REAL else 10.0
"""How long what has been asked for may take to become true: real controllers and kubelets work in
steps of seconds."""
