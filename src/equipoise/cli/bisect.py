"""``equipoise bisect``: which commit made it slower."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import asdict, replace

from equipoise.campaign import conduct
from equipoise.campaign.bisection import (
    BisectionJudge,
    BisectionSegment,
    read_search,
    withdrawals_of,
)
from equipoise.campaign.progress import ProgressListener
from equipoise.cli import options
from equipoise.cli.conducting import analyse, measuring, show_result
from equipoise.cli.output_options import OutputOptions
from equipoise.design.coin import fresh_seed
from equipoise.design.command_line import shell_line
from equipoise.design.limits import CampaignLimits, metric_names
from equipoise.ledger import Ledger
from equipoise.measure.scratch import scratch_folder
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.record import DIFF, CampaignWarning, Observation, RunRecord
from equipoise.revisions.benchmarks import TOOLS
from equipoise.revisions.bisect import (
    BUDGET_S,
    BisectRequest,
    CommitBuilds,
    bisect_plan,
    builds_of_plan,
    repository_of,
    tool_of,
)
from equipoise.revisions.build_cache import open_cache
from equipoise.revisions.checkout import (
    repository_at,
    revision_named,
    revision_of_working_tree,
    warnings_of_working_tree,
)
from equipoise.revisions.commits import commits_between, merged_commits, weights_by_path
from equipoise.revisions.diff import diff_between
from equipoise.revisions.git import Repository

if TYPE_CHECKING:
    from equipoise.why.gap import Gap

EXAMPLE = "equipoise bisect --good v1.4 --bad main --build make -- ./bench"


@click.command("bisect", epilog=f"Example: {EXAMPLE}")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option("--good", required=True, metavar="REV", help="A revision before the change.")
@click.option(
    "--bad",
    metavar="REV",
    show_default="HEAD with what tracked files have changed since",
    help="A later revision, after the change.",
)
@click.option("--build", metavar="LINE", help="Run this in each commit first, untimed.")
@click.option(
    "--kind",
    type=click.Choice([name for name, tool in TOOLS.items() if tool.listing is None]),
    metavar="TOOL",
    help="CMD runs benchmarks of cargo, go or pytest; --metrics says which of them.",
)
@click.option(
    "--likely",
    multiple=True,
    metavar="PATH",
    help="Suspect the commits that touch this file or folder: they are asked first.",
)
@click.option(
    "--metrics",
    metavar="NAME",
    show_default="wall_s; with --kind, the one benchmark",
    help="What has become slower; one metric.",
)
@options.warmup_option("Trials of each commit before its first block, never analysed.", default=1)
@options.timeout_option
@options.number_option("--blocks", metavar="N", show_default="no limit", help="At most so many.")
@options.number_option(
    "--budget",
    metavar="SECONDS",
    show_default=f"{BUDGET_S:g}",
    help="Stop after about so many seconds, builds of commits between included.",
)
@options.judging_options()
@click.option(
    "--why",
    is_flag=True,
    help="Say why the culprit differs from its parent, and show what it changed.",
)
@options.no_test_option
@options.ledger_option
@options.durable_option
@options.report_option
@options.show_env_option
@options.concurrent_option
@options.output_options
def command(**arguments: Any) -> int:
    """Which commit made it slower? Between a good revision and a bad one.

    Commits run in pairs, in random order, and are built when they are needed. A commit is named
    once it is certain that it differs from its parent; a wrong one is at most as likely as --alpha.
    """
    output = OutputOptions.from_options(arguments)
    request = _request(arguments)
    with scratch_folder() as scratch, measuring(output) as (ledger, listener):
        with open_cache(request.repository, request.build, request.tool, scratch) as cache:
            builds = CommitBuilds(cache, (*request.commits, *request.merged.commits))
            listener.building((f"good {request.good.label}", f"bad {request.bad.label}"))
            builds.make_ends(len(request.commits) - 1)
            run_id = conduct.start(
                bisect_plan(request, builds, scratch),
                ledger,
                listener,
                warnings=_warnings(request.repository) if arguments["bad"] is None else (),
                judge_of=partial(BisectionJudge, builds=builds),
                segment_of=partial(BisectionSegment, builds=builds),
            )
            if output.why:
                _prepare_largest_gap(ledger.read_run(run_id), builds, ledger)
            result = analyse(run_id, ledger, output)
    return show_result(result, output)


def resume_bisection(
    record: RunRecord, limits: CampaignLimits, ledger: Ledger, listener: ProgressListener
) -> str:
    """Go on with a bisection, unless its search has ended; return its run id.

    Raises
    ------
    UnusableInput
        The repository, a commit or the toolchain is no longer what it was.
    ConditionFailed
        One of the two ends no longer builds or runs.
    """
    if read_search(record).next_pair((), 0.0) is None:
        return record.id
    with _kept_builds(record) as builds:
        terms = record.plan.bisected
        assert terms is not None, "only a bisection has ends"
        builds.make_ends(terms.last)
        return conduct.resume(
            record.id,
            limits,
            ledger,
            listener,
            judge_of=partial(BisectionJudge, builds=builds, withdrawals=withdrawals_of(record)),
            segment_of=partial(BisectionSegment, builds=builds),
        )


@contextmanager
def _kept_builds(record: RunRecord) -> Iterator[CommitBuilds]:
    """Yield the builds of the commits of a recorded bisection."""
    terms = record.plan.bisected
    assert terms is not None, "only a bisection has builds of commits"
    repository, tool = repository_of(terms), tool_of(terms)
    with scratch_folder() as scratch, open_cache(repository, terms.build, tool, scratch) as cache:
        yield builds_of_plan(record.plan, cache)


@contextmanager
def built_culprit(record: RunRecord, gap: Gap, ledger: Ledger) -> Iterator[None]:
    """Keep the builds of a culprit and its parent, with the diff in the ledger.

    Raises
    ------
    UnusableInput
        The repository, a commit or the toolchain is no longer what it was.
    ConditionFailed
        One of the two no longer builds.
    """
    with _kept_builds(record) as builds:
        _prepare(record, gap, builds, ledger)
        yield


def _prepare_largest_gap(record: RunRecord, builds: CommitBuilds, ledger: Ledger) -> None:
    from equipoise.why.gap import largest_gap

    gap = largest_gap(record)
    if gap is not None and gap.is_called:
        _prepare(record, gap, builds, ledger)


def _prepare(record: RunRecord, gap: Gap, builds: CommitBuilds, ledger: Ledger) -> None:
    """Build both commits of a gap unless they are built, and record what changed between them."""
    terms, (parent, culprit) = record.plan.bisected, gap.pair
    assert terms is not None, "only a bisection has culprits"
    for reason in builds.make(gap.pair).values():
        raise ConditionFailed(reason, hint="bisect anew: its build was removed")
    if any((one.source, one.condition) == (DIFF, culprit) for one in record.observations):
        return
    diff = diff_between(
        repository_of(terms), terms.every_commit[parent], terms.every_commit[culprit]
    )
    if diff is not None:
        document = msgspec.json.encode(diff)
        ledger.record_observation(
            record.id, Observation(DIFF, culprit, 1, 0, time.time(), document, None)
        )


def _request(arguments: dict[str, Any]) -> BisectRequest:
    tool = None if arguments["kind"] is None else TOOLS[arguments["kind"]]
    words = arguments["words"] or (() if tool is None else tool.command)
    if not words or not words[0] or any("\0" in word for word in words):
        raise UnusableInput("a bisection needs a command behind --", hint=f"as in: {EXAMPLE}")
    metrics = None if arguments["metrics"] is None else metric_names(arguments["metrics"])
    if metrics is not None and len(metrics) > 1:
        raise UnusableInput(
            f"a bisection searches by one metric, and --metrics names {len(metrics)}",
            hint=f"bisect once for each: --metrics {metrics[0]}",
        )
    repository = repository_at(Path.cwd())
    good = revision_named(repository, arguments["good"], "--good")
    if arguments["bad"] is None:
        bad = revision_of_working_tree(repository)
    else:
        bad = revision_named(repository, arguments["bad"], "--bad")
    commits = commits_between(repository, good, bad)
    likely = tuple(arguments["likely"])
    limits = options.limits_of(arguments)
    request = BisectRequest(
        repository=repository,
        good=good,
        bad=bad,
        commits=commits,
        command=tuple(words),
        build=arguments["build"] or (None if tool is None else tool.build),
        tool=tool,
        metric=None if metrics is None else metrics[0],
        likely=likely,
        prior=weights_by_path(repository, commits, likely) if likely else (),
        limits=replace(limits, seed=fresh_seed() if limits.seed is None else limits.seed),
        merged=merged_commits(repository, commits),
    )
    return replace(request, command_line=shell_line(_command_line(request)))


def _command_line(request: BisectRequest) -> Iterator[str]:
    """Yield the words of the command line that runs the bisection again."""
    yield from ("equipoise", "bisect", "--good", request.good.commit)
    if not request.bad.uncommitted:
        yield from ("--bad", request.bad.commit)
    numbers = asdict(request.limits)
    seed = numbers.pop("seed")
    settings = {
        "build": request.build,
        "kind": None if request.tool is None else request.tool.name,
        "metrics": request.metric,
        **{name: None if number is None else f"{number:.12g}" for name, number in numbers.items()},
    }
    for name, value in settings.items():
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", value)
    for path in request.likely:
        yield from ("--likely", path)
    yield from ("--seed", str(seed), "--", *request.command)


def _warnings(repository: Repository) -> tuple[CampaignWarning, ...]:
    return tuple(warnings_of_working_tree(repository, "no commit", "the program"))
