"""hyperfine's options under hyperfine's names, of versions 1 and 2: each becomes one of ours.

Where an option must mean something else here, it is accepted too, and a note explains
its effect.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterator

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli.command_line import CommandRecorder
from equipoise.cli.options.declaration import (
    Option,
    flag,
    number_option,
    option_group,
    option_named,
)
from equipoise.cli.options.outputs import OutputOptions, export_option
from equipoise.design.commands import NO_SHELL, CompareOptions
from equipoise.design.limits import CampaignLimits
from equipoise.model.errors import UnusableInput

DEFAULT_SHELL = "/bin/sh"
STYLES = ("auto", "basic", "full", "nocolor", "color", "none")
TIME_UNITS = {
    "ns": ("ns", "nanosecond", "nanoseconds"),
    "µs": ("us", "µs", "microsecond", "microseconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "second", "seconds"),
    "min": ("min", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
}
"""Names of each unit of ``--time-unit``."""
METRICS = {
    "time_wall_clock": "wall_s",
    "time_cpu": "cpu_s",
    "time_user": "user_s",
    "time_system": "sys_s",
    "memory_peak_resident": "max_rss_bytes",
    "cpu_cycles": "cycles",
    "instructions": "instructions",
    "cache_references": "cache_references",
    "cache_misses": "cache_misses",
    "branch_misses": "branch_misses",
}
"""Our name of each metric."""
PRESETS = {
    "default": ("time_wall_clock", "memory_peak_resident"),
    "time": ("time_wall_clock", "time_cpu", "time_user", "time_system"),
    "all": tuple(METRICS),
}
_SHELLS = frozenset({"sh", "bash", "dash", "fish", "ksh", "zsh", "default", "none"})
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*|(ba|da|k|z|fi|c|tc)?sh")
_IGNORED_EXITS = "--ignored-exits"


class HyperfineCommand(CommandRecorder):
    """A command that takes ``--ignore-failure`` with and without a value, as hyperfine does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the value of ``--ignore-failure=1,2`` in an option of ours."""
        end = args.index("--") if "--" in args else len(args)
        if not ctx.resilient_parsing:
            _refuse_split_command(args[:end])
        try:
            return super().parse_args(ctx, [*map(_ignoring, args[:end]), *args[end:]])
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            raise UnusableInput(
                f"compare has no option {error.option_name}",
                hint="if it belongs to a command, put that whole command in quotes: "
                "equipoise compare 'ls -l' 'ls -lR'",
            ) from None


def _refuse_split_command(arguments: list[str]) -> None:
    """Refuse ``python3 -c CODE`` without quotes: ``-c`` is ``--cleanup`` here.

    Raise `UnusableInput` if ``-c`` is right behind the bare name of an interpreter.
    """
    for place, (program, option) in enumerate(itertools.pairwise(arguments)):
        is_value = place > 0 and arguments[place - 1].startswith("-")
        if option == "-c" and not is_value and _INTERPRETER.fullmatch(os.path.basename(program)):
            whole = shlex.join(arguments[place : place + 3])
            raise UnusableInput(
                f"-c behind {program} is --cleanup here, and no part of the command",
                hint=f"put the whole command in quotes: {shlex.quote(whole)}",
            )


def _ignoring(argument: str) -> str:
    option, equals, value = argument.partition("=")
    if option not in ("-i", "--ignore-failure") or not equals:
        return argument
    return "--ignore-failure" if value == "all-non-zero" else f"{_IGNORED_EXITS}={value}"


def _exits(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...]:
    if value is None:
        return ()
    codes = [code.strip() for code in value.split(",")]
    if not all(code.isascii() and code.isdigit() and int(code) < 256 for code in codes):
        raise UnusableInput(
            f"--ignore-failure={value} is not a list of exit statuses", hint="as in -i=1,2"
        )
    return tuple(map(int, codes))


hyperfine_options: Option = option_group(
    number_option(
        "-r",
        "--runs",
        number="blocks",
        metavar="N",
        show_default=False,
        help="Exactly N runs of each command: --blocks N --min-blocks N.",
    ),
    number_option(
        *("-m", "--min-runs"), number="min_blocks", metavar="N", help="The same as --min-blocks."
    ),
    number_option(
        *("-M", "--max-runs"), number="blocks", metavar="N", help="The same as --blocks."
    ),
    flag("-S", "default_shell", help="The same as --shell default."),
    flag("-N", "no_shell", help="Use no shell, as usual: its operators are plain arguments."),
    flag("--show-output", help="The same as --output inherit."),
    click.option("--reference", metavar="CMD", help="The baseline, as if it were the first CMD."),
    click.option("--reference-name", metavar="NAME", help="Name the command of --reference."),
    click.option(
        "--style",
        type=click.Choice(STYLES),
        hidden=True,
    ),
    click.option(
        "-u",
        "--time-unit",
        "time_unit_name",
        type=click.Choice([name for names in TIME_UNITS.values() for name in names]),
        metavar="UNIT",
        help="The unit of tables that --export-… writes.",
    ),
    click.option("--sort", type=click.Choice(["auto", "command", "mean-time"]), hidden=True),
    number_option("--min-benchmarking-time", number="min_seconds", metavar="SECONDS", hidden=True),
    click.option(_IGNORED_EXITS, callback=_exits, hidden=True),
    export_option("asciidoc", hidden=True),
    export_option("orgmode", hidden=True),
)


class HyperfineOptions(Struct, frozen=True):
    """The options that only hyperfine has."""

    runs: int | None = None
    min_runs: int | None = None
    max_runs: int | None = None
    default_shell: bool = False
    no_shell: bool = False
    show_output: bool = False
    reference: str | None = None
    reference_name: str | None = None
    style: str | None = None
    time_unit_name: str | None = None
    sort: str | None = None
    min_benchmarking_time: float | None = None

    def comparison(self, options: CompareOptions) -> CompareOptions:
        """Return the options of a comparison with those of hyperfine among them.

        Raise `UnusableInput` if two options exclude each other, or ``-S`` is before the name of
        a shell.
        """
        if self.reference is None and self.reference_name is not None:
            raise UnusableInput(
                "--reference-name without --reference", hint="name conditions with -n NAME"
            )
        commands, names = options.commands, options.names
        if self.reference is not None:
            commands = (self.reference, *commands)
            if self.reference_name is not None or names:
                name = self.reference if self.reference_name is None else self.reference_name
                names = (name, *names)
        return replace(
            options,
            commands=commands,
            names=names,
            shell=self._shell(options),
            outputs=self._outputs(options.outputs),
            metrics=_metrics(str(options.metrics)),
            ignore_failure=options.ignore_failure or bool(options.ignored_exits),
            limits=self._limits(options.limits),
        )

    def output(self, options: OutputOptions) -> OutputOptions:
        """Return where the result goes, as ``--style`` and ``--time-unit`` change it."""
        unit = self.time_unit_name
        short = next((short for short, names in TIME_UNITS.items() if unit in names), None)
        return replace(
            options,
            quiet=options.quiet or self.style == "none",
            color=options.color and self.style not in ("basic", "nocolor"),
            exports=replace(options.exports, time_unit=short),
        )

    def notes(self, options: CompareOptions) -> Iterator[str]:
        """Yield a note on each option that means something else here."""
        if self.default_shell:
            yield "-S: the start of the shell counts, in every command alike; it is not subtracted"
        if "pipe" in options.outputs:
            yield (
                "--output pipe: the output goes to a file that is counted, as with --output count: "
                "who reads a pipe would be in the measurement"
            )
        if self.style in ("full", "color"):
            yield f"--style {self.style}: colour and progress are for terminals alone"
        elif self.style == "basic":
            yield "--style basic: no colour; a terminal still shows the progress"
        if self.time_unit_name is not None:
            yield "--time-unit: for the tables of --export-…; the screen has a unit for each value"
        if _has_unit(str(options.metrics)):
            yield "--metrics: no unit is set; the screen has a unit for each value"
        if self.sort is not None:
            yield (
                "--sort: rows are in the order of the commands; the ranking names the contenders"
            )

    def _limits(self, options: CampaignLimits) -> CampaignLimits:
        """Return the limits with the numbers of runs and seconds."""
        ours = {
            "runs": self.runs,
            "min_runs": self.min_runs,
            "max_runs": self.max_runs,
            "min_benchmarking_time": self.min_benchmarking_time,
            "blocks": options.blocks,
            "min_blocks": options.min_blocks,
            "min_seconds": options.min_seconds,
        }
        for option, other in _EXCLUSIVE:
            if ours[option] is not None and ours[other] is not None:
                first, second = map(option_named, (option, other))
                raise UnusableInput(
                    f"{first} and {second} exclude each other", hint="leave one out"
                )
        return replace(
            options,
            blocks=self.runs or self.max_runs or options.blocks,
            min_blocks=self.runs or self.min_runs or options.min_blocks,
            min_seconds=(
                options.min_seconds
                if self.min_benchmarking_time is None
                else self.min_benchmarking_time
            ),
        )

    def _shell(self, options: CompareOptions) -> str | None:
        shell, default, none = options.shell, self.default_shell, self.no_shell
        if sum((shell is not None, default, none)) > 1:
            raise UnusableInput("-S, -N and --shell exclude each other", hint="give one of them")
        if default:
            for command in map(str, options.commands):
                if os.path.basename(command) in _SHELLS:
                    raise UnusableInput(
                        f"-S takes no shell (since hyperfine 2), so {command} would be a command",
                        hint=f"--shell {command}",
                    )
        if default or shell == "default":
            return DEFAULT_SHELL
        return NO_SHELL if none else shell

    def _outputs(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        if not self.show_output:
            return tuple("count" if kind == "pipe" else kind for kind in outputs)
        if outputs:
            raise UnusableInput(
                "--show-output and --output exclude each other", hint="leave one out"
            )
        return ("inherit",)


_EXCLUSIVE = (
    *(("runs", other) for other in ("min_runs", "max_runs", "blocks", "min_blocks")),
    ("min_runs", "min_blocks"),
    ("max_runs", "blocks"),
    ("min_benchmarking_time", "min_seconds"),
)
"""Pairs of options that say the same."""


def _metrics(text: str) -> str:
    """Return the names of metrics, hyperfine's as ours, without its units."""
    if text.strip() in PRESETS:
        return ",".join(METRICS[name] for name in PRESETS[text.strip()])
    names = []
    for part in text.split(","):
        name, _, _ = part.strip().partition(":")
        names.append(METRICS[name] if name in METRICS else part)
    return ",".join(names)


def _has_unit(text: str) -> bool:
    return any(
        part.strip().partition(":")[0] in METRICS and ":" in part for part in text.split(",")
    )
