"""``equipoise history``: revisions side by side, and what changed; the plan of a campaign of it."""

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
from equipoise.design.command_line import command_of_plan
from equipoise.design.limits import CampaignLimits
from equipoise.files.state import HOST_VARIABLE, host_name
from equipoise.interop.reading import read_within_bounds
from equipoise.interop.series import SERIES_FORMATS
from equipoise.interop.series.reading import read_series
from equipoise.kinds.history.judge import HistoryJudge, check_judgement, read_history, series_of
from equipoise.kinds.history.terms import STUDY, HistoryDocument, HistoryPlan, history_of
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

_FORM = 1


class HistoryRequest(CommitsRequest, frozen=True, kw_only=True):
    """The commits whose history the user wants, and how they are measured."""

    baseline: Revision
    latest: Revision
    selected: tuple[int, ...]
    """Places of the commits that the curve shows."""
    only_new: bool = False
    host: str
    """Name of the host: campaigns of one host are one history."""
    command_line: tuple[str, ...] = ()
    """Words that add what is new."""

    @property
    def needed(self) -> tuple[NeededCommit, ...]:
        """The baseline."""
        return (baseline_of(self.baseline),)


def baseline_of(revision: Revision) -> NeededCommit:
    """Return what a history needs."""
    return NeededCommit(0, "baseline", revision, "--from")


def needed_of(terms: HistoryPlan) -> tuple[NeededCommit, ...]:
    """Return what a recorded history needs."""
    return (baseline_of(terms.baseline),)


def history_plan(request: HistoryRequest, builds: CommitBuilds, scratch: Path) -> PlanAndWarnings:
    """Return the plan of the first campaign of a history whose baseline is built, and warnings.

    Raise `UnusableInput` if the program does not exist in the baseline, or several benchmarks are
    meant. Raise `ConditionFailed` if the benchmarks of the tool failed when they were run to see
    what they report.
    """
    plan, shared, warnings = plan_of_commits(STUDY, request, builds, scratch)
    if shared.benchmarks:
        names = ", ".join(one.name for one in shared.benchmarks[:20])
        raise UnusableInput(
            f"a history is of one benchmark, and these are {len(shared.benchmarks)}: {names}",
            hint=f"run one for each: with {option('kind')}, {option('metrics')} names it; else "
            "its command behind --",
        )
    terms = HistoryPlan(
        **asdict(shared),
        baseline=request.baseline,
        latest=request.latest,
        selected=request.selected,
        series=_series(request, plan.judgement),
        era=_era(request, builds),
        only_new=request.only_new,
    )
    return replace(plan, terms=terms, command_line=request.command_line), warnings


def following(plan: Plan, earlier: Sequence[str]) -> Plan:
    """Return the plan of a campaign that follows others of its series."""
    return replace(
        plan,
        seed=seed_of_campaign(plan.seed, len(earlier)),
        terms=replace(history_of(plan), earlier=tuple(earlier)),
    )


def _series(request: HistoryRequest, judgement: Judgement) -> str:
    """Return the digest of what makes campaigns one history.

    The baseline's name stands for the repository: clones of it may lie anywhere.
    """
    return digest(
        [
            _FORM,
            request.host,
            request.baseline.commit,
            request.repository.inside,
            _command(request),
            # A tool that runs each benchmark in a process of its own calls all their metrics alike.
            request.metrics if request.tool is not None and request.tool.listing else None,
            request.build,
            None if request.tool is None else request.tool.name,
            judgement.primary_metric,
            judgement.min_effect,
            judgement.alpha,
        ]
    )


def _era(request: HistoryRequest, builds: CommitBuilds) -> str:
    """Return the digest of what has to be the same for numbers to be comparable."""
    # The command may be a program of the toolchain, such as an interpreter.
    line = " ".join([request.build or "", *_command(request)])
    tools = digest_of_toolchain(line, own_environment(), request.repository)
    recipe = builds.recipe
    return digest([_FORM, tools, recipe.environment, recipe.submodules, snapshot().get("kernel")])


def _command(request: HistoryRequest) -> tuple[str, ...]:
    (command,) = request.benchmarks
    return command.command


