"""`tutti completion`: the script that makes a shell complete commands, options and file names.

Contract: the script goes to standard output and to nothing else; the help says where each shell wants it.
"""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish.

    \b
    bash:  tutti completion bash > ~/.local/share/bash-completion/completions/tutti
    zsh:   tutti completion zsh > "${fpath[1]}/_tutti"
    fish:  tutti completion fish > ~/.config/fish/completions/tutti.fish

    For this session only: source <(tutti completion bash)
    """
    from click.shell_completion import get_completion_class

    from tutti.cli.main import COMPLETE, NAME, cli

    maker = get_completion_class(shell)
    assert maker is not None
    made = maker(cli, {}, NAME, COMPLETE)
    # Not made.source(): for bash that runs bash to look at its version, which need not be on this machine.
    click.echo(made.source_template % made.source_vars())
