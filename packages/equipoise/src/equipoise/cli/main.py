"""Entry point of `equipoise`: find the command, run it, and report an error in one or two lines."""

from __future__ import annotations

import errno
import functools
import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import NoReturn

import click

from equipoise.cli.streams import OutputFailed, output_failure, prepare_standard_streams, say
from equipoise.files.limits import environment_fault, limit_reached
from equipoise.model.errors import (
    EXIT_DONE,
    EXIT_INTERNAL_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OUTPUT_FAILED,
    EXIT_UNUSABLE_INPUT,
    UnusableInput,
    UserError,
)
from equipoise.model.kinds import Command, every_kind
from equipoise.model.packages import COMMANDS_OF_STUDIES, missing_studies_error
from equipoise.shared.spelling import command_line_spelling

# The summaries of the commands are here, so that `equipoise --help` imports no command.
SUMMARIES = {
    "Measure": {
        "compare": "Compare the speed of commands, or describe a single command.",
        "run": "Run a study: your file or a built-in one.",
        "resume": "Continue a campaign that was stopped, killed or is undecided.",
        "layouts": "Link one program in many memory layouts.",
        "doctor": "Print what disturbs measurements here, and how to end it.",
    },
    "Explain": {},
    "Observe": {
        "observe": "The effect of a change from logs, among comparable rows.",
        "match": "Match comparable units in a table: the effect of a treatment.",
        "genmatch": "Search for the covariate weights with the best balance.",
        "balance": "How alike treated and untreated units are, before and after matching.",
    },
    "Results": {
        "show": "Compute a campaign's result again from the ledger.",
        "list": "List the campaigns in the ledger.",
        "report": "Write a report of a campaign: HTML, Markdown, LaTeX or CSV.",
        "export": "Write the trials of a campaign for other programs.",
        "completion": "Print the completion script for bash, zsh or fish.",
    },
    "Team": {
        "merge": "Merge ledgers into one ledger that has every run once.",
        "site": "Write the campaigns of ledgers as pages that need no server.",
    },
}
"""Summaries of commands by heading and name; kinds of campaign add more (`commands`)."""


@functools.cache
def commands() -> Mapping[str, Mapping[str, Command]]:
    """Return all commands by heading and name, including commands of kinds of campaign."""
    groups = {
        heading: {
            name: Command(f"equipoise.cli.{name}", summary, heading)
            for name, summary in summaries.items()
        }
        for heading, summaries in SUMMARIES.items()
    }
    for kind in every_kind():
        for name, command in kind.commands.items():
            group = list(groups.setdefault(command.group, {}).items())
            names = [other_name for other_name, _ in group]
            # The command goes below the command `after`, or to the end of its group.
            index = names.index(command.after) + 1 if command.after in names else len(names)
            group.insert(index, (name, command))
            groups[command.group] = dict(group)
    return groups


def command_names() -> list[str]:
    """Return the names of all commands in the order in which a newcomer needs them."""
    return [name for group in commands().values() for name in group]


def module_of_command(name: str) -> str | None:
    """Return the module of a command; ``None`` if no command has this name.

    The kinds of campaign are loaded only for a command that is not in `SUMMARIES`.
    """
    if any(name in group for group in SUMMARIES.values()):
        return f"equipoise.cli.{name}"
    return next((group[name].module for group in commands().values() if name in group), None)


_GARBAGE_THRESHOLD = 20_000
"""Number of new objects after which Python collects garbage; Python's default is 700."""


class LazyCommands(click.Group):
    """Group of all commands; a command is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a newcomer needs them."""
        return command_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; return ``None`` if no command has this name."""
        module = module_of_command(cmd_name)
        if module is None:
            return None
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raise `UnusableInput` if no command has this name; the hint has commands with similar names.
        """
        name = args[0]
        if module_of_command(name) is not None or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if name in COMMANDS_OF_STUDIES:
            raise missing_studies_error(f"the command {name}")
        raise UnusableInput(f"there is no command {name!r}", hint=_hint_for_unknown(name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        name_width = max(map(len, command_names()))
        for heading, group in commands().items():
            if not group:
                continue
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{name_width}}", command.summary) for name, command in group.items()]
                )


