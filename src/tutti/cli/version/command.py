"""`tutti version`."""

from __future__ import annotations

import click


@click.command("version")
def command() -> None:
    """Print the version of Tutti, and of the Kubernetes whose scheduler it follows."""
    from tutti import __version__

    click.echo(f"tutti {__version__} (follows kube-scheduler 1.37)")
