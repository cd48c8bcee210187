# SPDX-License-Identifier: Apache-2.0
"""Runs tests of Tacker's, whose names come as lines, and answers each with a line of JSON.

The tests read their configuration from a path that is fixed in them; they get the given one.
"""

import json
import os
import sys
import time
import traceback
import unittest

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a test prints goes to standard error

from oslo_config import cfg  # noqa: E402 (it may print)

call = cfg.ConfigOpts.__call__


def with_given_file(self, args=None, **more):
    """Parse the given configuration in place of /etc/tacker/tacker.conf."""
    given = [sys.argv[1] if each == "/etc/tacker/tacker.conf" else each for each in args or []]
    return call(self, args=given, **more)


cfg.ConfigOpts.__call__ = with_given_file


def run(name):
    """Run one test; return its outcome, its seconds, and why it failed."""
    result, began = unittest.TestResult(), time.monotonic()
    try:
        unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    except Exception:  # noqa: BLE001 (a module that cannot be imported is a result)
        result.errors.append((None, traceback.format_exc()))
    seconds = time.monotonic() - began
    failed, skipped = [*result.errors, *result.failures], result.skipped
    outcome = "failed" if failed else "skipped" if skipped else "passed"
    reasons = [text for _, text in [*failed, *skipped]]
    return {"outcome": outcome, "seconds": seconds, "reason": "\n".join(reasons)}


for line in sys.stdin:
    answers.write(json.dumps(run(line.strip())) + "\n")
    answers.flush()
