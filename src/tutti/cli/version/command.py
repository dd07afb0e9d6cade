"""`tutti version`: prints the versions of Tutti and of the kube-scheduler that it follows."""

from __future__ import annotations

import click


@click.command("version")
def command() -> None:
    """Print the version of Tutti, and the version of kube-scheduler that it follows."""
    from tutti import __version__

    click.echo(f"tutti {__version__} (follows kube-scheduler 1.37)")
