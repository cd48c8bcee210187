# SPDX-License-Identifier: Apache-2.0
"""Why a test of ETSI's suite fails that is in ``results.json``: judged one by one.

``python -m tests.etsi.judgements`` prints the tables of ``doc/source/developers/conformance.rst``.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

RESULTS: Mapping[str, Mapping[str, str]] = json.loads(
    Path(__file__).with_name("results.json").read_text(encoding="utf-8")
)
"""What became of each test, by file and name: 'passed', or what it said."""
NOT_OFFERED, SUITE, SERVICE = "not offered", "the suite", "the service"


@dataclass(frozen=True)
class Judgement:
    """Why tests fail.

    :param kind: whose it is.
    :param tests: a pattern of 'file: name: what it said'.
    :param reason: what the specification says.
    """

    kind: str
    tests: str
    reason: str


JUDGEMENTS: tuple[Judgement, ...] = (
    Judgement(
        NOT_OFFERED,
        r".*(ScaleVNFToLevel|OperateVNF|ChangeVNFFlavour|ChangeExternalVNFConnectivity)Task: .*: "
        r"404 != (202|409)",
        "Scale to level, operate, change of the flavour and of the external "
        "connectivity: 404, as for "
        "a task that is not supported for the VNF instance (SOL003, 5.4.6.3.1 to 5.4.11.3.1)",
    ),
    Judgement(
        NOT_OFFERED,
        r"SOL003/VNFPackage.*: (POST|PATCH|DELETE) .*Method not implemented: (409|422) != 405",
        "405 is expected of what SOL003 does not have (10.4.2.3.1, 10.4.3.3.4, 10.4.3.3.5) and "
        "SOL005 has at the same URI: the service offers both (SOL005, 9.4.2.3.1, 9.4.3.3.4, "
        "9.4.3.3.5)",
    ),
    Judgement(
        SUITE,
        r".*ApiVersion: .*: 404 != ",
        "They ask for ``api_version``; it is ``api_versions`` (SOL013, 9.3.2 and 9.3.3)",
    ),
    Judgement(
        SUITE,
        r".*[tT]oo [bB]ig: 200 != 400",
        "A producer refuses a response that is too big, or sends pages, as the service "
        "does (SOL013, "
        "5.4.2.1); the tests of pages pass",
    ),
    Judgement(
        SUITE,
        r".*'application/problem\+json' does not contain 'application/json'",
        "The media type of ProblemDetails is ``application/problem+json`` (SOL013, 6.3)",
    ),
    Judgement(
        SUITE,
        r".*VnfLcmOperationOccurences: .*: 200 != 202",
        "A list of operation occurrences is answered with 200 (SOL003, 5.4.12.3.2)",
    ),
    Judgement(
        SUITE,
        r".*(VnfLcmOperationOccurences|Subscriptions): .*fields.*: 400 != 20[02]",
        "It asks for ``criteria`` and ``objectInstanceIds``, which neither resource has (SOL003, "
        "5.5.2.13 and 5.5.2.16), and expects 400 of another name that it has not (SOL013, 5.3.2)",
    ),
    Judgement(
        SUITE,
        r".*FailOperationTask: .*: 200 != 202",
        "*Fail* is answered with 200 and the occurrence (SOL003, 5.4.16.3.1)",
    ),
    Judgement(
        SUITE,
        r".*TerminateVNFTask: .*Not-Instantiated\): 409 != 202",
        "The termination of an instance that is not instantiated is refused with 409 "
        "(SOL003, 5.4.8.3.1)",
    ),
    Judgement(
        SUITE,
        r".*(an individual subscription: 204|DELETE Individual VNF Package: 204) != 405",
        "``DELETE`` of a subscription, and of a package, is a method of the resource: 204 (SOL003, "
        "5.4.19.3.5; SOL005, 9.4.3.3.5)",
    ),
    Judgement(
        SUITE,
        r".*PATCH Individual VNFInstance Precondition failed: 202 != 412",
        "It sends no ``If-Match``: there is no precondition that could fail (SOL003, 5.4.3.3.4; "
        "RFC 9110, 13.1.1)",
    ),
    Judgement(
        SUITE,
        r".*Not Found: Parent suite setup failed: 404 is not one of \[200\]",
        "404 is expected of the resource that the file's own set-up demands to be there; 404 is "
        "for one that is not (SOL013, 6.4; SOL003, 5.4.5.3.1, 5.4.14.3.1 and 5.4.15.3.1)",
    ),
    Judgement(
        SUITE,
        r".*ScaleVNFTask: GET Scale VNFInstance - Method not implemented: 422 != 405",
        "It sends ``POST``, which the task has (SOL003, 5.4.5.3.1), where it means ``GET`` "
        "(5.4.5.3.2)",
    ),
    Judgement(
        SUITE,
        r".*CancelOperationTask: POST Cancel operation task: .*instantiationState",
        "The answer is the right 202; they look for ``instantiationState`` in an "
        "operation occurrence "
        "(SOL003, 5.5.2.13)",
    ),
    Judgement(
        SUITE,
        r".*onboarding state: 404 != 409",
        "A package that is not onboarded has no ``vnfdId`` (SOL005, 9.5.2.5), so nothing "
        "is at that "
        "URI: 404",
    ),
    Judgement(
        SUITE,
        r".*: 206 != 200",
        "They are for a producer without range requests; those for one with them get 206 (SOL003, "
        "10.4.5.3.2 and 10.4.6.3.2; SOL005, 9.4.5.3.2 and 9.4.7.3.2)",
    ),
    Judgement(
        SUITE,
        r".*: bytes 0-1023/\d+ != bytes=0-1023",
        "``Content-Range`` is ``bytes 0-1023/67244`` (RFC 9110, 14.4), not as in ``Range``",
    ),
    Judgement(
        SUITE,
        r".*: 416 != 200",
        "The ``Range`` of the test before is sent once more, and there is no such range (RFC 9110, "
        "15.5.17)",
    ),
    Judgement(
        SUITE,
        r".*Method not implemented: 405 != 200",
        "The answer is the right 405 (SOL003, 10.4.4.3.5 and 10.4.6.3.5; SOL005, 9.4.4.3.5 and "
        "9.4.7.3.5); it is compared with the 200 of a later request",
    ),
    Judgement(
        SUITE,
        r".*PackageContentViaURI: .*: 406 is not one of \[200\]",
        "The answer is the right 405 (SOL005, 9.4.6.3.5); the later request for JSON accepts "
        "``application/zip`` alone: 406 (SOL013, 6.4)",
    ),
    Judgement(
        SUITE,
        r".*IndividualSubscription: .*: Input is not valid JSON",
        "The header that they set lacks a quotation mark: nothing is sent, and 405 is expected "
        "(SOL003, 10.4.8.3.1 to 10.4.8.3.4; SOL005, 9.4.9.3.1 to 9.4.9.3.4)",
    ),
    Judgement(
        SUITE,
        r".*Subscriptions: Create new VNF Package subscription: AttributeError",
        "The answer is the right 201 (SOL003, 10.4.7.3.1; SOL005, 9.4.8.3.1); they give their "
        "mock server's library headers as a text, where it takes a dictionary",
    ),
    Judgement(
        SUITE,
        r".*Subscriptions: Create duplicated .*: Evaluating expression",
        "The answer is the right 201 (SOL003, 10.4.7.3.1; SOL005, 9.4.8.3.1); an expression of the "
        "suite has no value to compare",
    ),
    Judgement(
        SUITE,
        r".*Subscriptions: Create duplicated .*: 201 != 303",
        "They are for a producer that allows no duplicates; it may allow them (SOL003, 10.4.7.3.1; "
        "SOL005, 9.4.8.3.1)",
    ),
    Judgement(
        SUITE,
        r"SOL003/.*Subscriptions: Get VNF Package Subscriptions with attribute-based filter: "
        r"ValidationError",
        "A list is compared with the schema of one subscription (SOL003, 10.4.7.3.2: an array)",
    ),
    Judgement(
        SUITE,
        r".*with attribute-based filter: (Value of variable|List '@)",
        "They split their variable for a filter of another syntax than SOL013's (5.2.2)",
    ),
    Judgement(
        SUITE,
        r".*VNFPackageContent: Upload VNF Package Content.*: TypeError: Object of type bytes",
        "They encode the bytes of a zip as JSON, which fails before anything is sent; the body "
        "is the zip (SOL005, 9.4.5.3.3)",
    ),
    Judgement(
        SUITE,
        r".*malformed authorization token: 401 != 400",
        "``Bear sometoken`` is no Bearer token, malformed or not: a request without one gets 401 "
        "(SOL013, 6.4)",
    ),
    Judgement(
        SUITE,
        r"SOL00[35]/.*ValidationError: .*'imagePath' is a required property",
        "2.6.1 demands ``imagePath`` of each image (SOL003, 10.5.3.2: 1), also of one that the "
        "VNFD names by a URI and that has no path in the package; since 3.3.1 it is absent there "
        "(0..1), as in the service",
    ),
)


def judged(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Yield file and name of the failed tests that a judgement is about."""
    for file, tests in RESULTS.items():
        for name, said in tests.items():
            if said != "passed" and re.match(judgement.tests, f"{file}: {name}: {said}"):
                yield file, name


