# SPDX-License-Identifier: Apache-2.0
"""Exec credential plugins: programs that a kubeconfig names, which fetch a login.

As kubectl runs them, but within limits of time and size: a plugin that hangs would otherwise be
waited for without an end, with a person before the terminal or without. No message quotes what one
has printed to standard output, which is a credential.

Source: Kubernetes documentation, "Authenticating", "client-go credential plugins", and the API
reference of client.authentication.k8s.io/v1.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from container_update.cluster.kubeconfig import Entry
from container_update.model import programs
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.schema import TEXT, ListOf, Text, complete

MAX_BYTES = 256 * 1024
"""Of what a plugin may print."""

ASKING_SECONDS = 900.0
"""For how long a plugin may ask on the terminal: as long as the code of a device's login
usually counts."""

_EXTENSION = "client.authentication.k8s.io/exec"
_SHOWN = 300
_CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
_EXEC = complete(
    {"args": ListOf(TEXT), "env": ListOf(complete(name=TEXT, value=TEXT))},
    apiVersion=Text("client.authentication.k8s.io/v1", ".+"),
    command=Text("a program", ".+"),
)


def fetch(user: Entry, cluster: Entry, seconds: float) -> dict[str, str]:
    """Run the plugin of a user; return the fields that the user would have without one."""
    wanted, place = user.body["exec"], f"{user.place}.exec"
    if (wrong := _EXEC.first_violation(wanted)) is not None:
        raise ClusterError(f"{place}.{wrong}: correct the file")
    mode, terminal = wanted.get("interactiveMode"), os.isatty(0)
    if mode == "Always" and not terminal:
        raise ClusterError(f"{place}: {wanted['command']} asks on a terminal, and there is none")
    asks = terminal and mode != "Never"
    spec: Json = {"interactive": asks}
    if wanted.get("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": wanted["apiVersion"], "kind": "ExecCredential", "spec": spec}
    variables = {item["name"]: item["value"] for item in wanted.get("env") or ()}
    program = wanted["command"]  # a path is relative to the kubeconfig, a name is looked up in PATH
    program = str(user.file.parent / program) if os.sep in program else program
    try:
        output = _run(
            [program, *(wanted.get("args") or ())],
            {**variables, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            max(seconds, ASKING_SECONDS) if asks else seconds,
            asks=asks,
        )
        return _login(output, wanted["apiVersion"])
    except OSError as error:
        hint = str(wanted.get("installHint") or "install it, or correct the file").strip()
        reason = f"{wanted['command']} cannot be started: {error.strerror}: {hint}"
        raise ClusterError(f"{place}: {reason}") from error
    except ValueError as error:
        raise ClusterError(
            f"{place}: expected a login from {wanted['command']}: {error}: run it by hand to see "
            "what is missing"
        ) from None


def _cluster_info(cluster: Entry) -> Json:
    body = cluster.absolute()
    info: Json = {name: body[name] for name in _CLUSTER if name in body}
    authority = body.get("certificate-authority-data")
    if not authority and "certificate-authority" in body:
        authority = _base64(Path(body["certificate-authority"]).read_bytes())
    if authority:
        info["certificate-authority-data"] = authority
    for item in body.get("extensions") or ():
        if isinstance(item, Mapping) and item.get("name") == _EXTENSION:
            info["config"] = item.get("extension")
    return info


def _run(command: list[str], variables: Mapping[str, str], seconds: float, *, asks: bool) -> bytes:
    """Return what a program prints; *asks*: it may ask on the terminal."""
    with programs.start(
        programs.EXEC_PLUGIN,
        command,
        variables,
        stdin=None if asks else programs.DEVNULL,
        stdout=programs.PIPE,
        stderr=None if asks else programs.PIPE,
        start_new_session=not asks,
    ) as process:
        end = time.monotonic() + seconds
        try:
            streams = (process.stdout, process.stderr)
            output, errors = programs.read_output(streams, end, MAX_BYTES)
            status = process.wait(max(0.0, end - time.monotonic()))
        except (TimeoutError, programs.TimeoutExpired):
            _kill(process, group=not asks)
            option = "" if asks else " (option request_timeout)"
            raise ValueError(f"it did not end within {seconds:g} seconds{option}") from None
        except BaseException:
            _kill(process, group=not asks)
            raise
    if status:
        raise ValueError(": ".join([f"it ended with status {status}", *_last_line(errors)]))
    return output


def _kill(process: programs.Popen[bytes], *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _last_line(errors: bytes) -> list[str]:
    """Return the last line of standard error, where a plugin says why it failed; [] without one."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    shown = "".join(c if c.isprintable() else "\ufffd" for c in lines[-1]) if lines else ""
    return [shown[:_SHOWN]] if shown else []


def _login(output: bytes, version: str) -> dict[str, str]:
    """Return the login of an ExecCredential; no message quotes it."""
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        raise ValueError("it prints no JSON") from None
    if not isinstance(answer, Mapping) or answer.get("apiVersion") != version:
        raise ValueError(f"it prints no ExecCredential of {version}")
    status = answer.get("status")
    status = status if isinstance(status, Mapping) else {}
    names = ("token", "clientCertificateData", "clientKeyData")
    values = (status.get(name) for name in names)
    token, certificate, key = (value if isinstance(value, str) else "" for value in values)
    if bool(certificate) != bool(key) or not (token or certificate):
        raise ValueError("status has neither a token nor a client certificate with its key")
    login = {"token": token} if token else {}
    if certificate:
        login["client-certificate-data"] = _base64(certificate.encode())
        login["client-key-data"] = _base64(key.encode())
    return login


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