EXAMPLE = "equipoise history --from v1.4 --build make -- ./bench"


class HistoryOptions(CommitsOptions, frozen=True, kw_only=True):
    """What `equipoise history` is asked for; `HistoryRequest` has the commits that it names."""

    first: str | None
    last: str
    every: int | None
    tags: bool
    since: str | None
    only_new: bool
    host: str
    imported: tuple[str, ...]
    form: str | None

    @property
    def measures(self) -> bool:
        """Whether there is something to measure, beside what ``--import`` shows."""
        program = self.program
        named = program.words or program.kind or program.benches or program.suite
        selected = self.first or self.every or self.tags or self.since or self.only_new
        return bool(named or selected)

    def with_files_of_pattern(self) -> HistoryOptions:
        """Return the options with what stands behind ``--import FILE`` as files, too.

        A shell puts the files of a pattern behind the first one.
        """
        imported = (*self.imported, *self.program.words)
        return replace(self, imported=imported, program=replace(self.program, words=()))


@click.command("history", cls=CommandRecorder, epilog=f"Example: {EXAMPLE}")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option(
    "--from",
    "first",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="that of the latest history; with --since, the last commit before",
    help="The baseline: every commit after it is measured, along first parents.",
)
@click.option(
    "--to",
    "last",
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
    help="Measure every N-th commit, and those between only where something changes.",
)
@options.flag("--tags", help="Measure the tagged commits in the same way.")
@click.option("--since", metavar="DATE", help="Measure the commits since then in the same way.")
@options.flag(
    "--new", "only_new", help="Ask only about commits after those that earlier campaigns measured."
)
@revisions.build_options
@revisions.measuring_options("What is compared")
@click.option(
    "--import",
    "imported",
    multiple=True,
    metavar="FILE …",
    help="Show values that another tool measured, and where they may have changed; several files, "
    "too. Without CMD, measure nothing.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SERIES_FORMATS)),
    help="What wrote them; by default their content tells.",
)
@click.option(
    "--host",
    metavar="NAME",
    default=host_name,
    show_default=f"${HOST_VARIABLE}, or the name of this machine",
    help="Hosts of one name share a history: give alike runners of a pool the same one.",
)
@revisions.output_options
@options.request_of(HistoryOptions)
def command(asked: HistoryOptions) -> int:
    """Measure revisions side by side, and name the commits that changed something.

    Revisions run in random blocks with the baseline and with each other: first a few, then where
    something changes down to a commit and its parent. Run it again to add what is new: all
    campaigns of one command and one baseline on a host are one history.
    """
    output = asked.output.checked()
    if asked.imported and "--" not in typed_arguments():
        asked = asked.with_files_of_pattern()
    imported = None
    if asked.imported:
        imported = read_imported(
            asked.imported,
            asked.form,
            min_effect=asked.limits.judgement().min_effect,
            again=command_line(imported=asked.imported, words=asked.program.words or None),
            command=asked.program.words,
            build=asked.program.build,
        )
    if imported is not None and not asked.measures:
        return show_imported(imported, output)
    requests = tuple(_of_each_benchmark(_request(asked, output), asked, output))
    first, *_ = requests
    results: list[CampaignResult] = []
    with scratch_folder() as scratch, measuring(output) as (ledger, listener):
        with open_cache(first.repository, first.build, first.tool, scratch) as cache:
            builds = CommitBuilds(cache, first.commits)
            listener.building((f"baseline {first.baseline.label}",))
            builds.make_needed(first.needed)
            for request in requests:
                run_id = _measure(request, builds, scratch, ledger, listener)
                result = analyse(run_id, ledger, output)
                results.append(
                    result if imported is None else _with_imported_series(result, imported)
                )
    if len(requests) == 1:
        return show_result(results[0], output)
    status = EXIT_DONE
    for number, (request, result) in enumerate(zip(requests, results, strict=True), start=1):
        if output.has_screen:
            title = Paragraph(f"{number}. {request.benchmarks[0].name}")
            print_parts([title], color=output.color)
        status = max(status, show_result(result, output.numbered(number)))
    return status


