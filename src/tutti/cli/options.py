"""Options that commands share, with the names that kubectl uses.

Contract: imports only click. The paths of `-f` are for `kube.reading.sources`; without `-f`, `cluster_reading` reads
the cluster of a kubeconfig context. `-f` and the options of a context exclude each other.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(allow_dash=True)
"""A path that click does not check, because the loader has better messages; the type enables shell completion."""

_DNS_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_LEASE = re.compile(rf"{_DNS_NAME}/{_DNS_NAME}")

ALL = ""
"""The namespace that means all namespaces."""


class ClusterInput(NamedTuple):
    """Where a command reads the cluster: from files, or else from the cluster of a kubeconfig context."""

    paths: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""

    @property
    def is_live(self) -> bool:
        """Whether the command reads a cluster, not files."""
        return not self.paths


def files_or_context(command: _Command) -> _Command:
    """Add `-f`, `--kubeconfig` and `--context`; the command gets a `ClusterInput` as ``given``."""
    files = click.option(
        "-f",
        "--filename",
        "paths",
        multiple=True,
        type=_PATH,
        metavar="FILE",
        help="A dump or manifest (JSON or YAML, also gzipped), a directory of them, or - for standard input. "
        "May be repeated; a later file replaces objects of an earlier one. Without it the cluster itself is read.",
    )
    return files(context(command))


def context(command: _Command) -> _Command:
    """Add `--kubeconfig` and `--context`; the command gets a `ClusterInput` as ``given``."""

    @functools.wraps(command)
    def with_input(*args: Any, kubeconfig: str | None, context: str | None, **others: Any) -> Any:
        given = ClusterInput(others.pop("paths", ()), kubeconfig or "", context or "")
        if given.paths and (given.kubeconfig or given.context):
            option = "--kubeconfig" if given.kubeconfig else "--context"
            raise click.UsageError(f"-f reads files and {option} reads a cluster: give one of them.")
        return command(*args, **others, given=given)

    decorated: Any = with_input
    for option in (
        click.option("--context", metavar="NAME", help="The kubeconfig context to read; without it the current one."),
        click.option(
            "--kubeconfig",
            type=click.Path(),
            metavar="FILE",
            help="The kubeconfig; without it $KUBECONFIG, ~/.kube/config, or the service account of the pod.",
        ),
    ):
        decorated = option(decorated)
    return cast("_Command", decorated)


def _checked_lease(context: click.Context, option: click.Parameter, text: str) -> str:
    if not _LEASE.fullmatch(text):
        raise click.BadParameter(f"{text!r} is not NAMESPACE/NAME.", context, option)
    return text


def lease(help_text: str) -> Callable[[_Command], _Command]:
    """Add `--lease`, the namespace and name of the scheduler's Lease; other texts are refused."""
    return click.option(
        "--lease",
        default="kube-system/tutti-scheduler",
        show_default=True,
        metavar="NAMESPACE/NAME",
        callback=_checked_lease,
        help=help_text,
    )


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
