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
    help="Run only these levels of a factor; a factor with plain values may get new values.",
)
@click.option(
    "--command", metavar="CMD", help="Run the study with this command instead of its own."
)
@options.warmup_option(show_default="the study's, or 1")
@options.number_option(
    "--timeout",
    metavar="SECONDS",
    show_default="the study's, or 600",
    help="End a trial after this many seconds; it counts as the slowest.",
)
@options.ranking_option
@options.layout_options
@options.stopping_options(
    blocks=f"the study's; {STUDY_BLOCKS} if it compares nothing",
    min_blocks="the study's, or 5; a verdict at alpha 0.05 takes 7",
    min_seconds="the study's, or 1",
    budget="the study's, or 60",
)
@options.patient_option
@options.judging_options(study_defaults=True)
@options.campaign_files
@options.why_options
@options.fleet_options
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    show_default="figures/RUN next to the ledger",
    help="Folder for the figures of a built-in study.",
)
@options.host_options
@options.output_options
@options.pass_request(RunRequest)
def command(request: RunRequest) -> int:
    """Run a study: a workload under every combination of its factors' levels.

    Each block runs every condition once in random order. A condition gets no more trials once its
    comparison is decided and it cannot be the fastest of its group: undecided conditions get the
    budget. `equipoise list studies` lists the built-in studies; docs/reference/study.md describes
    the file of a study.
    """
    output, access = request.output.checked(), request.hosts.access()
    limits, ranking = request.limits, request.ranking
    prepared_study = prepare_study(request.options, output.ledger)
    if sys.stderr.isatty() and not output.quiet:
        # The result has these warnings, too, but the campaign may take hours.
        for warning in prepared_study.warnings:
            say(warning.summary, warning.hint)
    study = prepared_study.study
    # Check a study without builds before waiting for another campaign.
    plan_and_warnings = None
    if not prepared_study.build_lines:
        plan_and_warnings = study_plan(study, prepared_study.grid({}), limits, ranking=ranking)
    if access is not None:
        folders = prepared_study.build(output.ledger) if plan_and_warnings is None else {}
        plan, plan_warnings = plan_and_warnings or study_plan(
            study, prepared_study.grid(folders), limits, ranking=ranking
        )
        return measure_on_hosts(
            replace(plan, command_line=typed_command(seed=plan.seed)),
            access,
            request.hosts,
            output,
            build_lines=prepared_study.build_lines,
            build_folders=folders,
            warnings=(*prepared_study.warnings, *plan_warnings),
        )
    with measuring(output, author_block_s=study.measure.author_block_s) as (ledger, listener):
        if plan_and_warnings is None:
            grid = prepared_study.grid(prepared_study.build(output.ledger))
            plan_and_warnings = study_plan(study, grid, limits, ranking=ranking)
        plan, plan_warnings = plan_and_warnings
        plan = replace(plan, command_line=typed_command(seed=plan.seed))
        warnings = (*prepared_study.warnings, *plan_warnings)
        with prepared_study.errors_at_settings(plan):
            run_id = conduct.start(plan, ledger, listener, warnings=warnings)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)