def _measure(
    request: HistoryRequest,
    builds: CommitBuilds,
    scratch: Path,
    ledger: Ledger,
    listener: ProgressListener,
) -> str:
    """Run the next campaign of a history, unless nothing is left to ask; return its id."""
    plan, warnings = history_plan(request, builds, scratch)
    series = history_of(plan).series
    with conduct.series_lock(series, ledger):
        earlier = ledger.read_campaigns(ledger.of_series(series, STUDY))
        if earlier:
            plan = following(plan, [one.id for one in earlier])
        judge = HistoryJudge(plan, plan.stopping, builds, earlier)
        if earlier and judge.stop_reason() is not None:
            run_id = earlier[-1].id
            say(f"nothing is left to ask: this is the history until campaign {run_id}")
            return run_id
        return conduct.start(
            plan,
            ledger,
            listener,
            warnings=warnings,
            judge_of=lambda _plan, _stopping: judge,
            segment_of=partial(CommitsSegment, builds=builds),
        )


def resume(
    record: RunRecord,
    limits: CampaignLimits,
    hosts: HostOptions,
    output: OutputOptions,
) -> int:
    """Go on with a history, and show its result; errors as for `resume_history`."""
    with measuring(output) as (ledger, listener):
        run_id = resume_history(ledger.read_run(record.id), limits, ledger, listener)
        result = analyse(run_id, ledger, output)
    return show_result(result, output)


def resume_history(
    record: RunRecord, limits: CampaignLimits, ledger: Ledger, listener: ProgressListener
) -> str:
    """Go on with the latest campaign of a history, unless nothing is left to ask; return its id.

    Raise `UnusableInput` if a later campaign of the series rests on it, or the repository, a commit
    or the toolchain is no longer what it was. Raise `ConditionFailed` if the baseline no longer
    builds or runs.
    """
    terms = history_of(record.plan)
    with conduct.series_lock(terms.series, ledger):
        latest = ledger.of_series(terms.series, STUDY)[-1]
        if latest != record.id:
            raise UnusableInput(
                f"campaign {record.id} of the history is followed by {latest}, which rests on it",
                hint=f"go on with that one: equipoise resume {latest}, or add one: "
                f"{command_of_plan(record.plan)}",
            )
        series = series_of(record)
        if not read_history(series).next_block((), 0.0):
            return record.id
        with revisions.kept_builds(record) as builds:
            builds.make_needed(needed_of(terms))
            return conduct.resume(
                record.id,
                limits,
                ledger,
                listener,
                judge_of=partial(HistoryJudge, builds=builds, earlier=series[:-1]),
                segment_of=partial(CommitsSegment, builds=builds),
            )


def _request(asked: HistoryOptions, output: OutputOptions) -> HistoryRequest:
    common = asked.request("history", EXAMPLE)
    repository = common.repository
    check_judgement(common.limits)
    latest = find_revision(repository, asked.last, "--to")
    baseline = _baseline(asked, repository, latest, output)
    between = commits_between(repository, baseline, latest, CURVE_ENDS)
    return HistoryRequest(
        **asdict(common),
        baseline=baseline,
        latest=latest,
        commits=between,
        selected=_selected(asked, repository, between),
        only_new=asked.only_new,
        host=asked.host,
    )


def _of_each_benchmark(
    request: HistoryRequest, asked: HistoryOptions, output: OutputOptions
) -> Iterator[HistoryRequest]:
    """Yield the request of each benchmark: each has a history of its own, and they share builds.

    They also share the budget, in equal parts.
    """
    count, limits = len(request.benchmarks), request.limits
    if count > 1 and output.json_file == "-":
        raise UnusableInput(
            f"{count} benchmarks have {count} documents, and stdout takes one",
            hint="name a file: FILE-1.json and so on are written for --json FILE.json",
        )
    if count > 1:
        limits = replace(limits, budget=(limits.budget or BUDGET_S) / count)
    for benchmark in request.benchmarks:
        one = replace(request, benchmarks=(benchmark,), limits=limits)
        yield replace(one, command_line=_typed(one, asked, is_only=count == 1))


