"""Print docs/reference/commands.md: each command with the help that the program gives."""

from __future__ import annotations

import click

from equipoise.cli.main import cli, command_names

WIDTH = 100
TOP = """# All commands

<!-- Written by `make docs` out of the program. -->
`equipoise COMMAND --help` prints the same. Exit status: 0 done, `undecided` included; 1 a gate
failed; 2 unusable input; 3 a command failed and no verdict could be given; 70 a defect of
Equipoise, with a crash file for the report; 74 the result could not be written to standard output
(it is full or closed; `| head` is no failure); 130 interrupted. In every case what was measured is
in the ledger.

A file that a command writes (`--json`, `--report`, `-o`, `--export-…`, figures) is written beside
the old one, brought to the disk and renamed: on a full disk the old file stays. It keeps its mode;
a link stays and the file that it points to is replaced; in a folder that takes no new file the old
file is written in place. A device, a FIFO and `/dev/stdout` are written in place, and a FIFO that
nobody reads is given up after 10 s. Results that a command reads (`report FILE.json`, `--against`)
and a gate's suite are regular files or pipes, such as `<(command)`; a FIFO to which nobody writes
is given up after 10 s.

A crash file holds the traceback and the command line without the values of `--env` and without the
lines of hooks and builds. It lies in `$XDG_STATE_HOME/equipoise/crashes` (by default
`~/.local/state/equipoise/crashes`), or in the temporary folder, and only you can read it. Read it
before you send it: an error may quote your data.
"""


def main() -> None:
    """Print the page."""
    above = click.Context(cli, info_name="equipoise", **cli.context_settings)
    print(TOP)
    for name in command_names():
        command = cli.get_command(above, name)
        assert command is not None
        context = click.Context(
            command, info_name=name, parent=above, terminal_width=WIDTH, max_content_width=WIDTH
        )
        print(f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")


if __name__ == "__main__":
    main()
