# SPDX-License-Identifier: Apache-2.0
"""The reader of YAML against ``kubectl create --dry-run=client``, document by document.

Each document is a ConfigMap with one more field, which ``kubectl`` hands through unchecked. It
reads a folder of them in one call and goes on after one that it refuses.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from container_update import PackageError
from tests import needs
from tests.internals.core import manifests

pytestmark = needs.KUBECTL

NAME = "an-object"
HEAD = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {NAME}}}\n"
JSON_HEAD = f'"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{NAME}"}}'

Reading = str
"""The objects as JSON with sorted keys, or REFUSED and the message."""
REFUSED = "refused: "

# --- what is read differently on purpose ----------------------------------------------------------

STRICTER = {
    "a fraction as a key, which Go rounds": ("x: {1.5: a}", "a key must be text"),
    "a big number as a key": ("x: {1e16: a}", "a key must be text"),
    "infinity as a key": ("x: {.inf: a}", "JSON has no infinity"),
    "a key with a tab, which no field has": ("x: {'a\tb': c}", "without control characters"),
    "a key that is longer than any name": (f"x:\n  ? {'a' * 1025}\n", "at most 1024 characters"),
    "base64 as text": ("x: !!binary aGk=", "!!binary cannot be sent as JSON"),
    "a tag that JSON has no value for": ("x: !mine a", "a tag that JSON has no value for"),
    "a set": ("x: !!set {a}", "a tag that JSON has no value for"),
    "y as a boolean": ("x: !!bool y", "fits the tag !!bool"),
    "an object after an end: kubectl drops it": ("...\n" + HEAD, "expected <document start>"),
    "a second byte order mark": ("---\n\ufeff" + HEAD, 'expected a .* object with a "kind"'),
    "a separator that is text in YAML": ("---# c\n" + HEAD, "could not find expected ':'"),
    "a colon at the end of a flow": ("x: [a:]", "found unexpected ':'"),
}  # fmt: skip
"""What we refuse and ``kubectl`` reads: the text, after HEAD if it is not JSON, and our message."""

LOOSER = {
    "a tag that lies about a time": ("x: !!timestamp a", "as a !!timestamp"),
    "a version of YAML": ("---\n%YAML 1.2\n---\n" + HEAD, "found incompatible|<document start>"),
    "a directive": ("---\n%TAG ! !a\n---\n" + HEAD, "did not find expected <document start>"),
    "an end alone": ("---\n...\n---\n" + HEAD, "did not find expected node content"),
    "JSON's escape of a slash": (r'x: "\/"', "found unknown escape character"),
    "a document on the separator's line": ("--- ~\n", "invalid Yaml document separator"),
    "a document that is no object": ("---\nevent: {}\n", "Object 'Kind' is missing"),
    "a document that is text or a list": ("---\n[]\n", "cannot unmarshal (array|string) into"),
    "a separator after several JSON values": (
        f"{{{JSON_HEAD}}}{{{JSON_HEAD}}}\n---\n{{{JSON_HEAD}}}",
        "invalid character '-'",
    ),
    "YAML that begins like JSON": (f"{{{JSON_HEAD}, }}", "json: offset .* invalid character"),
}
"""What ``kubectl`` refuses and we read, which does no harm: the text, and its message. A newer one
may read it too: 1.36 does so with the last."""

OTHERWISE = {
    "y and n are text, as to Tacker": ("x: [y, N]", ["y", "N"], [True, False]),
    "a merge does not overwrite, as in YAML and to Tacker": (
        "x: {a: 1, <<: {a: 2}}", {"a": 1}, {"a": 2},
    ),
}  # fmt: skip
"""The text after HEAD, what we read, and what ``kubectl`` reads."""

# --- the documents --------------------------------------------------------------------------------

BARE = r"""
yes no on off Yes NO On OFF true TRUE True false tRUE ~ null Null NULL nUll "" '' = << ! !!str
0644 0o644 0O644 -0644 +0644 0x1A4 0X1a4 -0x10 0b11 0B11 -0b11 +0b1 0b-1 0b+1 0B-1 -0b-1 0x-1 0o-7
420 1_000 +7 -7 08 09 0 -0 +0 00 0_7 1_ 1__0 0x_1 0x1_ 0b_1 0_ _1 1,000 0o 0o8 0b2 0x 0xZZ 0-1 -0o17
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 123456789012345678901 1000000000000000000000
0777777777777777777777 0o7777777777777777777777 0x7FFFFFFFFFFFFFFF 0xFFFFFFFFFFFFFFFF
-0x8000000000000000 -0x8000000000000001 0x1FFFFFFFFFFFFFFFF 9007199254740993 9007199254740993.0
1.0 1.5 .5 -.5 +.5 1. 1.e3 1e3 1E3 1e+3 1e-3 1.5e300 1e400 -1e400 1e21 1e20 1e15 1e-7 1e-6 0.1 0.0
-0.0 1_0.5 1.5_5 1e1_0 12e03 00.5 01.5 08.5 0e0 4.9e-324 1e-400 1.7976931348623157e308 100000.0 1e6
.inf -.inf +.inf .Inf .INF .nan .NaN .NAN inf nan Infinity NaN 0x1p4 1e 1e+ e3 .e3 . .. - -- +
1:30 190:20:30 1:30.5 1.2.3 2026-01-01 2026-01-01T00:00:00Z 2026-1-1 2001-12-14t21:59:43.10-05:00
a:b a#b @a `a %a &a *a |x >x ? : a: ] } , [ { -a ?a :a a]b a}b a{b a%b a@b http://a:1/b 1.1.1.1 1a
"""
TAGGED = """
12|yes|''|2026-01-01|[a] int:12|'12'|0644|a|1.0|1e3|'0x10' float:1|1.5|'1'|a|0x10|.inf|1_0.5
bool:yes|'on'|a null:~|''|a|1 map:{a: 1}|[1] seq:[1]|{a: 1} timestamp:2026-01-01 merge:<< value:=
"""
UNUSUAL = [
    "\u00e9", "\U0001f600", "\u2028", "a\u2028b", "a\u0085b", "\u0661\u0662", "\ufeff", "a\ufeffb",
    "a\u00a0b", "! 12", "! yes", "!local [a]", "!<tag:yaml.org,2002:str> 1", "!!str",
    "!!str &x a", "&x !!int 1", "<a&b>", r'"\x41"', r'"\u00e9"', r'"\U0001F600"', r'"\q"', r'"\ "',
    r'"\e\_\N\L\P\0\a\b\t\n\v\f\r\"\\"', r'"\ud800"', r'"\uD83D\uDE00"', r'"\u0000"', r'"\uffff"',
    r'"\x80"', '"\x7f"', '"\x80"', '"\ufffd"', '"a\\\n  b"', '"a \\\n   \\ b"', '"\\\n  a"', '"a\\',
    '"a\n\n  b"', "'a\n\n   b'", "'it''s'", '"a\t\n b"', "'a\tb'", '"a\u2028b"', "'a\u2029b'",
    '"a\u0085b"', '"a\u2028\u2028b"', '"a\n\u2028 b"', "'a\u2028   b'", '"\ufeffa"', '"a\r\n b"',
    '"a\rb"', "'<<'", '"', "'a", "a\n  b", "a\n\n  b", "a\n\n\n   b\n\n", "a #c\n  b",
    "a\n  #c\n  b",
    "a\n  b: c", "a\tb", "a\t", "a \t #c", "\ta", "\t- b", "a\n\tb", "a\n \tb", "a\n  \tb",
    "a\u2028 b",
    "a\u0085  b", "- a", "-\ta", "- \ta", "- - a\n    - b", "\n  - a\n  - b", "\n- a\n- b",
    "\n  -\n    a", "\n  - \n  - ~", "\n    a: 1\n    b:\n      c", "[a,\n b]", "[a,\nb]",
    "{a: 1,\nb: 2}", "{a, b}", "{a: , b}", "[a: 1]", "[a,]", "{a: 1,}", "[,]", "[a b, c]", "{a:1}",
    '{"a":1}', '{"a": 1,\t"b": 2}', "[\ta]", "{? a : b}", "{? a}", "{: a}", "[? a : b]", "[]", "{}",
    "[[]]", "[{}]", "? a", "? a\n  : v", "[a]: b", "{[a]: b}", "[a, #c\n b]", "[a #c\n, b]",
    "[a\n,b]",
    "{a: http://b}", "[a:b]", "{a:b}", "{a:b: c}", "[a::b]", "[:a]", "{:a: 1}", "[?a]", "{?a: 1}",
    "[-a]", "[-]", "[a, - b]", '"a" b', "a: b: c", "{a: &x 1, b: *x}", "&x a", "&x", "&x\n",
    "&x &y a",
    "*x", "[&x a, *x]", "&x [*x]", "{&x a: *x}", "[&x a, {*x : b}]", "[&\u00e9 a, *\u00e9]",
    "[&a-b a, *a-b]", "[&a.b a, *a.b]", "[&a:b a, *a:b]", "[&1 a, *1]", "{a: &x 1, b: &x 2, c: *x}",
    "|a", "| a", "|#", "| #c\n   a", "|-1\n  a", "|1-\n   a", "|0\n  a", "|10\n a", "|-+\n a",
    "{1: a, 0644: b, 09: c, 1.0: d, on: e, ~: f}", "{'': a}", "{2026-01-01: a}", "{-1: a}",
    "{1e3: a, 0x10: b, -0.0: c, 100000.0: d}", "{9223372036854775808: a}", "{!!str 1: a}",
    "{<<: {a: 1}, a: 2}", "{<<: [{a: 1, b: 1}, {a: 2, c: 2}]}", "{<<: {a: 1}, <<: {a: 2, b: 2}}",
    "{<<: []}", "{<<: ~}", "{<<: 1}", "{<<: [1]}", "{!!merge <<: {a: 1}}", "{!!str <<: {a: 1}}",
    "{<<: {a: {b: 1}}, a: {c: 2}}", "[&x {a: 1}, &y {<<: *x, b: 2}, {<<: *y, c: 3}]",
    "&x {a: 1, <<: *x}", "{a: <<}", "{a: 1, b: 2, a: 3}", "{a: {b: 1, c: 2}, a: {b: 3}}",
    "{a: [1], a: ~}",
]  # fmt: skip
PLACES = (
    "x: {}\n", "x: {}", "x:\n  k: {}\n", "x:\n  k: {}\n  l: m\n", "x: [{}]\n", "x:\n- {}\n",
    "x: {{k: {}}}", "x: {{{}: v}}", "x: {{{}}}", "x:\n  {}: v\n", "x:\n  ? {}\n  : v\n",
)  # fmt: skip

BODIES = (
    "", "a", "a\nb", "a\n\nb", "a\n b\nc", "\na", "\n\n a\n", "a\n\n", "a\n\n\n", " a\nb", " a\n b",
    "a \nb\t", "a\n\tb", "\ta", "a\n \n", "a\n   ", "a #c", "#c", "- a", "a: b", "---", "...",
    "a\u2028b", "a\u0085b", "a\u2028", "\u2028a", "a\n\n b\n\nc\n\n\n d", "a\n*\n b", "\n \na",
    "  \n a",
    "a\n\n\n b", "\ufeffa", "a\u2029\u2029b\nc", "\u0085",
)  # fmt: skip
ENDS = (
    "", "\n", "\n\n", "\n\n\n", "\n  ", "\n   \n", "\n# c", "\n  # c\n", "\n...\n", "\n---\n",
    "\n\n---", "\n  l: m\n", "\n\n  l: m", "\r", "\r\n", " ", "\t",
)  # fmt: skip
BLOCKS = [
    f"x:\n  k: {header}{comment}\n    " + body.replace("\n", "\n    ") + end
    for header in map("".join, itertools.product("|>", ("", "-", "+"), ("", "1", "2", "3")))
    for comment in ("", " # c", "\t")
    for body in BODIES
    for end in ENDS
]

DOCUMENTS = (
    "", "---\n", "---", "---\n---\nHEAD", "---\nHEAD", "--- \nHEAD", "---\t\nHEAD", "--- # c\nHEAD",
    "...\n---\nHEAD", "...\n", "... # c\n", "# c", "x:", "x: a", "x: \n", "x: 'a\n", "x: ---\n",
    "\n---\n\n\n---\n# c\n---\n~\n---\nHEAD", "---\nnull\n", "x: |\n  a\n---\nHEAD",
    "x: |\n--- a\n",
    "x:\n  k: '\n---\n  '\n", "x: \"a\n---\nb\"\n", " ---\n", "----\n", "---a\n", "\t", " ",
    "\n \t\n",
    "x: &a x\n---\nHEADx: *a\n", "x: &a {b: *a}\n", "<<: {x: {a: b}}\n", "metadata: 1\n", "[]", "a",
    "x:\n  a: &a {q: '1'}\n  b: &b {q: '2', z: '3'}\n  c: {<<: [*a, *b]}\n  d: {<<: [*b, *a]}\n",
)  # fmt: skip
ESCAPES = (
    r"\ud83d\ude00", r"\uD83D\uDE00\ud83d\ude01", r"\ud83d", r"\ude00\ud83d", r"\ud83dude00",
    r"\\ud83d\ude00", r"\\\ud83d\ude00", r"\\\\ud83d\\ude00", r"\ud83d\u0041",
    r"\ud83d\n", r"a\udbff\udfff",
)  # fmt: skip
"""Of JSON, which writes a character beyond U+FFFF as two of them."""
WHOLE = (
    "# c\n---\nHEAD", "# c\nHEAD", "%YAML 1.1\n---\nHEAD", "\n\nHEAD", "\ufeffHEAD",
    "\ufeff---\nHEAD",
    "\ufeff# c\nHEAD", "---\nHEAD", "  ---\nHEAD", "\t\nHEAD", " \nHEAD", "", "\n", "---", "#", "~",
    "[]", "a", f"{{{JSON_HEAD}}}", f" {{{JSON_HEAD}}}\n", f"{{{JSON_HEAD}, }}",
    f"[{{{JSON_HEAD}}}]",
    *(f"{{{JSON_HEAD}}}{space}{{{JSON_HEAD}}}" for space in ("", "\n", " ", "\r\n  ", "\nnull\n")),
    f"{{{JSON_HEAD}}}\n{{{JSON_HEAD}}}\n{{", f"{{{JSON_HEAD}}}\n{{{JSON_HEAD}}} # c",
    f"{{{JSON_HEAD}}}\n---\n{{{JSON_HEAD}}}\n",
    f'{{{JSON_HEAD}, "x": "\u00e9\\ud83d\\ude00"}}\n{{{JSON_HEAD}, "x": "}}{{"}}\n\n',
    *(f'{{{JSON_HEAD}, "x": "{escapes}"}}' for escapes in ESCAPES),
    f"{{{JSON_HEAD}, 'x': '{ESCAPES[0]}'}}",
    f'---\n{{{JSON_HEAD}, "x": "{ESCAPES[0]}"}}',
    f'{{{JSON_HEAD}, "x": {{"a": 1, "b": 2, "a": 3}}}}',
    f'{{{JSON_HEAD}, "x": [1.0, 1e3, "\\u00e9", 12345678901234567890123, null, true]}}',
)  # fmt: skip


def scalars() -> list[str]:
    tagged = (group.partition(":") for group in re.split(r"\s(?=\w+:)", TAGGED.strip()))
    tags = [f"!!{tag or 'str'} {value}" for tag, _, rest in tagged for value in rest.split("|")]
    return [*BARE.split(), *tags, *UNUSUAL]


DOCUMENT_SETS: dict[str, Callable[[], Iterable[str]]] = {
    "scalars and collections in every place": lambda: (
        HEAD + place.format(written) for written in scalars() for place in PLACES
    ),
    "block scalars": lambda: (HEAD + block for block in random.Random(11).sample(BLOCKS, 2500)),
    "files and their documents": lambda: (
        text.replace("HEAD", HEAD) for text in (*("HEAD" + each for each in DOCUMENTS), *WHOLE)
    ),
}  # fmt: skip

# --- the two readers ------------------------------------------------------------------------------


def our_reading(text: str) -> Reading:
    try:
        objects = manifests.parse(text.encode(), "f.yaml", "default")
    except PackageError as error:
        return REFUSED + str(error)
    return reading([manifest.body for manifest in objects])


def reading(objects: list[dict[str, Any]]) -> Reading:
    return json.dumps(objects, sort_keys=True)


Kubectl = Callable[[Iterable[str]], dict[str, Reading]]


@pytest.fixture
def kubectl(admin_kubeconfig: str, tmp_path: Path) -> Kubectl:
    """Reads texts, in one call."""

    def read(texts: Iterable[str]) -> dict[str, Reading]:
        files = {f"{NAME}-{number}": text for number, text in enumerate(dict.fromkeys(texts))}
        folder = tmp_path / "files"
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_bytes(text.replace(NAME, name).encode())
        options = ("--dry-run=client", "--validate=false", "-o", "json", "-f", str(folder))
        completed = subprocess.run(
            ["kubectl", "create", f"--cache-dir={tmp_path}/cache", *options],
            env={**os.environ, "KUBECONFIG": admin_kubeconfig},
            capture_output=True,
            check=False,
        )
        output, errors = completed.stdout.decode(), completed.stderr.decode()
        objects = objects_by_name(output)
        refused = dict(re.findall(rf"{folder}/({NAME}-\d+)\.yaml\"?: (.*)", errors))
        return {
            text: REFUSED + refused[name]
            if name in refused
            else reading(objects.get(name, [])).replace(name, NAME)
            for name, text in files.items()
        }

    return read


def objects_by_name(output: str) -> dict[str, list[dict[str, Any]]]:
    objects: dict[str, list[dict[str, Any]]] = {}
    decoder, position = json.JSONDecoder(), 0
    while output[position:].strip():
        body, position = decoder.raw_decode(output, position)
        position += 1  # the line break after it
        del body["metadata"]["namespace"]
        objects.setdefault(body["metadata"]["name"], []).append(body)
    return objects


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("documents", DOCUMENT_SETS)
def test_what_we_read_is_what_kubectl_reads(
    documents: str, line_end: str, kubectl: Kubectl
) -> None:
    texts = (text.replace("\n", line_end) for text in DOCUMENT_SETS[documents]())
    differences = {
        text: (ours, theirs)
        for text, theirs in kubectl(texts).items()
        if (ours := our_reading(text)) != theirs and not is_deliberate(ours, theirs)
    }
    assert differences == {}


def document(text: str) -> str:
    return text if text.startswith("{") else HEAD + text


def is_deliberate(ours: Reading, theirs: Reading) -> bool:
    """Tell whether both refuse the text, or one for a reason that is listed."""
    known = [reason for _, reason in (STRICTER if ours.startswith(REFUSED) else LOOSER).values()]
    refusals = [each for each in (ours, theirs) if each.startswith(REFUSED)]
    return len(refusals) == 2 or any(re.search(reason, *refusals) for reason in known if refusals)


@pytest.mark.parametrize(("text", "message"), STRICTER.values(), ids=STRICTER)
def test_kubectl_reads_what_we_refuse_on_purpose(text: str, message: str, kubectl: Kubectl) -> None:
    ((text, theirs),) = kubectl([document(text)]).items()
    assert not theirs.startswith(REFUSED)
    assert re.search(message, our_reading(text))


@pytest.mark.parametrize(("text", "message"), LOOSER.values(), ids=LOOSER)
def test_kubectl_refuses_what_we_read(text: str, message: str, kubectl: Kubectl) -> None:
    ((text, theirs),) = kubectl([document(text)]).items()
    ours = our_reading(text)
    assert not ours.startswith(REFUSED)
    assert theirs == ours or re.search(message, theirs)


@pytest.mark.parametrize(("text", "ours", "theirs"), OTHERWISE.values(), ids=OTHERWISE)
def test_we_read_otherwise_than_kubectl_on_purpose(
    text: str, ours: object, theirs: object, kubectl: Kubectl
) -> None:
    ((text, read),) = kubectl([document(text)]).items()
    found = [json.loads(each)[0]["x"] for each in (our_reading(text), read)]
    assert found == [ours, theirs]
