"""``equipoise completion``: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from equipoise.cli.main import cli


@click.command("completion", epilog='bash: eval "$(equipoise completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script for SHELL."""
    completion = get_completion_class(shell)
    assert completion is not None  # click knows each of the choices
    click.echo(completion(cli, {}, "equipoise", "_EQUIPOISE_COMPLETE").source())
    return 0
