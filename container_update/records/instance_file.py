# SPDX-License-Identifier: Apache-2.0
"""A VnfInstance in a JSON file, for those who have no VNFM."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.requests import ChangePackageRequest
from container_update.records.vnf_records import Records

LOG = logging.getLogger(__name__)


def json_file(path: str | Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; PackageError where there is none."""
    try:
        body = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise PackageError(f"{path}: expected a JSON file: {problem}") from error
    if not isinstance(body, dict):
        raise PackageError(f"{path}: expected a JSON object, found another JSON value")
    return body


def write_records(request: ChangePackageRequest, records: Records) -> None:
    """Write the VnfInstance after a change, where the request names a file for it; the change is
    done, also where that is not possible."""
    if request.records is None:
        return
    instance = json_file(request.instance) if request.instance else {}
    text = json.dumps(records.apply_to(dict(instance)), indent=2)
    try:
        Path(request.records).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        path, why = request.records, error.strerror
        LOG.warning("the change is done, but %s cannot be written: %s", path, why)