def _hint_for_unknown(name: str) -> str:
    import difflib
    import shlex

    if " " in name.strip():
        return f"to measure it: equipoise compare {shlex.quote(name)}"
    names = difflib.get_close_matches(name.lower(), command_names(), cutoff=0.7)
    return f"did you mean {' or '.join(names)}?" if names else "see equipoise --help"


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    package_name="equipoise", message="equipoise %(version)s", help="Print the version and exit."
)
def cli() -> None:
    """Tell whether one thing is really faster than another, by how much, and why.

    Equipoise runs commands in random order and stops when the answer is clear. For identical
    commands at most 5 % of campaigns report a difference, however often you look.
    """


def main() -> NoReturn:
    """Run the command line and exit with its status (docs/reference/commands.md)."""
    prepare_standard_streams()
    signal.signal(signal.SIGTERM, _interrupt)
    # The objects of imported modules live until the end, so early collections find no garbage.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    status = run(sys.argv[1:])
    gc.freeze()
    try:
        # If the exit of Python flushed and failed, the status would be 120, with a traceback.
        sys.stdout.flush()
    except OutputFailed as failure:
        status = status or _report_output_failure(failure)
    sys.exit(status)


@command_line_spelling()
def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit status."""
    try:
        status = cli.main(list(arguments), prog_name="equipoise", standalone_mode=False)
        sys.stdout.flush()
        if failure := output_failure():
            raise failure
        return status if isinstance(status, int) else EXIT_DONE
    except click.exceptions.NoArgsIsHelpError as error:
        return _print_help(error)
    except click.UsageError as error:
        command_path = error.ctx.command_path if error.ctx else "equipoise"
        # click puts each choice of an option on its own line; a message has one line.
        say(" ".join(error.format_message().split()), f"see {command_path} --help")
        return EXIT_UNUSABLE_INPUT
    except click.ClickException as error:
        say(error.format_message())
        return EXIT_UNUSABLE_INPUT
    except (click.Abort, KeyboardInterrupt):
        # Dataclasses run code by `exec`. If SIGINT interrupts this code, CPython remembers it, and
        # later ends `python -m` by SIGINT. A complete `exec` makes CPython forget it.
        exec("")
        return EXIT_INTERRUPTED
    except OutputFailed as error:
        return _report_output_failure(error)
    except BrokenPipeError:
        # Nobody reads our output any more, so the buffered rest goes to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "equipoise_matching":
            from equipoise.matching import missing_matching_error

            return _report_user_error(missing_matching_error())
        if isinstance(error, UserError):
            return _report_user_error(_missing_working_folder() or limit_reached(error) or error)
        return _report_internal_error(error, arguments)
    except SystemExit as error:
        # click raises SystemExit(1) on a broken pipe, but our status 1 means "gate failed".
        system_error = error.__context__
        if not isinstance(system_error, OSError):
            raise
        return _report_internal_error(system_error, arguments)


def _print_help(error: click.exceptions.NoArgsIsHelpError) -> int:
    try:
        click.echo(error.format_message())
    except OutputFailed as failure:
        return _report_output_failure(failure)
    return EXIT_UNUSABLE_INPUT


def _report_output_failure(failure: OutputFailed) -> int:
    if failure.reader_has_gone:
        return EXIT_DONE
    is_closed = failure.error.errno == errno.EBADF
    reason = "it is closed" if is_closed else (failure.error.strerror or str(failure)).lower()
    say(f"cannot write to standard output: {reason}; `equipoise show` shows a result again")
    return EXIT_OUTPUT_FAILED


def _report_internal_error(error: Exception, arguments: Sequence[str]) -> int:
    system_fault = limit_reached(error) or _missing_working_folder()
    if system_fault is None and isinstance(error, OSError):
        system_fault = environment_fault(error)
    if system_fault is not None:
        return _report_user_error(system_fault)
    from equipoise.cli import crash

    crash_file = crash.write_crash_file(error, arguments)
    attachment = "" if crash_file is None else f" with {crash_file}"
    say(f"internal error: {crash.summary(error, arguments)}; please report it{attachment}")
    return EXIT_INTERNAL_ERROR


def _missing_working_folder() -> UnusableInput | None:
    try:
        os.getcwd()
    except FileNotFoundError:
        return UnusableInput(
            "the working folder was deleted", hint="change to a folder that exists, and run again"
        )
    return None


def _report_user_error(error: UserError) -> int:
    say(error.what, error.hint)
    return error.exit_status


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
