"""The entry: finds the command, runs it, and turns what went wrong into one or two lines."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from equipoise.model.errors import EXIT_INTERRUPTED, EXIT_UNUSABLE_INPUT, EquipoiseError

SHOWN = 40
"""So many letters of a name that is too long."""

# The one-line helps stand here so that --help imports no command (design.md §6).
GROUPS = {
    "Measure": {
        "compare": "Is one command faster than another? The first is the baseline.",
        "run": "Run a study: your file or a built-in one.",
        "os": "What the primitives of this operating system cost, in a table.",
        "resume": "Go on with a campaign that was stopped, killed or is undecided.",
        "layouts": "Link one program in many memory layouts.",
        "gate": "Compare two revisions of a repository; exit 1 if the later is slower.",
        "doctor": "Print what disturbs measurements here, and what mends it.",
    },
    "Explain": {
        "why": "Where the extra time of the slower condition is, and why.",
    },
    "Observe": {
        "observe": "The effect of a change from logs, among comparable rows.",
        "match": "Match comparable units in a table: the effect of a treatment.",
        "genmatch": "Search for the weights whose matches are balanced best.",
        "balance": "How alike treated and untreated units are, before and after matching.",
    },
    "Results": {
        "show": "Compute a campaign's result again from the ledger.",
        "list": "List the campaigns in the ledger.",
        "report": "Write a campaign as a page to send, for a pull request or as a table.",
        "export": "Write a campaign for other programs: CSV, Parquet, JSON, hyperfine's, BMF.",
        "import": "Keep and compare results of hyperfine, pyperf, Go, JMH and other tools.",
        "completion": "Print the completion script for bash, zsh or fish.",
    },
}
COMMANDS = {name: words for group in GROUPS.values() for name, words in group.items()}


class LazyCommands(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; ``None`` if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"equipoise.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        widest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                # Of one width, so that the groups stand in one table.
                formatter.write_dl(
                    [(f"{name:{widest}}", words) for name, words in commands.items()]
                )


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"equipoise {version('equipoise')}")
        context.exit()


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def cli() -> None:
    """Is one thing really faster than another, and by how much?

    Runs the commands in random order, may be watched at every look, and stops when it knows.
    """


def main() -> NoReturn:
    """Run the command line and exit with the status of design.md §4."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit status."""
    try:
        status = cli.main(list(arguments), prog_name="equipoise", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except EquipoiseError as error:
        _complain(error.what, error.mend)
        return error.exit_status
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return EXIT_UNUSABLE_INPUT
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "equipoise"
        # What may be chosen from would stand on lines of its own.
        _complain(" ".join(error.format_message().split()), f"see {where} --help")
        return EXIT_UNUSABLE_INPUT
    except click.ClickException as error:
        _complain(error.format_message(), None)
        return EXIT_UNUSABLE_INPUT
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; nothing that is still buffered may complain of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Of all that is asked of a path, any question may be answered so.
        if error.errno != errno.ENAMETOOLONG:
            raise
        name = str(error.filename)
        _complain(f"the name {name[:SHOWN]}… of {len(name)} letters is too long", "shorten it")
        return EXIT_UNUSABLE_INPUT


def _complain(what: str, mend: str | None) -> None:
    from equipoise.report.safe_text import visible

    click.echo(f"equipoise: {visible(what)}", err=True)
    if mend:
        click.echo(f"  mend: {visible(mend)}", err=True)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
