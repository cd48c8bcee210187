# SPDX-License-Identifier: Apache-2.0
"""ETSI's conformance tests: each that fails is judged, and the page has the counts.

``python -m tests.etsi.run`` runs them; these tests read what it recorded.
"""

from __future__ import annotations

import re
from collections import Counter

from tests.etsi.judgements import JUDGEMENTS, RESULTS, judged, tables
from tests.project.test_conformance import PAGE


def test_each_test_that_fails_has_one_judgement() -> None:
    failed = {(file, name) for file in RESULTS for name, said in RESULTS[file].items()
              if said != "passed"}  # fmt: skip
    judgements = Counter(test for each in JUDGEMENTS for test in judged(each))
    assert {test: judgements[test] for test in failed} == dict.fromkeys(failed, 1)


def test_each_judgement_is_about_a_test() -> None:
    assert [each.reason for each in JUDGEMENTS if not list(judged(each))] == []


def test_each_judgement_names_the_clause_that_decides() -> None:
    clause = re.compile(r"SOL0(03|05|13)[^;:)]*\d+\.\d+|RFC 9110, \d+")
    assert [each.reason for each in JUDGEMENTS if not clause.search(each.reason)] == []


def test_the_page_has_what_the_results_and_the_judgements_say() -> None:
    assert tables() in PAGE
