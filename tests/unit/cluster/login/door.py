# SPDX-License-Identifier: Apache-2.0
"""An API server on loopback that lets in whom it knows, by token or by client certificate."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme
import yaml


class Door:
    """Use it as a context manager. ``known`` are the tokens and the names in certificates that are
    let in; ``asked`` are all that came, in their order."""

    def __init__(self, *known: str) -> None:
        self.known = set(known)
        self.asked: list[str] = []
        self.authority = trustme.CA()
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                who = _who(self)
                door.asked.append(who)
                is_known = who in door.known
                metadata = {"name": "p", "uid": "u", "resourceVersion": "7"}  # of an object too
                body: Any = {"metadata": metadata, "items": []}
                if not is_known:
                    body = {"kind": "Status", "code": 401, "reason": "Unauthorized"}
                elif "watch=true" in self.path:
                    body = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}
                data = json.dumps(body).encode() + b"\n"
                self.send_response(200 if is_known else 401)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        self.authority.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_text(self) -> str:
        return self.authority.cert_pem.bytes().decode()

    def certificate(self, name: str) -> tuple[str, str]:
        """Return a client certificate with that name, and its key, as PEM."""
        issued = self.authority.issue_cert(f"{name}.test", common_name=name)
        chain = "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)
        return chain, issued.private_key_pem.bytes().decode()

    def kubeconfig(self, folder: Path, **user: Any) -> str:
        """Write a kubeconfig with this user into the folder; return its path."""
        authority = base64.b64encode(self.ca_text.encode()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        context = {"cluster": "c", "user": "u", "namespace": "ns"}
        content = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": context}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }
        path = folder / "config"
        path.write_text(yaml.safe_dump(content))
        return str(path)

    def __enter__(self) -> Door:
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _who(handler: BaseHTTPRequestHandler) -> str:
    certificate: Any = handler.connection.getpeercert() or {}  # type: ignore[attr-defined]
    names = dict(pair for part in certificate.get("subject", ()) for pair in part)
    token = handler.headers.get("Authorization", "").partition(" ")[2]
    return token or str(names.get("commonName", "nobody"))
