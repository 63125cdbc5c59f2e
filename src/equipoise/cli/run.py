"""``equipoise run``: a study, from its file or a built-in one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from equipoise.campaign import conduct
from equipoise.campaign.plans import PlanAndWarnings, study_plan
from equipoise.cli import options
from equipoise.cli.conducting import analyse, measuring, show_result
from equipoise.cli.output_options import OutputOptions
from equipoise.cli.streams import say
from equipoise.cli.study_data import with_data
from equipoise.design.choice import (
    chosen_levels,
    quick_form,
    with_command,
    with_levels,
    without_idle_factors,
)
from equipoise.design.commands import split_command
from equipoise.design.grid import build_lines, grid_of
from equipoise.design.limits import STUDY_BLOCKS, CampaignLimits
from equipoise.design.site import Site, setting_place, without_missing
from equipoise.measure.builds import build_levels
from equipoise.measure.counters import COUNTERS
from equipoise.measure.installation import host_site
from equipoise.measure.trials import own_environment
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Study
from equipoise.studies.catalogue import find_study
from equipoise.studies.reader.study import read_study

BUILDS = "builds"
"""Folder beside the ledger for the programs that levels build."""


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
@options.warmup_option(show_default="the study's, or 1")
@options.number_option(
    "--timeout",
    metavar="SECONDS",
    show_default="the study's, or 600",
    help="End a trial after so long; it counts as slowest.",
)
@options.layout_options
@options.stopping_options(
    f"the study's; {STUDY_BLOCKS} if it compares nothing",
    "the study's, or 5",
    "the study's, or 1",
    "the study's, or 60",
)
@options.patient_option
@options.judging_options(of_study=True)
@options.ledger_option
@options.durable_option
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
@options.concurrent_option
@options.output_options
def command(**arguments: Any) -> int:
    """Run a study: a workload under every combination of its factors' levels.

    Each block runs every condition once in random order. A comparison that is decided gets no
    more trials, so that the open ones get the budget. `equipoise list studies` lists the
    built-in ones; the form of a file is in docs/studies.md.
    """
    output, site = OutputOptions.from_options(arguments), host_site()
    limits = options.limits_of(arguments)
    study, warnings = _fitted(_chosen_study(arguments), site, output.ledger)
    if sys.stderr.isatty() and not output.quiet:
        # The result repeats them, but that may be hours later.
        for warning in warnings:
            say(warning.summary, warning.hint)
    lines = build_lines(study)
    # A study without builds is checked before this campaign waits for another one.
    planned = None if lines else _plan(study, site, {}, limits)
    with measuring(output, about_s=study.measure.about_s) as (ledger, listener):
        if planned is None:
            home = output.ledger.parent / BUILDS
            builds = build_levels(lines, home, own_environment(), os.getcwd())
            planned = _plan(study, site, builds, limits)
        plan, more = planned
        with _errors_at_settings(study, plan):
            run_id = conduct.start(plan, ledger, listener, warnings=(*warnings, *more))
        result = analyse(run_id, ledger, output)
    return show_result(result, output)


def _chosen_study(arguments: dict[str, Any]) -> Study:
    """Return the study that is named, with what the options change of it."""
    study = read_study(*find_study(arguments["study"]), counters=COUNTERS)
    if arguments["quick"]:
        study = quick_form(study)
    if arguments["other_command"] is not None:
        command_line = tuple(split_command(arguments["other_command"]))
        if not command_line:
            raise UnusableInput("--command is empty", hint="write the program that is to be run")
        study = with_command(study, command_line)
    changes = {key: arguments[key] for key in ("layouts", "aslr") if arguments[key] is not None}
    study = replace(study, measure=replace(study.measure, **changes))
    return with_levels(study, chosen_levels(study, arguments["factors"]))


def _fitted(study: Study, site: Site, ledger: Path) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study as this host can run it, and warnings of what is left out."""
    study, idle = without_idle_factors(study)
    study, missing = without_missing(study, site)
    study, stand_in = with_data(study, ledger)
    return study, (*idle, *missing, *stand_in)


def _plan(
    study: Study, site: Site, builds: Mapping[str, str], limits: CampaignLimits
) -> PlanAndWarnings:
    return study_plan(study, grid_of(study, site, builds), limits)


@contextmanager
def _errors_at_settings(study: Study, plan: Plan) -> Iterator[None]:
    """Name the place in the study's file of a setting that took no effect."""
    try:
        yield
    except TookNoEffect as error:
        levels = next(each.levels for each in plan.conditions if each.name == error.condition)
        place = setting_place(study, levels, error.key, error.value)
        raise place.fail(error.what, error.hint) from None
