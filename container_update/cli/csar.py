"""``container-update csar``: check, build and bundle packages; build those of the samples."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli import option_arguments, output
from container_update.model.errors import PackageError
from container_update.model.options import PACKAGE_OPTIONS

if TYPE_CHECKING:
    from container_update.package.lint.check import Finding

DONE = 0


def add_commands(commands: Any, parents: Sequence[argparse.ArgumentParser]) -> None:
    """Add the four commands.

    :param commands: the subparsers of argparse.
    :param parents: parsers whose arguments each command has too.
    """
    csar = commands.add_parser("csar", help="packages for Tacker: check, build, bundle, sample")
    kinds = csar.add_subparsers(title="commands", required=True, metavar="COMMAND")
    text = "report what would fail with a package in Tacker"
    command = kinds.add_parser("check", help=text, description=text, parents=parents)
    command.add_argument("package", metavar="PACKAGE", help="a folder or a CSAR zip")
    command.add_argument("-o", "--output", choices=(output.TEXT, output.JSON), default=output.TEXT,
        help="the format of the output (default: %(default)s)")  # fmt: skip
    option_arguments.add_arguments(command, PACKAGE_OPTIONS)
    command.set_defaults(run=_check)
    text = "build a package from a folder: TOSCA.meta with hashes, driver file, zip"
    command = kinds.add_parser("build", help=text, description=text, parents=parents)
    command.add_argument("folder", metavar="FOLDER", type=Path, help="the files of the package")
    command.add_argument("--to", metavar="FILE", type=Path,
        help="the zip to write (default: FOLDER.zip)")  # fmt: skip
    command.add_argument("--api", choices=("v1", "v2"),
        help="add the driver file for this API of Tacker (default: no driver file)")  # fmt: skip
    command.set_defaults(run=_build)
    text = "write the v2 script as a single file that needs no installation"
    command = kinds.add_parser("bundle", help=text, description=text, parents=parents)
    command.add_argument("target", metavar="FILE", type=Path, help="the file to write")
    command.set_defaults(run=_bundle)
    text = "build a user guide's packages for Tacker (samples 02, 03): before.zip and after.zip"
    command = kinds.add_parser("sample", help=text, description=text, parents=parents)
    command.add_argument("api", choices=("v1", "v2"), help="the API of Tacker and its user guide")
    command.add_argument("types", metavar="TYPES", type=Path,
        help="the folder with ETSI's files etsi_nfv_sol001_*_types.yaml")  # fmt: skip
    command.add_argument("folder", metavar="FOLDER", type=Path, help="the folder for the packages")
    command.set_defaults(run=_sample)


def _check(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.lint.check import Severity, check  # noqa: PLC0415

    options = option_arguments.read(parsed, PACKAGE_OPTIONS)
    findings = check(parsed.package, options=options)
    out.write({output.TEXT: _text, output.JSON: _json}[parsed.output](findings))
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    return PackageError.exit_status if failed else DONE


def _text(findings: Sequence[Finding]) -> str:
    errors = sum(1 for finding in findings if finding.severity.name == "ERROR")
    lines = [str(finding) for finding in findings]
    lines.append(f"{errors} errors, {len(findings) - errors} other findings")
    return "\n".join(lines) + "\n"


def _json(findings: Sequence[Finding]) -> str:
    return json.dumps({"findings": [finding.as_dict() for finding in findings]}, indent=2) + "\n"


def _build(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.build import build  # noqa: PLC0415

    target = parsed.to or parsed.folder.resolve().with_name(parsed.folder.resolve().name + ".zip")
    out.write(f"{build(parsed.folder, target, api=parsed.api)}\n")
    return DONE


def _bundle(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.build import bundle  # noqa: PLC0415

    out.write(f"{bundle(parsed.target)}\n")
    return DONE


def _sample(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.samples import build_for_tacker  # noqa: PLC0415

    for package in build_for_tacker(parsed.api, parsed.types, parsed.folder).values():
        out.write(f"{package}\n")
    return DONE
