"""A coordination script that asks an external manager over SOL002's LCM Coordination interface.

The VNF's own manager decides whether a change may go on. Source: ETSI GS NFV-SOL 002, clause 10,
"VNF LCM Coordination interface": POST to create a coordination, then either the result at once
(201), or 202 and a Location to ask until it is there.

Put this file into the new package and name it as one of the scripts of the request; it needs no
class and nothing but Python. Where the manager is, the request says too:

    "lcm-operation-coordinate-new-vnf": "Scripts/ask_manager.py",
    "lcmcoord-url": "https://manager.example/"
"""

from __future__ import annotations

import json
import pickle
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

PATH = "lcmcoord/v1/coordinations"
PATIENCE_SECONDS = 240
POLL_SECONDS = 1.0
GO_ON = "CONTINUE"


class Manager:
    """The API producer of SOL002's LCM Coordination interface."""

    def __init__(self, root: str) -> None:
        if urllib.parse.urlsplit(root).scheme not in ("http", "https"):
            raise SystemExit("lcmcoord-url: expected a http or https URL in additionalParams")
        self.root = root.rstrip("/") + "/"
        self.deadline = time.monotonic() + PATIENCE_SECONDS

    def coordinate(self, body: dict[str, Any]) -> str:
        """Return the manager's result: CONTINUE, ABORT or CANCELLED."""
        status, headers, answer = self._ask("POST", self.root + PATH, body)
        location = urllib.parse.urljoin(self.root, headers.get("Location", ""))
        while status == 202:
            self._wait(headers)
            status, headers, answer = self._ask("GET", location)
        return str(answer.get("coordinationResult"))

    def _ask(
        self, method: str, url: str, body: dict[str, Any] | None = None
    ) -> tuple[int, Any, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Version": "1.0.0"}
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                    content = answer.read()
                    return answer.status, answer.headers, json.loads(content or b"{}")
            except urllib.error.HTTPError as error:
                if error.code != 503:  # busy: the standard has it ask again
                    what = f"{method} {url}: the manager answered {error.code}"
                    raise SystemExit(what) from error
                self._wait(error.headers)
            except urllib.error.URLError as error:
                raise SystemExit(f"{method} {url}: {error.reason}") from error

    def _wait(self, headers: Any) -> None:
        asked = headers.get("Retry-After", "")
        seconds = float(asked) if asked.isdigit() else POLL_SECONDS
        if time.monotonic() + seconds > self.deadline:
            raise SystemExit(f"the manager did not decide within {PATIENCE_SECONDS} s")
        time.sleep(seconds)


def main() -> None:
    """Ask; end with status 0 only if the manager says that the change goes on."""
    context = pickle.load(sys.stdin.buffer)  # noqa: S301, from the process that runs this one
    vnf = context["coordination"]
    params = context["request"].get("additionalParams") or {}
    result = Manager(str(params.get("lcmcoord-url", ""))).coordinate(
        {
            **context["LcmCoordRequest"],  # which operation of which instance, and their links
            "coordinationActionName": f"coordinate_{vnf['vnf']}_vnf",
            "inputParams": {
                "vduId": vnf["vdu_id"],
                "oldResource": vnf["old_resource"],
                "newResource": vnf["new_resource"],
            },
        }
    )
    print(f"the manager says {result}")
    if result != GO_ON:
        raise SystemExit(f"the manager does not let the change go on: {result}")


if __name__ == "__main__":
    main()
