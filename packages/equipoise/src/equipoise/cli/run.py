"""``equipoise run``: a study, from its file or a built-in one."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign import conduct
from equipoise.campaign.plans import study_plan
from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command
from equipoise.cli.completion import complete_studies
from equipoise.cli.conducting import analyse, measure_on_hosts, measuring, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.streams import say
from equipoise.design.limits import STUDY_BLOCKS, CampaignLimits
from equipoise.studies.preparation import StudyOptions, prepare_study


class RunRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise run`."""

    options: StudyOptions
    limits: CampaignLimits
    ranking: bool | None
    hosts: HostOptions
    output: OutputOptions


@click.command(
    "run",
    cls=CommandRecorder,
    epilog="Example: equipoise run allocators --quick --factor allocator=glibc,jemalloc",
)
@click.argument("study", metavar="STUDY.toml | NAME", shell_complete=complete_studies)
@options.flag("--quick", help="Run the study's quick form.")
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=LEVEL,…",
    help="Run these levels of a factor only; of a factor of plain values, set them.",
)
@click.option("--command", metavar="CMD", help="Ask it of this program instead.")
@options.warmup_option(show_default="the study's, or 1")
@options.number_option(
    "--timeout",
    metavar="SECONDS",
    show_default="the study's, or 600",
    help="End a trial after so long; it counts as slowest.",
)
@options.ranking_option
@options.layout_options
@options.stopping_options(
    f"the study's; {STUDY_BLOCKS} if it compares nothing",
    "the study's, or 5; a verdict at alpha 0.05 takes 7",
    "the study's, or 1",
    "the study's, or 60",
)
@options.patient_option
@options.judging_options(of_study=True)
@options.campaign_files
@options.why_option
@options.fleet_options
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    show_default="figures/RUN next to the ledger",
    help="Where a built-in study's own figures go.",
)
@options.host_options
@options.output_options
@options.pass_request(RunRequest)
def command(request: RunRequest) -> int:
    """Run a study: a workload under every combination of its factors' levels.

    Each block runs every condition once in random order. A condition that is decided, and is not a
    contender for the fastest of its group, gets no more trials, so that the open ones get the
    budget. `equipoise list studies` lists the built-in ones; docs/reference/study.md has the
    form of a file.
    """
    output, access = request.output.checked(), request.hosts.access()
    limits, ranking = request.limits, request.ranking
    prepared = prepare_study(request.options, output.ledger)
    if sys.stderr.isatty() and not output.quiet:
        # The result repeats them, but that may be hours later.
        for warning in prepared.warnings:
            say(warning.summary, warning.hint)
    study = prepared.study
    # A study without builds is checked before this campaign waits for another one.
    planned = None
    if not prepared.build_lines:
        planned = study_plan(study, prepared.grid({}), limits, ranking=ranking)
    if access is not None:
        folders = prepared.built(output.ledger) if planned is None else {}
        plan, more = planned or study_plan(study, prepared.grid(folders), limits, ranking=ranking)
        return measure_on_hosts(
            replace(plan, command_line=typed_command(seed=plan.seed)),
            access,
            request.hosts,
            output,
            build_lines=prepared.build_lines,
            build_folders=folders,
            warnings=(*prepared.warnings, *more),
        )
    with measuring(output, author_block_s=study.measure.about) as (ledger, listener):
        if planned is None:
            grid = prepared.grid(prepared.built(output.ledger))
            planned = study_plan(study, grid, limits, ranking=ranking)
        plan, more = planned
        plan = replace(plan, command_line=typed_command(seed=plan.seed))
        with prepared.errors_at_settings(plan):
            run_id = conduct.start(plan, ledger, listener, warnings=(*prepared.warnings, *more))
        result = analyse(run_id, ledger, output)
    return show_result(result, output)