def resource_rows() -> Iterator[tuple[str, int, int, int, int]]:
    """Yield each file with its numbers of tests that pass, and that fail, by whose they are."""
    kinds = {test: each.kind for each in JUDGEMENTS for test in judged(each)}
    for file, tests in RESULTS.items():
        counted = Counter(
            "passed" if said == "passed" else kinds[file, name] for name, said in tests.items()
        )
        yield file, counted["passed"], counted[NOT_OFFERED], counted[SUITE], counted[SERVICE]


def tables() -> str:
    """Return the two tables: the counts of each file, and the reasons."""
    lines = [".. list-table::", "   :widths: 60 10 10 10 10", "   :header-rows: 1", ""]
    rows = [("file", "passed", NOT_OFFERED, SUITE, SERVICE), *resource_rows()]
    totals = [sum(row[place] for row in resource_rows()) for place in (1, 2, 3, 4)]
    for first, *counts in [*rows, ("all", *totals)]:
        name = f"``{first}``" if "/" in first else first
        lines += [f"   * - {name}", *(f"     - {count}" for count in counts)]
    lines += ["", ".. list-table::", "   :widths: 8 12 80", "   :header-rows: 1", ""]
    lines += ["   * - number", "     - whose", "     - why they fail"]
    for each in sorted(JUDGEMENTS, key=lambda each: (each.kind, -len(list(judged(each))))):
        lines += [f"   * - {len(list(judged(each)))}", f"     - {each.kind}"]
        lines += textwrap.wrap(
            each.reason, 100, initial_indent="     - ", subsequent_indent="       ",
            break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(tables())
