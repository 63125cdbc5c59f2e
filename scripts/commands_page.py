"""Prints docs/commands.md: every command with its help, as the program itself gives it."""

from __future__ import annotations

import click

from equipoise.cli.main import COMMANDS, cli

WIDTH = 100
TOP = """# All commands

<!-- Written by `make docs` out of the program. -->
`equipoise COMMAND --help` prints the same. Exit status: 0 done, `undecided` included; 1 a gate
failed; 2 unusable input; 3 a command failed and no verdict could be given; 130 interrupted, with
everything that was measured in the ledger.
"""


def main() -> None:
    """Print the page."""
    above = click.Context(cli, info_name="equipoise", **cli.context_settings)
    print(TOP)
    for name in COMMANDS:
        command = cli.get_command(above, name)
        assert command is not None
        context = click.Context(
            command, info_name=name, parent=above, terminal_width=WIDTH, max_content_width=WIDTH
        )
        print(f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")


if __name__ == "__main__":
    main()
