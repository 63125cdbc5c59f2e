"""``equipoise run``: a study, from its file or a built-in one."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from equipoise.campaign import conduct
from equipoise.campaign.progress import ProgressListener
from equipoise.cli import options
from equipoise.cli.finish import show_after
from equipoise.cli.layouts_asked import over_layouts
from equipoise.cli.study_data import with_data
from equipoise.cli.wanted import Wanted
from equipoise.design.choice import (
    chosen_levels,
    quick_form,
    with_command,
    with_levels,
    without_idle_factors,
)
from equipoise.design.coin import fresh_seed
from equipoise.design.grid import Grid, build_lines, grid_of
from equipoise.design.site import setting_place, without_missing
from equipoise.measure.builds import build_levels
from equipoise.measure.counters import COUNTERS, counters_among
from equipoise.measure.here import site_here
from equipoise.measure.trials import own_environment
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Study
from equipoise.report.safe_text import visible
from equipoise.studies.catalogue import find_study
from equipoise.studies.reader.study import read_study

BUILDS = "builds"
"""Beside the ledger."""


@click.command(
    "run",
    epilog="Example: equipoise run allocators --quick --factor allocator=glibc,jemalloc",
)
@click.argument("study", metavar="STUDY.toml | NAME")
@click.option("--quick", is_flag=True, help="Run the study's quick form.")
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=LEVEL,…",
    help="Run these levels of a factor only; of a factor of plain values, set them.",
)
@click.option("--command", "other_command", metavar="CMD", help="Ask it of this program instead.")
@click.option(
    "-w",
    "--warmup",
    type=click.IntRange(min=0, max=1000),
    metavar="N",
    show_default="the study's, or 1",
    help="Trials of each condition before the first block, never analysed.",
)
@click.option(
    "--timeout",
    type=options.FiniteRange(min=0, min_open=True),
    metavar="SECONDS",
    show_default="the study's, or 600",
    help="End a trial after so long; it counts as slowest.",
)
@options.layout_options
@options.study_stopping_options
@options.study_judging_options
@options.ledger_option
@click.option("--durable", is_flag=True, help="Let each trial survive a loss of power, too.")
@options.hyperfine_exports
@options.report_option
@options.show_env_option
@options.why_option
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    show_default="figures/RUN beside the ledger",
    help="Where a built-in study's own figures go.",
)
@options.turn_option
@options.output_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Run a study: a workload under every combination of its factors' levels.

    Each block runs every condition once in random order. A comparison that is decided gets no
    more trials, so that the open ones get the budget. `equipoise list studies` lists the
    built-in ones; the form of a file is in docs/studies.md.
    """
    for name in ("alpha", "min_effect"):
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            given[name] = None
    path, shown = find_study(given["study"])
    study = _chosen(read_study(path, shown, counters=COUNTERS), given)
    wanted = Wanted.from_options(given)
    site = site_here()
    study, idle = without_idle_factors(study)
    study, missing = without_missing(study, site)
    study, stand_in = with_data(study, wanted.ledger)
    notices = (*idle, *missing, *stand_in)
    if sys.stderr.isatty() and not wanted.quiet:
        # They stand among the result's warnings too, but that may be hours from now.
        for notice in notices:
            print(f"equipoise: {visible(notice.summary)}", file=sys.stderr)
            print(f"  hint: {visible(notice.hint)}", file=sys.stderr)
    lines = build_lines(study)

    def planned(grid: Grid) -> tuple[Plan, tuple[CampaignWarning, ...]]:
        asked = study.measure
        return over_layouts(plan_of(study, grid, given), asked.layouts, asked.aslr)

    # Without anything to build, what is wrong is told before waiting for another campaign.
    early = None if lines else planned(grid_of(study, site, {}))

    def campaign(ledger: conduct.CampaignStore, watcher: ProgressListener) -> str:
        home = wanted.ledger.parent / BUILDS
        if early is not None:
            plan, more = early
        else:
            builds = build_levels(lines, home, own_environment(), os.getcwd())
            plan, more = planned(grid_of(study, site, builds))
        try:
            return conduct.start(plan, ledger, watcher, warnings=(*notices, *more))
        except TookNoEffect as error:
            levels = next(one.levels for one in plan.conditions if one.name == error.condition)
            place = setting_place(study, levels, error.key, error.value)
            raise place.fail(error.what, error.hint) from None

    return show_after(campaign, wanted, about_s=study.measure.about_s)


def plan_of(study: Study, grid: Grid, given: dict[str, Any]) -> Plan:
    """The plan of a study; what an option gives comes before what the study says.

    Raises
    ------
    UnusableInput
        The limits contradict each other.
    """
    asked = study.measure

    def first(option: str, of_study: Any, otherwise: Any) -> Any:
        values = (given[option], of_study)
        return next((value for value in values if value is not None), otherwise)

    usual, judged = Stopping(), Judgement()
    min_blocks = first("min_blocks", asked.min_blocks, None)
    stopping = Stopping(
        blocks=first("blocks", asked.blocks, options.STUDY_BLOCKS),
        min_blocks=usual.min_blocks if min_blocks is None else min_blocks,
        min_blocks_explicit=min_blocks is not None,
        budget_s=first("budget", asked.budget_s, usual.budget_s),
        precision=first("precision", asked.precision, None),
        leave_out_decided=True,
    )
    if stopping.min_blocks_explicit and stopping.min_blocks > stopping.blocks:
        raise UnusableInput(
            f"at least {stopping.min_blocks} blocks are more than at most {stopping.blocks}",
            hint="lower the one or raise the other",
        )
    primary, *others = asked.metrics
    return Plan(
        study=study.name,
        conditions=grid.conditions,
        measure=Measure(
            working_folder=os.getcwd(),
            timeout_s=first("timeout", asked.timeout_s, 600.0),
            warmup=first("warmup", asked.warmup, 1),
            washout=asked.washout,
            ignore_failure=asked.ignore_failure,
            counters=counters_among(asked.metrics),
        ),
        stopping=stopping,
        judgement=Judgement(
            alpha=first("alpha", asked.alpha, judged.alpha),
            min_effect=first("min_effect", asked.min_effect, judged.min_effect),
            primary_metric=primary,
            other_metrics=tuple(others),
        ),
        seed=fresh_seed() if given["seed"] is None else given["seed"],
        chosen_contrasts=grid.contrasts,
        sizes=tuple(factor.name for factor in study.factors if factor.role == "size"),
    )


def _chosen(study: Study, given: dict[str, Any]) -> Study:
    if given["quick"]:
        study = quick_form(study)
    if given["other_command"] is not None:
        study = with_command(study, _words(given["other_command"]))
    asked = {key: given[key] for key in ("layouts", "aslr") if given[key] is not None}
    study = dataclasses.replace(study, measure=dataclasses.replace(study.measure, **asked))
    return with_levels(study, chosen_levels(study, given["factors"]))


def _words(line: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise UnusableInput(
            f"cannot split the command {line!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash",
        ) from error
    if not words:
        raise UnusableInput("--command is empty", hint="write the program that is to be run")
    return words