def _baseline(
    asked: HistoryOptions, repository: Repository, latest: Revision, output: OutputOptions
) -> Revision:
    """Return the baseline that is named, that of the latest history, or the last before a date."""
    if asked.first is not None:
        return find_revision(repository, asked.first, "--from")
    terms = _latest_history(output)
    if terms is not None:
        commit = find_revision(repository, terms.baseline.commit, "--from").commit
        return replace(terms.baseline, commit=commit)
    since = asked.since
    before = None if since is None else last_commit_before(repository, latest, since)
    if before is None:
        raise UnusableInput(
            "a history needs a baseline, and the ledger has no earlier campaign of one",
            hint=f"name the first revision: --from REV, as in {EXAMPLE}",
        )
    return before


def _latest_history(output: OutputOptions) -> HistoryPlan | None:
    """Return the terms of the latest history in the ledger."""
    if not ledger_exists(output.ledger):
        return None
    with open_for_reading(output.ledger) as ledger:
        found = [run.id for run in ledger.runs() if run.study == STUDY]
        return history_of(ledger.read_run(found[-1]).plan) if found else None


def _selected(
    asked: HistoryOptions, repository: Repository, between: tuple[Commit, ...]
) -> tuple[int, ...]:
    """Return the places of the commits that the curve shows."""
    every, tags, since = asked.every, asked.tags, asked.since
    if (every is not None) + tags + (since is not None) > 1:
        raise UnusableInput(
            "--every, --tags and --since each select commits", hint="give one of them"
        )
    if tags:
        return tagged_commits(repository, between)
    if since is not None:
        return commits_since(repository, between, since)
    return every_nth_commit(between, every or 1)


def _typed(request: HistoryRequest, asked: HistoryOptions, *, is_only: bool) -> tuple[str, ...]:
    """Return the words of the line that adds what is new to the history of a benchmark."""
    (benchmark,) = request.benchmarks
    settled: dict[str, object] = {"words": asked.program.words or None}
    if not is_only:
        settled = {
            "words": benchmark.command,
            "benches": None,
            "suite": None,
            "build": request.build,
            "budget": request.limits.budget,
        }
    if request.host != os.uname().nodename:
        settled["host"] = request.host
    return typed_command(first=request.baseline.commit, imported=None, form=None, **settled)


def read_imported(
    files: Sequence[str],
    form: str | None,
    *,
    min_effect: float,
    again: str,
    command: Sequence[str] = (),
    build: str | None = None,
) -> SeriesResult:
    """Read series of other tools, and say where their level may have changed.

    Raise `UnusableInput` if a file cannot be read, or holds no values over commits.

    Parameters
    ----------
    files
        Names of files and folders, or patterns such as ``results/*.json``.
    form
        Name of the format; the content of each file tells if ``None``.
    min_effect
        Percent by which two levels differ at least, for a suspicion.
    again
        Line that reads them again.
    command, build
        Command and build line of the lines that confirm; empty: a placeholder.
    """
    from equipoise.kinds.history.analysis import series_result

    names = [name for file in files for name in _named(file)]
    sources = [read_within_bounds(name, Path(name)) for name in names]
    series = read_series(sources, form, SERIES_FORMATS)
    return series_result(series, min_effect=min_effect, again=again, command=command, build=build)


def show_imported(result: SeriesResult, output: OutputOptions) -> int:
    """Write imported series to each place, and print them."""
    from equipoise.kinds.history.report import series_document

    write_output(series_document(result), lambda: encode(result) + b"\n", output)
    return 0


def _with_imported_series(result: CampaignResult, imported: SeriesResult) -> CampaignResult:
    """Return the result of a history with series of other tools beside its curve."""
    document = result.document
    assert isinstance(document, HistoryDocument), "only a history has series of other tools"
    document = replace(document, history=replace(document.history, series=imported.series))
    return replace(result, document=document)


def _named(pattern: str) -> list[str]:
    """Return the files that a pattern names, 9 before 10; the name itself of one that is there."""
    if Path(pattern).exists():
        return [pattern]

    def by_numbers(name: str) -> list[str | int]:
        return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]

    return sorted(glob(pattern), key=by_numbers) or [pattern]
