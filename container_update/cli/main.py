# SPDX-License-Identifier: Apache-2.0
"""The command line: its commands with their arguments, and how errors are shown.

Exit status: 0 nothing is wrong, 64 wrong usage, and one for each class of error (see
``container_update.model.errors``). With ``--detailed-exitcode`` 2 is nothing to do, and 3 is a plan
that has changes.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO

import container_update
from container_update.cli.arguments import parser
from container_update.cli.commands import completion
from container_update.model.errors import ContainerUpdateError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LOG = logging.getLogger(__name__)

Run = Callable[[argparse.Namespace, TextIO], int]
"""Runs a command with its arguments, writes the results, returns the exit status."""


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run one command.

    :param arguments: without the program's name; None: the arguments of the process.
    :param out: receives the results; None: standard output. Logs and errors go to standard error.
    :returns: the exit status: that of the operation, also where the results cannot be written.
    """
    words, verbose = parser.verbosity(sys.argv[1:] if arguments is None else arguments)
    words = _with_present_name(parser.command_first(words))
    root = root_parser(words)
    completion.answer(root)
    parsed = root.parse_args(words)
    from container_update.cli.terminal import output  # noqa: PLC0415, slow to load

    results = output.results(out or sys.stdout)
    output.show_log(verbose)
    run: Run = parsed.run
    try:
        status = run(parsed, results)
        is_detailed = getattr(parsed, "detailed_exitcode", True)
        return output.DONE if status in output.DETAILS and not is_detailed else status
    except ContainerUpdateError as error:
        output.report_error(error, parsed, results)
        return error.exit_status
    finally:
        results.flush()


# --- commands -----------------------------------------------------------------------------------

COMMANDS = "container_update.commands"
"""The entry points of families of commands: each names a module with ``HELP`` and
``add_commands(add)``, where *add* is called as :func:`_add` without its first argument."""


def root_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the program.

    :param words: what it shall parse: commands and families that this does not name are not
        loaded. None: anything, as for a shell's completion.
    """
    root = parser.CommandParser(
        prog=_program(),
        usage="%(prog)s [-n NAMESPACE] [--context NAME] COMMAND [OPTION ...] ...",
        description="Move a running VNF to a new package; restart only what the change affects.",
        epilog=_EPILOG,
    )
    is_asked = list(words or ())[:1] == ["--version"]
    version = f"container-update {container_update.__version__}" if is_asked else ""
    text = "show the version and exit"
    root.add_argument("--version", action="version", version=version, help=text)
    _add_verbose(root)
    if is_asked:
        return root  # which ends there: loading the commands takes longer than all else
    commands = _subcommands(root)
    add = partial(_add, commands)
    modules = _modules(words)
    for module in modules:
        import_module(f"container_update.cli.commands.{module}").add_commands(add)
    below = [commands]
    for name, family in _families(words, commands.choices) if len(modules) > 1 else ():
        text = family.HELP
        below.append(
            _subcommands(commands.add_parser(name, help=text, description=_sentence(text)))
        )
        family.add_commands(partial(_add, below[-1]))
    text = "write what bash, zsh or fish runs to complete commands"
    completion.add_arguments(add("completion", completion.run, text))
    parser.group(root, commands, _GROUPS)
    root.set_defaults(program=root.prog)
    for command in (each for level in below for each in level.choices.values()):
        if command.get_default("configured"):
            parser.know(command)
    return root


_MODULES: Mapping[str, Collection[str]] = {
    "update": ("plan", "apply", "undo", "install", "uninstall"),
    "change": ("change",),
    "history": ("history",),
    "listing": ("list",),
    "recover": ("status", "resume", "rollback", "promote", "abort"),
    "freezing": ("freeze", "unfreeze"),
    "doctor": ("doctor",),
    "version": ("version",),
}
"""The modules of the commands without a family, and the commands of each."""


def _modules(words: Sequence[str] | None) -> Sequence[str]:
    """Return the module of the called command; all, where none is or a file may have options."""
    called = [name for name, added in _MODULES.items() if words and words[0] in added]
    return called if words and called and not parser.has_file(words) else list(_MODULES)


def _families(words: Sequence[str] | None, known: Container[str]) -> Iterator[tuple[str, Any]]:
    """Yield the families of commands, each with its name, unless the command is a known one."""
    from container_update.cli.commands import csar  # noqa: PLC0415, slow to load

    yield "csar", csar
    if words and (words[0] in known or words[0] in {"csar", "completion"}):
        return
    from stevedore import ExtensionManager  # noqa: PLC0415, slow to load

    families: ExtensionManager[Any] = ExtensionManager(COMMANDS, on_load_failure_callback=_warn)
    for family in sorted(families, key=lambda each: each.name):
        yield family.name, family.plugin


def _warn(_: object, entry_point: EntryPoint, error: BaseException) -> None:
    LOG.warning("the commands %s cannot be loaded: %s", entry_point.name, error)


def _subcommands(command: argparse.ArgumentParser) -> Any:
    return command.add_subparsers(
        title="commands", required=True, metavar="COMMAND", prog=command.prog
    )


_GROUPS: Mapping[str, Sequence[str]] = {
    "every day": (
        *("plan", "apply", "change", "undo", "history", "status", "list", "install"),
        *("uninstall", "freeze", "unfreeze", "doctor"),
    ),
    "when something is under way": ("resume", "rollback", "promote", "abort"),
    "more": ("csar", "try", "vnfm", "heat", "completion", "version"),
}
"""The commands as the help lists them."""
_RENAMED: Mapping[str, Sequence[str]] = {
    "change-vnfpkg": ("change",),
    "show": ("history", "--last"),
    "diff": ("history", "--last", "--diff"),
    "watch": ("status", "--watch"),
    **{name: ("try", name) for name in ("demo", "emulate", "samples")},
    **{name: ("vnfm", name) for name in ("serve", "db", "vim-config")},
}
"""What commands were called in the release before this one; they still work in this one."""
_OF_A_STACK = ("change", "status", "resume", "rollback")


def _with_present_name(words: Sequence[str]) -> list[str]:
    """Return the words of a command with its present name; say what that is."""
    if not words:
        return []
    name, *rest = words
    now = _RENAMED.get(name, (name,))
    if now[0] in _OF_A_STACK and any(word.partition("=")[0] == "--stack" for word in rest):
        now = ("heat", *now)
    if tuple(now) != (name,):
        from container_update.cli.terminal import output  # noqa: PLC0415, slow to load

        output.complain(f"'{name}' is called '{' '.join(now)}' now; the old name is deprecated")
    return [*now, *rest]


def _program() -> str:
    """Return how the user called this program, which is a plugin of kubectl too."""
    is_plugin = PurePath(sys.argv[0]).name == "kubectl-cnf"
    return "kubectl cnf" if is_plugin else "container-update"


def _add(  # noqa: PLR0913
    commands: Any,
    name: str,
    run: Run,
    text: str,
    description: str = "",
    *,
    configured: bool = True,
) -> argparse.ArgumentParser:
    """Add a command; a configured one has defaults in the environment and in a file."""
    command: parser.CommandParser = commands.add_parser(
        name, help=text, description=_sentence(description or text), configured=configured
    )
    if examples := EXAMPLES.get(command.prog.removeprefix(f"{_program()} ")):
        lines = (f"  container-update {words}\n" for words in examples)
        command.epilog = f"example{'s' if len(examples) > 1 else ''}:\n{''.join(lines)}"
    _add_verbose(command)
    if configured:
        parser.hide(parser.add_argument(command))
    command.set_defaults(run=run, configured=configured)
    return command


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _add_verbose(command: argparse.ArgumentParser) -> None:
    """Add the option for the help; :func:`parser.verbosity` reads it."""
    command.add_argument(
        "-v", "--verbose", action="count", default=0, help="log each action (-vv: with details)"
    )


_EPILOG = """\
begin with:
  container-update try demo                an update, on an embedded cluster
  container-update plan v1.csar v2.csar    what an update would do here, and why
