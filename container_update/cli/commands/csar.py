# SPDX-License-Identifier: Apache-2.0
"""``container-update csar``: make, check, build and bundle packages; build those of the samples."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.cli.terminal.screen import Screen
from container_update.model.errors import PackageError
from container_update.model.options import PACKAGE_OPTIONS
from container_update.planning.plan_json import document
from container_update.reports.lines import Line

HELP = "make packages: init, check, build, bundle"


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands by a function that takes name, function and help."""
    command = add("check", _check, "report what would fail with a package in Tacker")
    command.add_argument("package", metavar="PACKAGE", help=connection.PACKAGE)
    command.add_argument("-o", "--output", choices=output.DOCUMENTS, default=output.TEXT,
        help="the format of the output (default: %(default)s)")  # fmt: skip
    option_arguments.add_arguments(command, PACKAGE_OPTIONS)

    text = "make a package of a folder of manifests: write its VNFD and TOSCA.meta"
    command = add("init", _init, text)
    command.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of manifests")
    command.add_argument("--product", metavar="NAME", default="",
        help="the product's name (default: that of the folder, without a version)")  # fmt: skip
    command.add_argument("--product-version", metavar="TEXT", default="",
        help="its version (default: what the folder's name ends with, else 1.0)")  # fmt: skip
    command.add_argument("--provider", metavar="NAME", default="", help="who provides it")

    text = "build a package from a folder: TOSCA.meta with hashes, driver file, zip"
    command = add("build", _build, text)
    command.add_argument("folder", metavar="FOLDER", type=Path, help="the files of the package")
    command.add_argument("--to", metavar="FILE", type=Path,
        help="the zip to write (default: FOLDER.zip)")  # fmt: skip
    command.add_argument("--api", choices=("v1", "v2"),
        help="add the driver file for this API of Tacker (default: no driver file)")  # fmt: skip

    text = "write the v2 script as a single file that needs no installation"
    command = add("bundle", _bundle, text)
    command.add_argument("target", metavar="FILE", type=Path, help="the file to write")

    text = "build before.zip and after.zip of a user guide for Tacker (samples 02, 03)"
    command = add("sample", _sample, text)
    command.add_argument("api", choices=("v1", "v2"), help="the API of Tacker and its user guide")
    command.add_argument("types", metavar="TYPES", type=Path,
        help="the folder with ETSI's files etsi_nfv_sol001_*_types.yaml")  # fmt: skip
    command.add_argument("folder", metavar="FOLDER", type=Path, help="the folder for the packages")


def _check(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.findings import Severity  # noqa: PLC0415, slow to load
    from container_update.package.tools.check import check  # noqa: PLC0415
    from container_update.planning.summary import count_noun  # noqa: PLC0415

    findings = check(parsed.package, options=option_arguments.read(parsed))
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if output.is_document(parsed):
        body = document("Findings", {"findings": [each.as_dict() for each in findings]})
        output.write_document(body, parsed, out)
    else:
        Screen(out).show(Line.of(str(finding)) for finding in findings)
        others = count_noun(len(findings) - errors, "other finding")
        out.write(f"{count_noun(errors, 'error')}, {others}\n")
    return PackageError.exit_status if errors else DONE


def _init(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.tools.build import init  # noqa: PLC0415

    vnfd = init(parsed.folder, parsed.product, parsed.product_version, parsed.provider)
    out.write(f"{vnfd}\n{parsed.folder / 'TOSCA-Metadata/TOSCA.meta'}\n")
    return DONE


def _build(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.tools.build import build  # noqa: PLC0415

    target = parsed.to or parsed.folder.resolve().with_name(parsed.folder.resolve().name + ".zip")
    out.write(f"{build(parsed.folder, target, api=parsed.api)}\n")
    return DONE


def _bundle(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.tools.build import bundle  # noqa: PLC0415

    out.write(f"{bundle(parsed.target)}\n")
    return DONE


def _sample(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package.tools.samples import build_for_tacker  # noqa: PLC0415

    packages = build_for_tacker(parsed.api, parsed.types, parsed.folder)
    out.writelines(f"{package}\n" for package in packages.values())
    return DONE
