# SPDX-License-Identifier: Apache-2.0
"""The settings of the service for its commands: from configuration files and arguments."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from container_update.model.errors import ContainerUpdateError
from container_update.model.options import GROUP, Options
from container_update.vnfm.settings import Settings

_ARGUMENTS = ("host", "port", "state_dir", "database_url")
"""The settings that are arguments of a command too."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments that all commands of the service have."""
    add = command.add_argument
    add("--config-file", action="append", default=[], metavar="FILE",
        help="a file with the sections [vnfm] and [container_update] (repeatable)")  # fmt: skip
    add("--state-dir", metavar="FOLDER", help="the folder for packages, keys and SQLite")
    add("--database-url", metavar="URL", help="postgresql://USER@HOST/NAME (default: SQLite)")


def read(parsed: argparse.Namespace) -> tuple[Settings, Options]:
    """Return the settings of the configuration files, overridden by the arguments.

    :raises ContainerUpdateError: a file cannot be read, or a setting is invalid.
    """
    from container_update.vnfm.settings import Settings  # noqa: PLC0415, an extra

    given = {name: getattr(parsed, name, None) for name in _ARGUMENTS}
    values = {name: value for name, value in given.items() if value is not None}
    with _files(parsed) as conf:
        return Settings.from_conf(conf, **values), Options.from_conf(conf)


def start_log(parsed: argparse.Namespace) -> None:
    """Log as the configuration files say; the demo, whose output is for a person, its warnings.

    :raises ContainerUpdateError: a file cannot be read, or an option is invalid.
    """
    from container_update.vnfm.http import logs  # noqa: PLC0415, an extra

    register = partial(logs.register_options, is_demo=parsed.demo)
    with _files(parsed, register) as conf:
        logs.setup(conf)


@contextmanager
def _files(
    parsed: argparse.Namespace, register: Callable[[Any], None] = lambda _: None
) -> Iterator[Any]:
    """Yield the configuration files as oslo.config reads them; explain its errors."""
    from oslo_config import cfg  # noqa: PLC0415, slow to load

    conf = cfg.ConfigOpts()
    register(conf)
    try:
        conf(args=[], default_config_files=parsed.config_file)
        yield conf
    except (cfg.Error, ValueError) as error:
        raise ContainerUpdateError(f"invalid configuration: {_text(error)}") from None


def _text(error: Exception) -> str:
    """Return the mistake, without a line or a value of the file: it may be a password."""
    from oslo_config import cfg  # noqa: PLC0415, slow to load

    cause = error.__context__
    if isinstance(error, cfg.ConfigFileParseError) and isinstance(cause, cfg.ParseError):
        return f"{error.config_file}:{cause.lineno}: {cause.msg}"
    if isinstance(error, (cfg.NoSuchOptError, cfg.TemplateSubstitutionError)):
        return "a $ in a value is followed by no option's name: write $$ for a $"
    return str(error)


def unknown(files: Iterable[str]) -> Iterator[ContainerUpdateError]:
    """Yield what configuration files set in vain: options and sections that nothing reads.

    Of other sections only those are named that look like a slip of the pen: the file may be that of
    several programs.
    """
    from container_update.vnfm import settings  # noqa: PLC0415, an extra

    known = {
        settings.GROUP: [option.name for option in fields(settings.Settings)],
        GROUP: [option.name for option in fields(Options)],
    }
    for file in files:
        for section, options in _sections(file).items():
            names = known.get(section.lower())
            if names is None:
                near = _nearest(section.lower().replace("-", "_"), known)
                if near:
                    yield ContainerUpdateError(f"{file}: [{section}] is not read{near}")
                continue
            for name in options:
                if name not in names:
                    near = _nearest(name.lower().replace("-", "_"), names)
                    yield ContainerUpdateError(
                        f"{file}: [{section}] {name}: there is no such option, so it has no "
                        f"effect{near or ': remove it'}"
                    )


def _sections(file: str) -> dict[str, dict[str, Any]]:
    from oslo_config import cfg  # noqa: PLC0415, slow to load

    sections: dict[str, dict[str, Any]] = {}
    cfg.ConfigParser(str(Path(file).expanduser()), sections).parse()
    return sections


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean {near[0]}?" if near else ""
