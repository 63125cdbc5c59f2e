"""Options of hyperfine 1 and 2 that `equipoise compare` accepts under hyperfine's names.

Each option is translated into an option of Equipoise. If an option has another effect than in
hyperfine, a note explains the difference.
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
"""Shell of ``--shell default``."""
STYLE_NAMES = ("auto", "basic", "full", "nocolor", "color", "none")
"""Values of hyperfine's ``--style``."""
TIME_UNITS = {
    "ns": ("ns", "nanosecond", "nanoseconds"),
    "µs": ("us", "µs", "microsecond", "microseconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "second", "seconds"),
    "min": ("min", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
}
"""Names of each unit of ``--time-unit``."""
METRIC_NAMES = {
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
"""Equipoise's name of each metric, by hyperfine's name."""
METRIC_GROUPS = {
    "default": ("time_wall_clock", "memory_peak_resident"),
    "time": ("time_wall_clock", "time_cpu", "time_user", "time_system"),
    "all": tuple(METRIC_NAMES),
}
"""Values of hyperfine's ``--metrics`` that stand for several metrics."""
_SHELL_NAMES = frozenset({"sh", "bash", "dash", "fish", "ksh", "zsh", "default", "none"})
"""Values of ``-S`` in hyperfine 1; here, ``-S`` takes no value."""
_INTERPRETER_NAME = re.compile(r"(python|pypy)[\d.]*|(ba|da|k|z|fi|c|tc)?sh")
"""Pattern of the name of a program that runs the code after its option ``-c``."""
_IGNORED_EXITS_OPTION = "--ignored-exits"
"""Hidden option that takes the exit statuses of ``--ignore-failure=1,2``."""


class HyperfineCommand(CommandRecorder):
    """A command whose option ``--ignore-failure`` may have a value, as in hyperfine."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; ``--ignore-failure=1,2`` becomes ``--ignored-exits=1,2``."""
        end = args.index("--") if "--" in args else len(args)
        if not ctx.resilient_parsing:
            _refuse_split_command(args[:end])
        try:
            options = map(_translate_ignore_failure, args[:end])
            return super().parse_args(ctx, [*options, *args[end:]])
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            raise UnusableInput(
                f"compare has no option {error.option_name}",
                hint="if the option belongs to a command, put the whole command in quotes: "
                "equipoise compare 'ls -l' 'ls -lR'",
            ) from None


def _refuse_split_command(arguments: list[str]) -> None:
    """Refuse ``python3 -c CODE`` without quotes, in which ``-c`` would mean ``--cleanup``."""
    for index, (program, option) in enumerate(itertools.pairwise(arguments)):
        is_option_value = index > 0 and arguments[index - 1].startswith("-")
        is_interpreter = _INTERPRETER_NAME.fullmatch(os.path.basename(program))
        if option == "-c" and is_interpreter and not is_option_value:
            command = shlex.join(arguments[index : index + 3])
            raise UnusableInput(
                f"-c after {program} means --cleanup here; it is not a part of the command",
                hint=f"put the whole command in quotes: {shlex.quote(command)}",
            )


def _translate_ignore_failure(argument: str) -> str:
    option, equals, value = argument.partition("=")
    if option not in ("-i", "--ignore-failure") or not equals:
        return argument
    return "--ignore-failure" if value == "all-non-zero" else f"{_IGNORED_EXITS_OPTION}={value}"


def _read_statuses(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, ...]:
    if value is None:
        return ()
    statuses = [status.strip() for status in value.split(",")]
    if not all(status.isascii() and status.isdigit() and int(status) < 256 for status in statuses):
        raise UnusableInput(
            f"--ignore-failure={value} is not a list of exit statuses",
            hint="give statuses from 0 to 255, such as --ignore-failure=1,2",
        )
    return tuple(map(int, statuses))


hyperfine_options: Option = option_group(
    number_option(
        "-r",
        "--runs",
        range_name="blocks",
        metavar="N",
        show_default=False,
        help="Run each command exactly N times: --blocks N --min-blocks N.",
    ),
    number_option(
        *("-m", "--min-runs"),
        range_name="min_blocks",
        metavar="N",
        help="The same as --min-blocks.",
    ),
    number_option(
        *("-M", "--max-runs"), range_name="blocks", metavar="N", help="The same as --blocks."
    ),
    flag("-S", "default_shell", help="The same as --shell default."),
    flag("-N", "no_shell", help="Run without a shell, which is the default."),
    flag("--show-output", help="The same as --output inherit."),
    click.option("--reference", metavar="CMD", help="Use CMD as the baseline, before all others."),
    click.option("--reference-name", metavar="NAME", help="Name the command of --reference."),
    click.option("--style", type=click.Choice(STYLE_NAMES), hidden=True),
    click.option(
        "-u",
        "--time-unit",
        "time_unit_name",
        type=click.Choice([name for names in TIME_UNITS.values() for name in names]),
        metavar="UNIT",
        help="Unit of the times in tables that --export-… writes.",
    ),
    click.option("--sort", type=click.Choice(["auto", "command", "mean-time"]), hidden=True),
    number_option(
        "--min-benchmarking-time", range_name="min_seconds", metavar="SECONDS", hidden=True
    ),
    click.option(_IGNORED_EXITS_OPTION, callback=_read_statuses, hidden=True),
    export_option("asciidoc", is_hidden=True),
    export_option("orgmode", is_hidden=True),
)


class HyperfineOptions(Struct, frozen=True):
    """Values of the options that only hyperfine has."""

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

    def translated_options(self, options: CompareOptions) -> CompareOptions:
        """Return the options of a comparison, with hyperfine's options translated into them.

        Raise `UnusableInput` if two options exclude each other, or ``-S`` names a shell.
        """
        if self.reference is None and self.reference_name is not None:
            raise UnusableInput(
                "--reference-name is given without --reference",
                hint="add --reference CMD, or name a command with -n NAME",
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
            shell=self._translated_shell(options),
            outputs=self._translated_outputs(options.outputs),
            metrics=_translate_metrics(str(options.metrics)),
            ignore_failure=options.ignore_failure or bool(options.ignored_exits),
            limits=self._translated_limits(options.limits),
        )

    def translated_output(self, options: OutputOptions) -> OutputOptions:
        """Return the output options, with ``--style`` and ``--time-unit`` translated into them."""
        unit_name = self.time_unit_name
        unit = next((unit for unit, names in TIME_UNITS.items() if unit_name in names), None)
        return replace(
            options,
            quiet=options.quiet or self.style == "none",
            color=options.color and self.style not in ("basic", "nocolor"),
            exports=replace(options.exports, time_unit=unit),
        )

    def notes(self, options: CompareOptions) -> Iterator[str]:
        """Yield a note on each option whose effect differs from hyperfine's."""
        if self.default_shell:
            yield "-S: each time includes the start of the shell; it is not subtracted"
        if "pipe" in options.outputs:
            yield (
                "--output pipe: the output is written to a file, as with --output count, because "
                "the reader of a pipe would change the measured time"
            )
        if self.style in ("full", "color"):
            yield f"--style {self.style}: colour and progress appear only on a terminal"
        elif self.style == "basic":
            yield "--style basic: no colour; a terminal still shows the progress"
        if self.time_unit_name is not None:
            yield "--time-unit: only tables of --export-… use it; the screen chooses its units"
        if _has_unit(str(options.metrics)):
            yield "--metrics: the units are ignored; the screen chooses its units"
        if self.sort is not None:
            yield "--sort: ignored; rows keep the order of the commands, and a ranking follows"

    def _translated_limits(self, options: CampaignLimits) -> CampaignLimits:
        values_by_option = {
            "runs": self.runs,
            "min_runs": self.min_runs,
            "max_runs": self.max_runs,
            "min_benchmarking_time": self.min_benchmarking_time,
            "blocks": options.blocks,
            "min_blocks": options.min_blocks,
            "min_seconds": options.min_seconds,
        }
        for option, other_option in _EXCLUSIVE_OPTIONS:
            if values_by_option[option] is not None and values_by_option[other_option] is not None:
                first, second = map(option_named, (option, other_option))
                raise UnusableInput(
                    f"{first} and {second} exclude each other", hint="remove one of these options"
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

    def _translated_shell(self, options: CompareOptions) -> str | None:
        shell = options.shell
        if sum((shell is not None, self.default_shell, self.no_shell)) > 1:
            raise UnusableInput(
                "-S, -N and --shell exclude each other", hint="keep one of these options"
            )
        if self.default_shell:
            for command in map(str, options.commands):
                if os.path.basename(command) in _SHELL_NAMES:
                    raise UnusableInput(
                        f"-S has no value (since hyperfine 2), so {command} would be a command",
                        hint=f"name the shell with --shell {command}",
                    )
        if self.default_shell or shell == "default":
            return DEFAULT_SHELL
        return NO_SHELL if self.no_shell else shell

    def _translated_outputs(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        if not self.show_output:
            return tuple("count" if output == "pipe" else output for output in outputs)
        if outputs:
            raise UnusableInput(
                "--show-output and --output exclude each other", hint="remove one of these options"
            )
        return ("inherit",)


_EXCLUSIVE_OPTIONS = (
    *(("runs", other) for other in ("min_runs", "max_runs", "blocks", "min_blocks")),
    ("min_runs", "min_blocks"),
    ("max_runs", "blocks"),
    ("min_benchmarking_time", "min_seconds"),
)
"""Pairs of options that set the same limit."""


def _translate_metrics(value: str) -> str:
    """Return a value of hyperfine's ``--metrics`` as a value of our ``--metrics``."""
    if value.strip() in METRIC_GROUPS:
        return ",".join(METRIC_NAMES[name] for name in METRIC_GROUPS[value.strip()])
    own_names = []
    for metric in value.split(","):
        name, _, _ = metric.strip().partition(":")
        own_names.append(METRIC_NAMES[name] if name in METRIC_NAMES else metric)
    return ",".join(own_names)


def _has_unit(value: str) -> bool:
    """Return whether a metric of hyperfine has a unit, as in ``time_user:ms``."""
    return any(
        metric.strip().partition(":")[0] in METRIC_NAMES and ":" in metric
        for metric in value.split(",")
    )
