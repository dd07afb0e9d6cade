"""Options that commands share, with kubectl's names and habits.

Contract: only click is imported here. `-f` gives paths as `kube.reading.sources` takes them; `-l` is read into a
`Selector` by `app.label_query` when the command runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(allow_dash=True)
"""Not checked by click: the loader words what is wrong with a path. The type is there for the shell's completion."""

ALL = ""
"""The namespace that stands for all of them."""


def files(command: _Command) -> _Command:
    """`-f`: what the cluster is read from."""
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
    """`--profile` and `--scheduler-name`: how the scheduler is set up, and which pods are its own."""
    named = click.option(
        "--scheduler-name",
        metavar="NAME",
        help="Act as the scheduler of this name: its pods are placed, and its profile is taken from --profile.",
    )
    read = click.option(
        "--profile",
        "profile_path",
        type=_PATH,
        metavar="FILE",
        help="A KubeSchedulerConfiguration; without it the default profile of kube-scheduler 1.37.",
    )
    return read(named(command))


def output(*forms: str) -> Callable[[_Command], _Command]:
    """`-o`: the form of the answer; the first one is the default."""
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
    """`-n`."""
    return click.option("-n", "--namespace", metavar="NAMESPACE", help=help_text)
