"""The entry point: finds a command, runs it, and turns errors into a line and an exit code.

Contract: a `TuttiError` prints one line on standard error and exits with its exit code; wrong usage prints click's
message and exits with 2. Ctrl-C exits with 130, a closed pipe (``| head``) with 141, both without a message. Any other
error is a bug in Tutti and keeps its traceback. A command's module is imported when the command runs, so that help and
completion stay fast; for the same reason command modules import numpy, msgspec, rich and the engine inside functions.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

import click

from tutti.exceptions import TuttiError

COMMANDS = {
    "schedule": "Say where pending pods go, and why the rest cannot",
    "explain": "Give the verdict of every node on one pod, or say why a gang waits",
    "recommend": "Say which nodes to buy for pending pods, and what they cost",
    "dump": "Write what tutti reads from a cluster, as a file for -f",
    "scheduler": "Schedule the pods of a running cluster, gangs whole or not at all",
    "inspect": "Say what a running scheduler has in mind: queue, gangs, holds, plans",
    "recommender": "Run the recommender as an HTTP service",
    "scalesim": "Play a scaling simulation from a Gardener snapshot, round by round",
    "replay": "Run a recording of sessions again, and say where the plans differ",
    "conformance": "Compare with recorded answers of kube-scheduler",
    "demo": "Tour the main jobs on a packaged example",
    "completion": "Print the completion script for a shell",
    "version": "Print the version",
}
"""Every command with its line of help; command x is `command` in module tutti.cli.x.command."""

NAME, COMPLETE = "tutti", "_TUTTI_COMPLETE"
INTERRUPTED, BROKEN_PIPE = 130, 141


class Commands(click.Group):
    """A click group that imports a command when the command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or return None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"tutti.cli.{cmd_name}.command").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tutti-k8s", message="%(version)s")
def cli() -> None:
    """One scheduling brain for Kubernetes: it places pods as kube-scheduler does, and says why.

    \b
    Ask the cluster of the current kubeconfig context:
      tutti schedule
      tutti explain pod/NAME

    \b
    Or dump the cluster, and ask the file:
      tutti dump > cluster.json
      tutti schedule -f cluster.json
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        if sys.stdout is not None:  # it is None after >&-
            sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes standard output again at its end; that must not raise a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo("error: cannot write the answer: no space left on device", err=True)
        code = TuttiError.exit_code
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run one command; click's own `main` handles a broken pipe and Ctrl-C differently."""
    if instruction := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, NAME, COMPLETE, instruction)
    try:
        with cli.make_context(NAME, arguments) as ctx:
            cli.invoke(ctx)
    except TuttiError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0
