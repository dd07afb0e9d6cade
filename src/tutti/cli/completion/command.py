"""`tutti completion`: the script with which a shell completes commands, options and file names.

Contract: prints the script to standard output and writes no file; the help says where each shell expects the script.
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

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    completion = completion_class(cli, {}, NAME, COMPLETE)
    # Not source(): for bash it runs bash to check its version, and bash may be missing on this machine.
    click.echo(completion.source_template % completion.source_vars())
