"""Print docs/reference/commands.md: each command with the help that the program gives."""

from __future__ import annotations

import click

from equipoise.cli.main import cli, command_names

WIDTH = 100
TOP = """# All commands

<!-- Written by `make docs` out of the program. -->
`equipoise COMMAND --help` prints the same.

The exit status is 0 for done, also if the verdict is `undecided`; 1 for a gate that failed, or
a verification that found no speed-up or a wrong output; 2 for unusable input; 3 if a command failed
and there is no verdict, or a verification cannot say; 70 for a defect of Equipoise, with a
crash file for the report; 74 if standard output could not be written, for example on a full disk;
130 after an interruption. `| head` is not a failure. In each case the ledger has all that was
measured.

A command writes a file (`--json`, `--report`, `-o`, `--export-…`, figures) under a new name next to
the old file, and then renames it. So on a full disk the old file stays. The file keeps its mode. If
the name is a link, the link stays. If the folder takes no new file, the old file is overwritten. A
device, a FIFO and `/dev/stdout` are written directly. A command gives up a FIFO that nobody reads
after 10 s. Results that a command reads (`report FILE.json`, `--against`) and a gate's suite are
regular files or pipes, such as `<(command)`. A command gives up a FIFO to which nobody writes after
10 s.

A crash file has the traceback and the command line. It has neither the values of `--env` nor the
lines of hooks and builds. Its folder is `$XDG_STATE_HOME/equipoise/crashes` (by default
`~/.local/state/equipoise/crashes`), or the temporary folder. Only you can read it. Read it
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
