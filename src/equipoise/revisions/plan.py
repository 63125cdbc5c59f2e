"""From what a gate was asked to its plan: two built revisions, and what is compared."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.cli.options import GATE_BLOCKS, metrics_named, stopping_of
from equipoise.design.coin import fresh_seed
from equipoise.measure.builds import build_revision
from equipoise.measure.counters import counters_among
from equipoise.measure.native import native_programs
from equipoise.measure.reported_metrics import metrics_reported
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    BENCHMARK_SUFFIX,
    PRIMARY_METRIC,
    STUDY,
    Condition,
    GatePlan,
    Judgement,
    Measure,
    Plan,
    Revision,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.report.safe_text import visible
from equipoise.report.shell_line import shell_line
from equipoise.revisions.benchmark_tools import BenchmarkTool
from equipoise.revisions.checkout import SIDES, Repository, check_out, without_git_variables
from equipoise.revisions.conditions import Benchmark, CheckedOut, conditions_of_gate


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked of a gate."""

    repository: Repository
    baseline: Revision
    candidate: Revision
    benchmarks: tuple[Benchmark, ...]
    build: str | None
    tool: BenchmarkTool | None
    options: Mapping[str, Any]
    """The rest, as the command line gave it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Both revisions, checked out and built."""

    baseline: CheckedOut
    candidate: CheckedOut


def checked_out_and_built(asked: Asked, scratch: Path, *, say: Callable[[str], None]) -> Pair:
    """Check both revisions out into the scratch folder and build them there.

    Parameters
    ----------
    say
        Told what is done, for somebody who waits.

    Raises
    ------
    UnusableInput
        One cannot be checked out, or has no such folder as the one that the user stands in.
    ConditionFailed
        One cannot be built.
    """
    sides = []
    revisions = (("baseline", asked.baseline), ("candidate", asked.candidate))
    for name, (role, revision) in zip(SIDES, revisions, strict=True):
        place = scratch / name
        place.mkdir()
        say(visible(f"checking out the {role} {revision.shown}"))
        tree = check_out(asked.repository, revision, place)
        folder = tree / asked.repository.inside
        if not folder.is_dir():
            raise UnusableInput(
                f"the {role} {revision.shown} has no folder {asked.repository.inside}",
                hint="run the gate in a folder that both revisions have",
            )
        top = str(asked.repository.top)
        sides.append(CheckedOut(role, revision, str(tree), str(folder), top))
    for side in sides:
        if asked.build is not None:
            say(visible(f"building the {side.shown}: {asked.build}"))
            _build(asked.build, side, asked.tool)
    return Pair(*sides)


def _build(line: str, side: CheckedOut, tool: BenchmarkTool | None) -> None:
    own = {} if tool is None else tool.environment_in(side.tree, instead_of=side.instead_of)
    environment = {**without_git_variables(own_environment()), **own}
    build_revision(line, Path(side.folder), Path(side.tree), environment, f"the {side.shown}")


def planned(asked: Asked, pair: Pair, scratch: Path) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """The plan of a gate, and what is to be said of it.

    Raises
    ------
    UnusableInput
        A program is not there, nothing can be compared, or the options contradict each other.
    ConditionFailed
        A benchmark failed when it was asked what it reports.
    """
    given = asked.options
    environment = own_environment()
    conditions, contrasts = conditions_of_gate(
        asked.benchmarks,
        pair.baseline,
        pair.candidate,
        native_programs(),
        environment,
        asked.tool,
    )
    metrics, notices = _metrics(asked, conditions, scratch)
    primary, *others = metrics
    warmup = given["warmup"]
    seed = fresh_seed() if given["seed"] is None else given["seed"]
    plan = Plan(
        study=STUDY,
        conditions=conditions,
        measure=Measure(
            working_folder=pair.candidate.folder,
            timeout_s=given["timeout"],
            warmup=(1 if asked.tool is None else 0) if warmup is None else warmup,
            counters=counters_among(metrics),
        ),
        stopping=stopping_of(given, Stopping(blocks=GATE_BLOCKS, leave_out_decided=True)),
        judgement=Judgement(
            alpha=given["alpha"],
            min_effect=given["min_effect"],
            primary_metric=primary,
            other_metrics=tuple(others),
        ),
        seed=seed,
        chosen_contrasts=contrasts,
        gated=GatePlan(
            asked.baseline,
            asked.candidate,
            metrics,
            given["fail_undecided"],
            shell_line(_again(asked, seed)),
        ),
    )
    return plan, notices


def _metrics(
    asked: Asked, conditions: tuple[Condition, ...], scratch: Path
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """What is compared: what was named, or the benchmarks that both revisions report."""
    named = asked.options["metrics"]
    if named is not None:
        return tuple(metrics_named(named)), ()
    if asked.tool is None:
        return (PRIMARY_METRIC,), ()
    timeout_s = asked.options["timeout"]
    # The one benchmark command of a tool; it is run once in each revision.
    baseline, candidate = (
        {
            one.metric: None
            for one in metrics_reported(condition, own_environment(), scratch, timeout_s)
            if one.metric.endswith(BENCHMARK_SUFFIX)
        }
        for condition in conditions
    )
    both = tuple(metric for metric in baseline if metric in candidate)
    if not both:
        raise UnusableInput(
            f"the two revisions report no benchmark of {asked.tool.name} that both have",
            hint="see docs/gate.md for what is read of it",
        )
    alone = (
        *((metric, "baseline") for metric in baseline if metric not in candidate),
        *((metric, "candidate") for metric in candidate if metric not in baseline),
    )
    return both, tuple(
        CampaignWarning(
            "only_in_one_revision",
            f"{metric.removesuffix(BENCHMARK_SUFFIX)} is only in the {role}, and was not compared",
            "compare it once both revisions have it",
        )
        for metric, role in alone
    )


_NUMBERS = (
    "blocks",
    "min_blocks",
    "budget",
    "precision",
    "alpha",
    "min_effect",
    "timeout",
    "warmup",
)


def _again(asked: Asked, seed: int) -> Iterator[str]:
    given = asked.options
    yield from ("equipoise", "gate", "--baseline", asked.baseline.commit)
    if not asked.candidate.uncommitted:
        yield from ("--candidate", asked.candidate.commit)
    for option, line in (
        ("--build", asked.build),
        ("--kind", None if asked.tool is None else asked.tool.name),
        ("--metrics", given["metrics"]),
    ):
        if line is not None:
            yield from (option, line)
    for name in _NUMBERS:
        if given[name] is not None:
            yield from (f"--{name.replace('_', '-')}", f"{given[name]:g}")
    if given["fail_undecided"]:
        yield "--fail-undecided"
    yield from ("--seed", str(seed))
    if len(asked.benchmarks) == 1:
        yield from ("--", *asked.benchmarks[0].command)
        return
    for benchmark in asked.benchmarks:
        yield from ("--bench", f"{benchmark.name}={shlex.join(benchmark.command)}")
