# SPDX-License-Identifier: Apache-2.0
"""The directive ``commands``: the reference of the commands, made from their parser.

It is our own and not sphinx-argparse, which knows neither the options that only ``--help-all``
shows nor that many commands share them, and draws a table where a list of options can be linked.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from container_update import cli
from container_update.cli import man
from container_update.cli.arguments import option_arguments
from container_update.cli.main import root_parser
from container_update.cli.man import help_of

COMMON = 6
"""An option that so many commands have, with the same words, is explained once."""


def common_options() -> dict[str, argparse.Action]:
    """Return the options that many commands share, by their longest name."""
    found: dict[tuple[str, str], list[argparse.Action]] = {}
    for command, _ in man.commands(root_parser()):
        for action in man.list_arguments(command):
            if action.option_strings and action.dest not in option_arguments.ALL:
                found.setdefault((action.option_strings[-1], help_of(action)), []).append(action)
    often = sorted(found.items(), key=lambda item: -len(item[1]))
    return {name: same[0] for (name, _), same in often if len(same) >= COMMON}


def overview() -> Iterator[str]:
    """Yield a list of all commands."""
    for command, text in man.commands(root_parser()):
        yield f":ref:`{command.prog} <{_label(command)}>`"
        yield from (f"    {escaped(text)}", "")


def reference() -> Iterator[str]:
    """Yield a section for each command."""
    common = common_options()
    for command, _ in man.commands(root_parser()):
        actions = man.list_arguments(command)
        yield from (f".. _{_label(command)}:", "", command.prog, "-" * len(command.prog), "")
        yield from (f".. program:: {command.prog}", "", "::", "")
        yield from (f"   {command.synopsis()}", "")
        yield from (escaped(command.description or ""), "")
        shared = []
        for action in actions:
            name = action.option_strings[-1] if action.option_strings else ""
            if name in common and help_of(action) == help_of(common[name]):
                shared.append(f":option:`{name} <container-update {name}>`")
            elif action.dest not in option_arguments.ALL:
                yield from _option(action)
        shared += _settings_of(actions)
        if shared:
            yield from (f"Also: {', '.join(shared)}.", "")
        yield from _examples(command.epilog or "")


def _settings_of(actions: Iterable[argparse.Action]) -> list[str]:
    """Return the settings that a command takes, in a word where it takes them all."""
    taken = [each.option_strings[-1] for each in actions if each.dest in option_arguments.ALL]
    if len(taken) == len(option_arguments.ALL):
        return ["all :ref:`settings <settings>`"]
    return [f"``{name}``" for name in taken]


def common() -> Iterator[str]:
    """Yield the options that many commands share."""
    yield from (".. program:: container-update", "")
    for action in common_options().values():
        yield from _option(action)


PARTS: Mapping[str, Callable[[], Iterator[str]]] = {
    "overview": overview,
    "reference": reference,
    "common": common,
}


def _label(command: argparse.ArgumentParser) -> str:
    return command.prog.replace(" ", "-")


def _option(action: argparse.Action) -> Iterator[str]:
    yield from (f".. option:: {man.names_of(action)}", "")
    yield from (f"   {_sentence(help_of(action))}", "")


def _sentence(text: str) -> str:
    """Return the help of an option as a sentence, its default as another one."""
    found = re.fullmatch(r"(.*?)(?: \(((?:repeatable; )?default.*|repeatable)\))?", text, re.DOTALL)
    assert found
    parts = [found[1], *(found[2].split("; ", 1) if found[2] else ())]
    return " ".join(f"{escaped(part[0].upper() + part[1:])}." for part in parts)


def _examples(epilog: str) -> Iterator[str]:
    title, _, rest = epilog.partition("\n")
    if rest:
        yield from (f"{title.rstrip(':').capitalize()}::", "")
        yield from (f"   {line.strip()}" for line in rest.splitlines())
        yield ""


def escaped(text: str) -> str:
    """Return a text in which nothing is markup."""
    return re.sub(r"([\\*`_|])", r"\\\1", text)


class Commands(SphinxDirective):
    """``.. commands::`` with one of the parts."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of that part."""
        for file in (Path(__file__), *Path(cli.__file__).parent.rglob("*.py")):
            self.env.note_dependency(str(file))
        part = PARTS[self.arguments[0]]
        return self.parse_text_to_nodes("\n".join(part()), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
