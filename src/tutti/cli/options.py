"""Options that commands share, with the names that kubectl uses.

Contract: imports only click. The value of `-f` is a list of paths for `kube.reading.sources`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(allow_dash=True)
"""A path that click does not check, because the loader has better messages; the type enables shell completion."""

ALL = ""
"""The namespace that means all namespaces."""


def files(command: _Command) -> _Command:
    """Add `-f`: the input files."""
    return click.option(
        "-f",
        "--filename",
        "paths",
        multiple=True,
        required=True,
        type=_PATH,
        metavar="FILE",
        help="A dump or manifest (JSON or YAML, also gzipped), a directory of them, or - for standard input. "
        "May be repeated; a later file replaces objects of an earlier one.",
    )(command)


def profile(command: _Command) -> _Command:
    """Add `--profile` and `--scheduler-name`: the scheduler's configuration, and the name in its pods."""
    name_option = click.option(
        "--scheduler-name",
        metavar="NAME",
        help="Act as the scheduler of this name: its pods are placed, and its profile is taken from --profile.",
    )
    profile_option = click.option(
        "--profile",
        "profile_path",
        type=_PATH,
        metavar="FILE",
        help="A KubeSchedulerConfiguration; without it the default profile of kube-scheduler 1.37.",
    )
    return profile_option(name_option(command))


def output(*forms: str) -> Callable[[_Command], _Command]:
    """Add `-o`, the output format; the first of `forms` is the default."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="The form of the answer.",
    )


def namespace(help_text: str) -> Callable[[_Command], _Command]:
    """Add `-n`."""
    return click.option("-n", "--namespace", metavar="NAMESPACE", help=help_text)
