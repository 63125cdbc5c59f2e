"""``equipoise compare``: is one command faster than another?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.finish import conduct_and_show
from equipoise.cli.layouts_asked import over_layouts
from equipoise.cli.wanted import Wanted
from equipoise.cli.what_varies import what_varies
from equipoise.design.coin import fresh_seed
from equipoise.design.commands import (
    Asked,
    conditions_of,
    parameter_list,
    parameter_scan,
    with_control,
)
from equipoise.measure.counters import counters_among
from equipoise.measure.installation import native_programs
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Judgement, Measure, Output, Plan

DEFAULT_SHELL = "/bin/sh"


@click.command(
    "compare",
    epilog="Example: equipoise compare 'sort --parallel=1 words' 'sort --parallel=2 words'",
)
@click.argument("commands", nargs=-1, metavar="CMD_A CMD_B [CMD …]")
@click.option(
    "-n", "--command-name", "names", multiple=True, metavar="NAME", help="Name a condition."
)
@click.option(
    "--env",
    "environments",
    multiple=True,
    metavar="WHICH:KEY=VALUE",
    help="Set one condition's environment; WHICH is a name or a position from 1.",
)
@click.option("-L", "--parameter-list", type=(str, str), multiple=True, metavar="NAME VALUES")
@click.option("-P", "--parameter-scan", type=(str, str, str), multiple=True, metavar="NAME MIN MAX")
@click.option("-D", "--parameter-step-size", metavar="STEP", help="The step of -P.")
@click.option("-s", "--setup", multiple=True, metavar="CMD", help="Run before its first trial.")
@click.option("-p", "--prepare", multiple=True, metavar="CMD", help="Run before each trial.")
@click.option("-C", "--conclude", multiple=True, metavar="CMD", help="Run after each trial.")
@click.option("-c", "--cleanup", multiple=True, metavar="CMD", help="Run after its last trial.")
@click.option("--input", "input_file", metavar="FILE", help="Give this file on standard input.")
@click.option(
    "--output",
    "output_kind",
    metavar="null|inherit|count|FILE",
    default="null",
    show_default=True,
    help="Where standard output goes.",
)
@click.option("-i", "--ignore-failure", is_flag=True, help="Count trials that exit non-zero.")
@click.option(
    "-S", "--shell", metavar="SHELL", help="Run through this shell; 'default' is /bin/sh."
)
@click.option(
    "-w",
    "--warmup",
    type=click.IntRange(min=0, max=1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Trials of each condition before the first block, never analysed.",
)
@options.timeout_option
@click.option(
    "--washout", is_flag=True, help="Run each condition twice in a row and count the second."
)
@click.option(
    "--metrics",
    metavar="NAME,…",
    default=PRIMARY_METRIC,
    show_default=True,
    help="What is compared; the first decides, the others are judged beside it.",
)
@click.option("--control", is_flag=True, help="Run the baseline a second time, to check the tool.")
@click.option(
    "--what-varies",
    is_flag=True,
    help="Hold the sources of chance of one command and say which its spread comes from.",
)
@options.layout_options
@options.stopping_options
@options.judging_options
@options.ledger_option
@click.option("--durable", is_flag=True, help="Let each trial survive a loss of power, too.")
@options.hyperfine_exports
@options.report_option
@options.show_env_option
@options.why_option
@options.turn_option
@options.output_options
def command(**given: Any) -> int:
    """Is one command faster than another? The first is the baseline.

    Each block runs every command once in random order; after each block Equipoise looks, and
    it stops as soon as it knows. A command is split into words and run without a shell.
    """
    if given["what_varies"]:
        if given["why"]:
            raise UnusableInput(
                "--what-varies looks at one command, --why at the gap of two",
                hint="leave out one of the two",
            )
        if given["layouts"] is not None:
            raise UnusableInput(
                "--what-varies holds the parts of a layout one at a time, --layouts draws them",
                hint="leave out one of the two",
            )
        plan, notices = what_varies(plan_of(given, least=1), own_environment())
    else:
        plan, notices = over_layouts(plan_of(given), given["layouts"], given["aslr"])
    return conduct_and_show(plan, Wanted.from_options(given), notices)


def plan_of(given: dict[str, Any], *, least: int = 2) -> Plan:
    """The plan that the options ask for, of at least so many commands.

    Raises
    ------
    UnusableInput
        The options make no plan.
    """
    conditions = conditions_of(
        Asked(
            commands=tuple(given["commands"]),
            names=given["names"],
            environments=given["environments"],
            parameters=_parameters(given),
            shell=DEFAULT_SHELL if given["shell"] == "default" else given["shell"],
            layouts=given["layouts"] or 0,
            setup=given["setup"],
            prepare=given["prepare"],
            conclude=given["conclude"],
            cleanup=given["cleanup"],
        ),
        native_programs(),
        least=least,
    )
    primary_metric, *other_metrics = options.metrics_named(given["metrics"])
    controlled = with_control(conditions) if given["control"] else conditions
    return Plan(
        study="compare",
        conditions=controlled,
        measure=Measure(
            working_folder=os.getcwd(),
            input=_input(given["input_file"]),
            output=_output(given["output_kind"]),
            timeout_s=given["timeout"],
            warmup=given["warmup"],
            washout=given["washout"],
            ignore_failure=given["ignore_failure"],
            counters=counters_among((primary_metric, *other_metrics)),
        ),
        stopping=options.stopping_of(given),
        judgement=Judgement(
            alpha=given["alpha"],
            min_effect=given["min_effect"],
            primary_metric=primary_metric,
            other_metrics=tuple(other_metrics),
        ),
        seed=fresh_seed() if given["seed"] is None else given["seed"],
        control=len(conditions) if given["control"] else None,
    )


def _parameters(given: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    parameters: dict[str, tuple[str, ...]] = {}
    for name, values in given["parameter_list"]:
        _take(parameters, name, parameter_list(values))
    for name, low, high in given["parameter_scan"]:
        _take(parameters, name, parameter_scan(low, high, given["parameter_step_size"]))
    return parameters


def _take(parameters: dict[str, tuple[str, ...]], name: str, values: tuple[str, ...]) -> None:
    if name in parameters:
        raise UnusableInput(f"the parameter {name} is given twice", hint="leave one of them out")
    parameters[name] = values


def _input(path: str | None) -> str | None:
    if path is None or path == "null":
        return None
    if not os.path.isfile(path):
        raise UnusableInput(f"--input {path}: there is no such file", hint="check the path")
    if not os.access(path, os.R_OK):
        raise UnusableInput(f"--input {path} cannot be read", hint="check its permissions")
    return os.path.abspath(path)


def _output(kind: str) -> Output:
    match kind:
        case "null":
            return Output("discard")
        case "inherit" | "count":
            return Output(kind)
        case "pipe":
            raise UnusableInput(
                "--output pipe would let the reader of the pipe into the measurement",
                hint="--output count sends the output to a file and counts it",
            )
        case _:
            folder = Path(kind).resolve().parent
            if not folder.is_dir():
                raise UnusableInput(
                    f"--output {kind}: there is no folder {folder}", hint="make it first"
                )
            return Output("file", os.path.abspath(kind))
