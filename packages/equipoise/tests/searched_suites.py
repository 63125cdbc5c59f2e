"""Bisections of several benchmarks on a scripted clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from equipoise.kinds.bisect.judge import read_searches
from equipoise.kinds.bisect.terms import STUDY, BisectPlan
from equipoise.measure.trials import TrialReport
from equipoise.model.plan import Condition, Contrast, Judgement, Plan, Stopping
from equipoise.model.record import Draw, RunRecord, Sample
from equipoise.model.revisions import BENCHMARK, BENCHMARK_SUFFIX, REVISION, Revision
from equipoise.revisions.terms import CommitBenchmark
from packages.equipoise.tests.commits import NOISE, Runs, Stage, commits_made, steps
from packages.equipoise.tests.plans import plan_of


def plan_of_suite(count: int, *names: str, stopping: Stopping | None = None) -> Plan:
    """A search of benchmarks of a command each, among this many commits after the good one."""
    commits = commits_made(count)
    plan = plan_of(stopping=stopping or Stopping(budget_s=1e6, min_seconds=0.0))
    places = range(len(names))
    benchmarks = tuple(CommitBenchmark(names[place], "wall_s", place) for place in places)
    conditions = tuple(
        Condition(
            name=f"{name}: {commit.hash}",
            command=(f"/bin/{name}",),
            levels={BENCHMARK: name, REVISION: commit.hash},
        )
        for name in names
        for commit in commits
    )
    ends = [(place * (count + 1), place * (count + 1) + count) for place in places]
    return replace(
        plan,
        study=STUDY,
        conditions=conditions,
        chosen_contrasts=tuple(
            Contrast(*pair, REVISION, {BENCHMARK: name})
            for pair, name in zip(ends, names, strict=True)
        ),
        ranking=False,
        terms=_terms(count, benchmarks),
    )


def plan_of_one_command(count: int, *names: str) -> Plan:
    """A search of benchmarks that one command measures."""
    metrics = tuple(name + BENCHMARK_SUFFIX for name in names)
    benchmarks = tuple(map(CommitBenchmark, names, metrics))
    plan = plan_of(
        *(commit.hash for commit in commits_made(count)),
        stopping=Stopping(budget_s=1e6, min_seconds=0.0),
        judgement=Judgement(primary_metric=metrics[0], other_metrics=metrics[1:]),
    )
    return replace(
        plan,
        study=STUDY,
        chosen_contrasts=(Contrast(0, count, REVISION),),
        ranking=False,
        terms=_terms(count, benchmarks),
    )


def _terms(count: int, benchmarks: tuple[CommitBenchmark, ...]) -> BisectPlan:
    commits = commits_made(count)
    good, bad = (Revision(name, commits[at].hash) for name, at in (("old", 0), ("new", -1)))
    return BisectPlan(good=good, bad=bad, commits=commits, build="make", benchmarks=benchmarks)


def stage_of(
    folder: Path, count: int, culprits: Sequence[tuple[int, ...]], **script: object
) -> Stage:
    """Trials of benchmarks of a command each, with the commits at which each gets slower."""
    medians = [median for at in culprits for median in steps(count, *at)]
    return Stage(folder, tuple(medians), **script)


@dataclass
class ReportsSeveral(Runs):
    """Trials that report several benchmarks; each has its median by commit."""

    reported: dict[str, tuple[float, ...]] | None = None
    lacks: frozenset[tuple[str, int]] = frozenset()
    """Benchmarks that the command does not report in some commits."""

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        (run,) = super().trials_at(draw, place)
        return (lambda: self._reporting(run(), draw.order[place]),)

    def _reporting(self, report: TrialReport, commit: int) -> TrialReport:
        samples = tuple(
            Sample(
                name + BENCHMARK_SUFFIX,
                medians[commit] * math.exp(self.random.gauss(0.0, NOISE)),
                better="lower",
            )
            for name, medians in (self.reported or {}).items()
            if (name, commit) not in self.lacks
        )
        return replace(report, trial=replace(report.trial, samples=samples))


def stage_of_one_command(
    folder: Path,
    count: int,
    culprits: Mapping[str, tuple[int, ...]],
    lacks: frozenset[tuple[str, int]] = frozenset(),
) -> Stage:
    """Trials of a command that reports benchmarks, with the commits at which each gets slower."""
    stage = Stage(folder, steps(count))
    reported = {name: steps(count, *at) for name, at in culprits.items()}
    stage.runner = ReportsSeveral(stage.clock, steps(count), NOISE, reported=reported, lacks=lacks)
    return stage


def named(record: RunRecord) -> dict[str, list[int]]:
    """Return the commits that the recorded searches name, by benchmark."""
    return {
        one.benchmark.name: sorted(step.last for step in one.bisection.named_steps)
        for one in read_searches(record)
    }
