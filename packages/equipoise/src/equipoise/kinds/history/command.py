"""``equipoise history``: measure revisions side by side, and name the commits with a change.

A history is a series of campaigns with the same properties (`_series_digest`). Campaigns of an era
also have the same environment (`_era_digest`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from glob import glob
from pathlib import Path

import click
from msgspec.structs import asdict, replace

from equipoise.campaign import conduct
from equipoise.campaign.plans import PlanAndWarnings
from equipoise.campaign.progress import ProgressListener
from equipoise.cli import options, revisions
from equipoise.cli.command_line import CommandRecorder, command_line, typed_arguments, typed_command
from equipoise.cli.completion import complete_revisions
from equipoise.cli.conducting import analyse, measuring, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.results import CampaignResult
from equipoise.cli.revisions import CommitsOptions
from equipoise.cli.streams import say
from equipoise.cli.writing import write_output
from equipoise.design.coin import seed_of_campaign
from equipoise.design.limits import CampaignLimits
from equipoise.files.state import HOST_VARIABLE, host_name
from equipoise.interop.reading import read_within_bounds
from equipoise.interop.series import SERIES_FORMATS
from equipoise.interop.series.reading import read_series
from equipoise.kinds.history.judge import (
    HistoryJudge,
    campaigns_of_series,
    check_judgement,
    read_history,
)
from equipoise.kinds.history.terms import STUDY, HistoryDocument, HistoryPlan, history_terms
from equipoise.ledger import Ledger, ledger_exists, open_for_reading
from equipoise.measure.environment import snapshot
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EXIT_DONE, UnusableInput
from equipoise.model.plan import Judgement, Plan
from equipoise.model.record import RunRecord
from equipoise.model.revisions import Commit, Revision
from equipoise.model.series import SeriesResult
from equipoise.report.document import Paragraph
from equipoise.report.json_document import encode
from equipoise.report.renderers.terminal import print_parts
from equipoise.revisions.build_cache import digest, digest_of_toolchain, open_cache
from equipoise.revisions.checkout import find_revision
from equipoise.revisions.commit_plans import (
    BUDGET_S,
    CommitBuilds,
    CommitsRequest,
    NeededCommit,
    plan_of_commits,
)
from equipoise.revisions.commits import (
    CURVE_ENDS,
    commits_between,
    commits_since,
    every_nth_commit,
    last_commit_before,
    tagged_commits,
)
from equipoise.revisions.git import Repository
from equipoise.revisions.judging import CommitsSegment
from equipoise.shared.spelling import option

MAX_LISTED_BENCHMARKS = 20
"""Maximum number of benchmarks that an error message lists."""
_DIGEST_VERSION = 1
"""Version of the two digests below; a new version begins new series and eras."""


class HistoryRequest(CommitsRequest, frozen=True, kw_only=True):
    """The user's request for a history: the commits, and how to measure them."""

    baseline: Revision
    latest: Revision
    selected: tuple[int, ...]
    """Indices of the commits that the curve shows."""
    only_new: bool = False
    """Whether to measure only commits after the latest measured commit."""
    host: str
    """Name of the host. Hosts with the same name share one history."""
    command_line: tuple[str, ...] = ()
    """Argument vector of the command that adds new commits."""

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The baseline, which must build and run."""
        return needed_commits(self.baseline)


def needed_commits(baseline: Revision) -> tuple[NeededCommit, ...]:
    """Return the baseline, which must build and run."""
    return (NeededCommit(0, "baseline", baseline, "--from"),)


def history_plan(request: HistoryRequest, builds: CommitBuilds, scratch: Path) -> PlanAndWarnings:
    """Return the plan of the first campaign of a history, and warnings.

    The baseline must be built already.

    Raise `UnusableInput` if the program does not exist in the baseline, or there are several
    benchmarks. Raise `ConditionFailed` if a benchmark failed in the run that lists the metrics.
    """
    plan, commits_terms, warnings = plan_of_commits(STUDY, request, builds, scratch)
    if commits_terms.benchmarks:
        names = [benchmark.name for benchmark in commits_terms.benchmarks]
        raise UnusableInput(
            "a history measures one benchmark, but the command has "
            f"{len(names)}: {', '.join(names[:MAX_LISTED_BENCHMARKS])}",
            hint=f"choose one benchmark: {option('metrics', names[0])}",
        )
    terms = HistoryPlan(
        **asdict(commits_terms),
        baseline=request.baseline,
        latest=request.latest,
        selected=request.selected,
        series=_series_digest(request, plan.judgement),
        era=_era_digest(request, builds),
        only_new=request.only_new,
    )
    return replace(plan, terms=terms, command_line=request.command_line), warnings


def continued_plan(plan: Plan, earlier_ids: Sequence[str]) -> Plan:
    """Return the plan of the next campaign of a series, after the campaigns ``earlier_ids``."""
    return replace(
        plan,
        seed=seed_of_campaign(plan.seed, len(earlier_ids)),
        terms=replace(history_terms(plan), earlier_ids=tuple(earlier_ids)),
    )


def _series_digest(request: HistoryRequest, judgement: Judgement) -> str:
    """Return the digest of the properties that the campaigns of one history share."""
    return digest(
        [
            _DIGEST_VERSION,
            request.host,
            request.baseline.commit,  # identifies the repository
            request.repository.inside,
            _benchmark_command(request),
            # If a tool runs each benchmark in its own process, all benchmarks have equal metrics.
            request.metrics if request.tool is not None and request.tool.listing else None,
            request.build,
            request.recorder is not None,
            None if request.tool is None else request.tool.name,
            judgement.primary_metric,
            judgement.min_effect,
            judgement.alpha,
        ]
    )


def _era_digest(request: HistoryRequest, builds: CommitBuilds) -> str:
    """Return the digest of the properties that make the numbers of two campaigns comparable."""
    # The command may be a program of the toolchain, such as an interpreter.
    shell_line = " ".join([request.build or "", *_benchmark_command(request)])
    toolchain_digest = digest_of_toolchain(shell_line, own_environment(), request.repository)
    recipe = builds.recipe
    return digest(
        [
            _DIGEST_VERSION,
            toolchain_digest,
            recipe.environment_digest,
            recipe.submodules,
            snapshot().get("kernel"),
        ]
    )


def _benchmark_command(request: HistoryRequest) -> tuple[str, ...]:
    (benchmark,) = request.benchmarks
    return benchmark.command


EXAMPLE = "equipoise history --from v1.4 --build make -- ./bench"


class HistoryOptions(CommitsOptions, frozen=True, kw_only=True):
    """Parsed options of ``equipoise history``."""

    from_revision: str | None
    to_revision: str
    every: int | None
    tags: bool
    since: str | None
    only_new: bool
    host: str
    imported: tuple[str, ...]
    series_format: str | None

    @property
    def names_measurement(self) -> bool:
        """Whether the options name a program or commits to measure, not only imported files."""
        program = self.benchmarks
        has_program = program.argv or program.kind or program.benches or program.suite
        has_commits = self.from_revision or self.every or self.tags or self.since or self.only_new
        return bool(has_program or has_commits)

    def with_arguments_as_files(self) -> HistoryOptions:
        """Return the options with the arguments after ``--import FILE`` as further files.

        A shell turns a pattern such as ``*.json`` into several arguments.
        """
        imported = (*self.imported, *self.benchmarks.argv)
        return replace(self, imported=imported, benchmarks=replace(self.benchmarks, argv=()))


@click.command("history", cls=CommandRecorder, epilog=f"Example: {EXAMPLE}")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option(
    "--from",
    "from_revision",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="that of the latest history; with --since, the last commit before",
    help="The baseline: every commit after it is measured, along first parents.",
)
@click.option(
    "--to",
    "to_revision",
    metavar="REV",
    shell_complete=complete_revisions,
    default="HEAD",
    show_default=True,
    help="The last revision.",
)
@options.number_option(
    "--every",
    metavar="N",
    show_default="1",
    help="Measure every N-th commit, and others only where something changes.",
)
@options.flag("--tags", help="Measure the tagged commits, and others only where something changes.")
@click.option("--since", metavar="DATE", help="Measure the commits since this date.")
@options.flag(
    "--new", "only_new", help="Measure only commits after those that earlier campaigns measured."
)
@revisions.build_options
@revisions.measuring_options("What is compared")
@click.option(
    "--import",
    "imported",
    multiple=True,
    metavar="FILE …",
    help="Show values of another tool from one or several files, and where they may have changed. "
    "Without CMD, measure nothing.",
)
@click.option(
    "--format",
    "series_format",
    type=click.Choice(list(SERIES_FORMATS)),
    help="Format of the files; by default it is found from their content.",
)
@click.option(
    "--host",
    metavar="NAME",
    default=host_name,
    show_default=f"${HOST_VARIABLE}, or the name of this machine",
    help="Name of this host. Hosts with the same name share a history, such as equal CI runners.",
)
@revisions.result_options
@options.pass_request(HistoryOptions)
def command(history_options: HistoryOptions) -> int:
    """Measure revisions side by side, and name the commits that changed something.

    Revisions run in random blocks with the baseline and with each other: first a few, then more
    where something changes, down to a commit and its parent. Run it again to add new commits: all
    campaigns of one command and one baseline on a host are one history.
    """
    output = history_options.output.checked()
    if history_options.imported and "--" not in typed_arguments():
        history_options = history_options.with_arguments_as_files()
    imported = None
    if history_options.imported:
        imported = read_imported(
            history_options.imported,
            history_options.series_format,
            min_effect=history_options.limits.judgement().min_effect,
            command_line=command_line(
                imported=history_options.imported, argv=history_options.benchmarks.argv or None
            ),
            command=history_options.benchmarks.argv,
            build=history_options.benchmarks.build,
        )
    if imported is not None and not history_options.names_measurement:
        return show_imported(imported, output)
    requests = tuple(
        _requests_by_benchmark(_history_request(history_options, output), history_options, output)
    )
    first_request, *_ = requests
    results: list[CampaignResult] = []
    with scratch_folder() as scratch, measuring(output) as (ledger, listener):
        cache_arguments = (first_request.repository, first_request.build, first_request.tool)
        with open_cache(*cache_arguments, scratch, first_request.recorder) as cache:
            builds = CommitBuilds(cache, first_request.commits)
            listener.building((f"baseline {first_request.baseline.label}",))
            builds.build_needed(first_request.needed)
            for request in requests:
                run_id = _run_campaign(request, builds, scratch, ledger, listener)
                result = analyse(run_id, ledger, output)
                results.append(
                    result if imported is None else _with_imported_series(result, imported)
                )
    if len(requests) == 1:
        return show_result(results[0], output)
    status = EXIT_DONE
    for number, (request, result) in enumerate(zip(requests, results, strict=True), start=1):
        if output.prints_result:
            title = Paragraph(f"{number}. {request.benchmarks[0].name}")
            print_parts([title], color=output.color)
        status = max(status, show_result(result, output.numbered(number)))
    return status


def _run_campaign(
    request: HistoryRequest,
    builds: CommitBuilds,
    scratch: Path,
    ledger: Ledger,
    listener: ProgressListener,
) -> str:
    """Run the next campaign, unless nothing is left to measure; return the latest run id."""
    plan, warnings = history_plan(request, builds, scratch)
    series = history_terms(plan).series
    with conduct.series_lock(series, ledger):
        earlier = ledger.read_campaigns(ledger.runs_of_series(series, STUDY))
        if earlier:
            plan = continued_plan(plan, [campaign.id for campaign in earlier])
        judge = HistoryJudge(plan, plan.stopping, builds, earlier)
        if earlier and judge.stop_reason() is not None:
            run_id = earlier[-1].id
            say(f"nothing is left to measure: this is the history up to campaign {run_id}")
            return run_id
        with builds.linking_again(plan) as adapt_runner:
            return conduct.start(
                plan,
                ledger,
                listener,
                warnings=warnings,
                judge_factory=lambda _plan, _stopping: judge,
                adapt_runner=adapt_runner,
                segment_factory=partial(CommitsSegment, builds=builds),
            )


def resume(
    record: RunRecord, limits: CampaignLimits, hosts: HostOptions, output: OutputOptions
) -> int:
    """Resume a history and show its result; errors are those of `resume_history`."""
    with measuring(output) as (ledger, listener):
        run_id = resume_history(ledger.read_run(record.id), limits, ledger, listener)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)


def resume_history(
    record: RunRecord, limits: CampaignLimits, ledger: Ledger, listener: ProgressListener
) -> str:
    """Resume the latest campaign of a history, unless nothing is left to measure; return the id.

    Raise `UnusableInput` if the series has a later campaign, or the repository, a commit or the
    toolchain has changed. Raise `ConditionFailed` if the baseline no longer builds or runs.
    """
    terms = history_terms(record.plan)
    with conduct.series_lock(terms.series, ledger):
        latest_id = ledger.runs_of_series(terms.series, STUDY)[-1]
        if latest_id != record.id:
            raise UnusableInput(
                f"campaign {record.id} cannot be resumed: the later campaign {latest_id} of this "
                "history depends on it",
                hint=f"resume the latest campaign: equipoise resume {latest_id}",
            )
        campaigns = campaigns_of_series(record)
        if not read_history(campaigns).next_block((), 0.0):
            return record.id
        with revisions.builds_of_record(record) as builds:
            builds.build_needed(needed_commits(terms.baseline))
            with builds.linking_again(record.plan) as adapt_runner:
                return conduct.resume(
                    record.id,
                    limits,
                    ledger,
                    listener,
                    judge_factory=partial(HistoryJudge, builds=builds, earlier=campaigns[:-1]),
                    adapt_runner=adapt_runner,
                    segment_factory=partial(CommitsSegment, builds=builds),
                )


def _history_request(history_options: HistoryOptions, output: OutputOptions) -> HistoryRequest:
    commits_request = history_options.request("history", EXAMPLE)
    repository = commits_request.repository
    check_judgement(commits_request.limits)
    latest = find_revision(repository, history_options.to_revision, "--to")
    baseline = _find_baseline(history_options, repository, latest, output)
    commits = commits_between(repository, baseline, latest, CURVE_ENDS)
    return HistoryRequest(
        **asdict(commits_request),
        baseline=baseline,
        latest=latest,
        commits=commits,
        selected=_selected_commits(history_options, repository, commits),
        only_new=history_options.only_new,
        host=history_options.host,
    )


def _requests_by_benchmark(
    request: HistoryRequest, history_options: HistoryOptions, output: OutputOptions
) -> Iterator[HistoryRequest]:
    """Yield a request for each benchmark, with an equal part of the budget."""
    count, limits = len(request.benchmarks), request.limits
    if count > 1 and output.json_file == "-":
        raise UnusableInput(
            f"{count} benchmarks give {count} JSON documents, but stdout can have only one",
            hint=f"name a file: --json FILE.json writes FILE-1.json to FILE-{count}.json",
        )
    if count > 1:
        limits = replace(limits, budget=(limits.budget or BUDGET_S) / count)
    for benchmark in request.benchmarks:
        benchmark_request = replace(request, benchmarks=(benchmark,), limits=limits)
        argv = _recorded_command(benchmark_request, history_options, is_only_benchmark=count == 1)
        yield replace(benchmark_request, command_line=argv)


def _find_baseline(
    history_options: HistoryOptions, repository: Repository, latest: Revision, output: OutputOptions
) -> Revision:
    """Return the baseline from ``--from``, from the latest history, or from ``--since``."""
    if history_options.from_revision is not None:
        return find_revision(repository, history_options.from_revision, "--from")
    terms = _latest_terms(output)
    if terms is not None:
        commit = find_revision(repository, terms.baseline.commit, "--from").commit
        return replace(terms.baseline, commit=commit)
    since = history_options.since
    baseline = None if since is None else last_commit_before(repository, latest, since)
    if baseline is None:
        no_commit_clause = "" if since is None else f", and no commit is before --since {since}"
        raise UnusableInput(
            f"a history needs a baseline, but the ledger has no earlier history{no_commit_clause}",
            hint=f"add --from REV, for example {EXAMPLE}",
        )
    return baseline


def _latest_terms(output: OutputOptions) -> HistoryPlan | None:
    """Return the terms of the latest history in the ledger; ``None`` if there is none."""
    if not ledger_exists(output.ledger):
        return None
    with open_for_reading(output.ledger) as ledger:
        run_ids = [run.id for run in ledger.runs() if run.study == STUDY]
        return history_terms(ledger.read_run(run_ids[-1]).plan) if run_ids else None


def _selected_commits(
    history_options: HistoryOptions, repository: Repository, commits: tuple[Commit, ...]
) -> tuple[int, ...]:
    """Return the indices of the commits that the curve shows."""
    every, tags, since = history_options.every, history_options.tags, history_options.since
    if (every is not None) + tags + (since is not None) > 1:
        raise UnusableInput(
            "--every, --tags and --since exclude each other", hint="keep only one of these options"
        )
    if tags:
        return tagged_commits(repository, commits)
    if since is not None:
        return commits_since(repository, commits, since)
    return every_nth_commit(commits, every or 1)


def _recorded_command(
    request: HistoryRequest, history_options: HistoryOptions, *, is_only_benchmark: bool
) -> tuple[str, ...]:
    """Return the argument vector that adds new commits to the history of a benchmark."""
    (benchmark,) = request.benchmarks
    fixed_values: dict[str, object] = {"argv": history_options.benchmarks.argv or None}
    if not is_only_benchmark:
        fixed_values = {
            "argv": benchmark.command,
            "benches": None,
            "suite": None,
            "build": request.build,
            "budget": request.limits.budget,
        }
    if request.host != os.uname().nodename:
        fixed_values["host"] = request.host
    return typed_command(
        from_revision=request.baseline.commit, imported=None, series_format=None, **fixed_values
    )


def read_imported(
    files: Sequence[str],
    series_format: str | None,
    *,
    min_effect: float,
    command_line: str,
    command: Sequence[str] = (),
    build: str | None = None,
) -> SeriesResult:
    """Read series of other tools, and find suspicions: possible changes of the values.

    ``files`` has names of files and folders, or patterns such as ``results/*.json``. Without
    ``series_format``, the content of each file shows the format. The other parameters are those of
    `series_result`.

    Raise `UnusableInput` if a file cannot be read, or has no value for a commit.
    """
    from equipoise.kinds.history.analysis import series_result

    paths = [path for pattern in files for path in _matching_files(pattern)]
    sources = [read_within_bounds(path, Path(path)) for path in paths]
    series = read_series(sources, series_format, SERIES_FORMATS)
    return series_result(
        series, min_effect=min_effect, command_line=command_line, command=command, build=build
    )


def show_imported(result: SeriesResult, output: OutputOptions) -> int:
    """Write imported series to the requested files, and print them."""
    from equipoise.kinds.history.report import series_document

    write_output(series_document(result), lambda: encode(result) + b"\n", output)
    return 0


def _with_imported_series(result: CampaignResult, imported: SeriesResult) -> CampaignResult:
    document = result.document
    assert isinstance(document, HistoryDocument), "only a history has series of other tools"
    document = replace(document, history=replace(document.history, imported_series=imported.series))
    return replace(result, document=document)


def _matching_files(pattern: str) -> list[str]:
    """Return the files that match a pattern, 9 before 10. The name of a file matches this file."""
    if Path(pattern).exists():
        return [pattern]

    def numeric_key(name: str) -> list[str | int]:
        return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]

    return sorted(glob(pattern), key=numeric_key) or [pattern]
