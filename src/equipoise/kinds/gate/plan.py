"""Two revisions as conditions, and the plan of the gate that compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from equipoise.kinds.gate.terms import MIN_EFFECT, STUDY, GatePlan
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK_SUFFIX, Revision
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.build_cache import BuildCache, source_of
from equipoise.revisions.checkout import SIDES, check_out
from equipoise.revisions.commits import trees_of
from equipoise.revisions.plan import (
    CheckedOut,
    RevisionsRequest,
    benchmarks_in_all,
    conditions_of_gate,
    metrics_of,
)
from equipoise.revisions.search_line import bisect_words


class GateRequest(RevisionsRequest, frozen=True, kw_only=True):
    """What the user wants a gate to compare, and how."""

    baseline: Revision
    candidate: Revision
    fail_undecided: bool = False
    """Whether an undecided benchmark fails the gate."""


Pair = tuple[CheckedOut, CheckedOut]
"""The baseline and the candidate, checked out and built."""


def check_out_and_build(
    request: GateRequest, scratch: Path, builds: BuildCache | None, *, say: Callable[[str], None]
) -> Pair:
    """Check both revisions out and build them, unless earlier builds of them are kept.

    ``builds`` are kept builds; ``None`` if nothing is built: then both are checked out into the
    scratch folder. ``say`` is called with a line on each step, for a user who waits.

    Raise `UnusableInput` if one cannot be checked out, or lacks the folder that the user is in.
    Raise `ConditionFailed` if one cannot be built.
    """
    repository = request.repository
    revisions = (request.baseline, request.candidate)
    if builds is not None:
        commits = trees_of(repository, [revision.commit for revision in revisions])
        sources = [source_of(repository, revision, commits) for revision in revisions]
    sides: list[CheckedOut] = []
    for role, revision in zip(("baseline", "candidate"), revisions, strict=True):
        if builds is None:
            say(f"checking out the {role} {revision.label}")
            parent = scratch / SIDES[len(sides)]
            parent.mkdir()
            tree = check_out(repository, revision, parent)
        else:
            say(f"building the {role} {revision.label}: {request.build}")
            tree = builds.get(sources[len(sides)], f"the {role} {revision.label}", sources).tree
        sides.append(CheckedOut(role, revision, tree, repository))
    for side in sides:
        if not side.folder.is_dir():
            raise UnusableInput(
                f"the {side.label} has no folder {repository.inside}",
                hint="run the gate in a folder that both revisions have",
            )
    return sides[0], sides[1]


def gate_plan(
    request: GateRequest, pair: Pair, scratch: Path
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a gate, and warnings of benchmarks that only one revision has.

    Raise `UnusableInput` if a program does not exist, nothing can be compared, or the options
    contradict each other. Raise `ConditionFailed` if a benchmark failed when it was run to see what
    it reports.
    """
    tool = request.tool
    benchmarks, unlisted = benchmarks_in_all(request, pair)
    conditions, contrasts = conditions_of_gate(benchmarks, pair, tool)
    metrics, unreported = metrics_of(request, pair, conditions, scratch)
    plan = request.plan(
        STUDY,
        conditions,
        metrics,
        folder=str(pair[1].folder),
        # The benchmarks of a tool without a listing have just run once, to see what they report.
        warmup=1 if tool is None or tool.listing is not None else 0,
        stopping=Stopping(leave_out_decided=True),
        judgement=Judgement(min_effect=MIN_EFFECT),
    )
    plan = replace(
        plan,
        chosen_contrasts=contrasts,
        terms=GatePlan(
            request.baseline,
            request.candidate,
            metrics,
            request.fail_undecided,
            dict(bisect_lines(request, benchmarks, metrics)),
        ),
    )
    return plan, (*unlisted, *unreported)


def bisect_lines(
    request: GateRequest, benchmarks: Sequence[Benchmark], metrics: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each benchmark, and the words of the line that finds what made it slower.

    A bisection searches by one metric of commands, and by the times that a tool reports.
    """
    good, candidate = request.baseline.commit, request.candidate
    line = partial(
        bisect_words, good, None if candidate.uncommitted else candidate.commit, build=request.build
    )
    tool = request.tool
    if tool is None and len(metrics) == 1:
        lines = ((one.name, line(one.command, metric=metrics[0])) for one in benchmarks)
    elif tool is not None and len(request.benchmarks) == 1:
        names = [metric.removesuffix(BENCHMARK_SUFFIX) for metric in metrics]
        if tool.listing is not None:
            is_time = tuple(metrics) == (BENCHMARK_SUFFIX.strip(),)
            names = [one.name for one in benchmarks] if is_time else []
        command = request.benchmarks[0].command
        lines = ((name, line(command, kind=tool.name, metric=name)) for name in names)
    else:
        return
    yield from ((name, one) for name, one in lines if one is not None)
