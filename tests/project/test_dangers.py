# SPDX-License-Identifier: Apache-2.0
"""Dangerous constructs that the code avoids, and the few exceptions, each with its reason."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DANGERS: dict[str, tuple[str, dict[str, str]]] = {
    "reads pickles": (
        r"pickle\.loads?\(|Unpickler|shelve|marshal\.load",
        {
            "container_update/drivers/v2_process.py": "Tacker's own request, from its own process",
            "container_update/engine/scripts/runner.py": "from its parent process",
            "container_update/vnfm/lcm/mgmt_drivers/driver_answer.py": "a script's answer, plain "
            "values only",
        },
    ),
    "runs a program": (
        r"\b(subprocess|multiprocessing|ProcessPool\w*|create_subprocess\w*)\b|\bpty\."
        r"|os\.(system|exec|spawn|popen|posix_spawn|fork)",
        {
            "container_update/engine/scripts/supervisor.py": "the program that its parent names",
            "container_update/model/programs.py": "all programs, by one table, without a shell",
        },
    ),
    "starts a program that is in no table": (
        r"(?<!class )\bProgram\(",
        {"container_update/model/programs.py": "the table"},
    ),
    "runs a shell": (r"shell\s*=\s*True|os\.system|os\.popen|getoutput|/bin/(ba)?sh", {}),
    "runs text as code": (
        r"(?<![\w.])(eval|exec|compile|__import__)\(",
        {},
    ),
    "reads what another client may have written": (
        r"packing import .*\bunpack\b|def unpack\(data",
        {
            "container_update/model/packing.py": "defines it, within limits",
            "container_update/cluster/operation_codec.py": "operation_schema.py says which",
            "container_update/cluster/instance_record.py": "operation_schema.py says which",
            "container_update/openstack/record.py": "by a holder of the key",
        },
    ),
    "imports by a name that it was given": (
        r"import_module\(|spec_from_file_location|run_path|run_module",
        {
            "container_update/__init__.py": "one of the names of its own table",
            "container_update/cli/main.py": "one of the names of its own table",
            "container_update/drivers/v2_process.py": "one of the names of its own table",
            "container_update/engine/scripts/runner.py": "the script that its parent "
            "was asked to run",
        },
    ),
    "reads YAML into any Python object": (
        r"yaml\.(load|load_all|unsafe_load|full_load)\(",
        {"container_update/emulator/heat/hot.py": "with a loader made from the safe one"},
    ),
    "reads YAML of others without limits": (
        r"yaml\.(\w*load\w*|compose\w*)\(",
        {
            "container_update/emulator/demo/login_files.py": "a file of the demo's own",
            "container_update/emulator/heat/hot.py": "on loopback, from who has its token",
            "container_update/emulator/kubernetes/api/server.py": "on loopback, from who has its "
            "token",
            "container_update/vnfm/commands/demo.py": "a sample",
        },
    ),
    "leaves certificates unverified": (
        r"verify_ssl\s*=\s*|CERT_NONE|_create_unverified|check_hostname\s*=|verify\s*=\s*(False|not)"
        r"|disable_warnings|InsecureRequestWarning",
        {
            "container_update/cluster/client.py": "where insecure_skip_tls_verify says so",
            "container_update/cluster/login/client_configuration.py": "where "
            "insecure_skip_tls_verify says so",
            "container_update/cluster/oidc.py": "where insecure_skip_tls_verify says so",
            "container_update/openstack/client.py": "where the option or clouds.yaml says so",
        },
    ),
    "makes temporary files that others can read or foresee": (
        r"mktemp\(|NamedTemporaryFile|gettempdir|/tmp\b|chmod\([^)]*0o?[0-7]*[4567][0-7]?\b",
        {},
    ),
    "unpacks archives": (r"extractall|\.extract\(|unpack_archive|tarfile", {}),
    "listens beyond loopback": (r"""['"]0\.0\.0\.0['"]|['"]::['"]""", {}),
    "passes over an error": (r"except\s*:|except BaseException:\s*pass", {}),
}
"""The patterns, and the files in which each is allowed, with the reason."""


@functools.cache
def occurrences(pattern: str) -> dict[str, list[str]]:
    hits_by_file: dict[str, list[str]] = {}
    for path in sorted((ROOT / "container_update").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        hits = [
            f"{n}: {line.strip()}" for n, line in enumerate(lines, 1) if re.search(pattern, line)
        ]
        if hits:
            hits_by_file[path.relative_to(ROOT).as_posix()] = hits
    return hits_by_file


@pytest.mark.parametrize(("pattern", "allowed"), DANGERS.values(), ids=DANGERS)
def test_no_module_has_a_dangerous_construct(pattern: str, allowed: dict[str, str]) -> None:
    hits_by_file = occurrences(pattern)
    assert {path: hits for path, hits in hits_by_file.items() if path not in allowed} == {}


@pytest.mark.parametrize(("pattern", "allowed"), DANGERS.values(), ids=DANGERS)
def test_every_exception_is_still_needed(pattern: str, allowed: dict[str, str]) -> None:
    assert set(allowed) - set(occurrences(pattern)) == set()