"""
EXAMPLES: Mapping[str, Sequence[str]] = {
    "plan": ("plan v1.csar v2.csar -n core", "plan v1.csar v2.csar -o markdown > change.md"),
    "apply": (
        "apply v1.csar v2.csar -n core --timeout 5m",
        "apply v2.csar -n core      from the package on record",
        "apply v1.csar v2.csar --yes --progress json",
    ),
    "change": (
        "change v1.csar v2.csar --upgrade-type Blue-Green --plan",
        "change v2.csar --upgrade-type RollingUpdate --vdu VDU1",
    ),
    "install": (
        "install v1.csar -n core --instance-id upf-1",
        "install v1.csar -n core --plan --out install.plan",
    ),
    "uninstall": (
        "uninstall -n core --instance-id upf-1 --plan",
        "uninstall -n core --instance-id upf-1 --delete-data",
    ),
    "history": (
        "history -n core            a table; -A: of all namespaces",
        "history 14 -n core         who, when, why, and what it did",
        "history 14 --diff -n core  the lines and images it changed",
        "history --last -o markdown > ticket.md",
    ),
    "undo": (
        "undo -n core            the newest update",
        "undo 12 --plan -n core  how to go back to before update 12",
    ),
    "status": (
        "status -n core",
        "status --watch -n core   follow an operation to its end",
    ),
    "list": ("list", "list -A -o json"),
    "resume": (
        "resume -n core",
        "resume v1.csar v2.csar -n core   a change with scripts",
    ),
    "rollback": ("rollback -n core",),
    "freeze": ("freeze -n core --until 8h -m 'night of the football final'",),
    "unfreeze": ("unfreeze -n core",),
    "promote": ("promote -n core",),
    "abort": ("abort -n core",),
    "doctor": ("doctor v1.csar v2.csar -n core",),
}
"""What ends the help of a command, each after the name of the program."""
