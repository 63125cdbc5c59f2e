"""The plan of a gate: two revisions, checked out and built, and what is compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from equipoise.design.coin import fresh_seed
from equipoise.design.commands import find_program
from equipoise.design.limits import GATE_MIN_EFFECT, CampaignLimits
from equipoise.measure.builds import build_revision
from equipoise.measure.counters import counters_among
from equipoise.measure.installation import native_programs
from equipoise.measure.trials import own_environment
from equipoise.measure.workload_metrics import metrics_reported
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import (
    BENCHMARK,
    BENCHMARK_SUFFIX,
    PRIMARY_METRIC,
    REVISION,
    STUDY,
    Condition,
    Contrast,
    GatePlan,
    Judgement,
    Measure,
    Plan,
    Process,
    Revision,
    Stopping,
)
from equipoise.model.record import CampaignWarning
from equipoise.revisions.benchmarks import Benchmark, BenchmarkTool
from equipoise.revisions.checkout import SIDES, Repository, check_out, without_git_variables

TIMEOUT_S = 600.0


class GateRequest(Struct, frozen=True):
    """What the user wants a gate to compare, and how."""

    repository: Repository
    baseline: Revision
    candidate: Revision
    benchmarks: tuple[Benchmark, ...]
    build: str | None = None
    """Line for a shell that builds a revision."""
    tool: BenchmarkTool | None = None
    """Tool that reads the results of the benchmarks, if they report them in its form."""
    metrics: tuple[str, ...] | None = None
    """By default the wall time, or the benchmarks that both revisions report to the tool."""
    limits: CampaignLimits = CampaignLimits()
    fail_undecided: bool = False
    """Whether an undecided benchmark fails the gate."""
    command_line: str = ""
    """Line for a shell that runs the gate again."""


class CheckedOut(Struct, frozen=True):
    """A revision in a working tree of its own."""

    role: str
    """``baseline`` or ``candidate``."""
    revision: Revision
    tree: str
    """Root of the working tree."""
    folder: str
    """Folder of the tree in which the build and the benchmarks run: the one that the user is in."""
    instead_of: str
    """Root of the user's own working tree."""

    @property
    def label(self) -> str:
        """Role, name and commit, as in ``candidate HEAD (1a2b3c4d5e)``."""
        return f"{self.role} {self.revision.label}"


Pair = tuple[CheckedOut, CheckedOut]
"""The baseline and the candidate, checked out and built."""


def check_out_and_build(request: GateRequest, scratch: Path, *, say: Callable[[str], None]) -> Pair:
    """Check both revisions out into the scratch folder and build them there.

    ``say`` is called with a line on each step, for a user who waits.

    Raises
    ------
    UnusableInput
        One cannot be checked out, or lacks the folder that the user is in.
    ConditionFailed
        One cannot be built.
    """
    repository = request.repository

    def checked_out(role: str, revision: Revision, parent: Path) -> CheckedOut:
        parent.mkdir()
        say(f"checking out the {role} {revision.label}")
        tree = check_out(repository, revision, parent)
        folder = tree / repository.inside
        if not folder.is_dir():
            raise UnusableInput(
                f"the {role} {revision.label} has no folder {repository.inside}",
                hint="run the gate in a folder that both revisions have",
            )
        return CheckedOut(role, revision, str(tree), str(folder), str(repository.top))

    old, new = (scratch / name for name in SIDES)
    baseline = checked_out("baseline", request.baseline, old)
    candidate = checked_out("candidate", request.candidate, new)
    for side in (baseline, candidate) if request.build is not None else ():
        say(f"building the {side.label}: {request.build}")
        environment = {**without_git_variables(own_environment()), **_variables(request.tool, side)}
        folder, tree = Path(side.folder), Path(side.tree)
        build_revision(str(request.build), folder, tree, environment, f"the {side.label}")
    return baseline, candidate


def _variables(tool: BenchmarkTool | None, side: CheckedOut) -> dict[str, str]:
    """Return the variables that a tool needs in the working tree of a revision."""
    variables = {} if tool is None else tool.environment
    return {
        name: value.replace("{tree}", side.tree).replace("{own}", side.instead_of)
        for name, value in variables.items()
    }


def gate_plan(
    request: GateRequest, pair: Pair, scratch: Path
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan of a gate, and warnings of benchmarks that only one revision has.

    Raises
    ------
    UnusableInput
        A program does not exist, nothing can be compared, or the options contradict each other.
    ConditionFailed
        A benchmark failed when it was run to see what it reports.
    """
    limits, tool = request.limits, request.tool
    conditions, contrasts = conditions_of_gate(
        request.benchmarks, pair, native_programs(), own_environment(), tool
    )
    timeout_s = TIMEOUT_S if limits.timeout is None else limits.timeout
    metrics, warnings = _metrics(request, conditions, scratch, timeout_s)
    # A tool's benchmarks have just run once, to see what they report.
    default_warmup = 1 if tool is None else 0
    plan = Plan(
        study=STUDY,
        conditions=conditions,
        measure=Measure(
            working_folder=pair[1].folder,
            timeout_s=timeout_s,
            warmup=default_warmup if limits.warmup is None else limits.warmup,
            counters=counters_among(metrics),
        ),
        stopping=limits.stopping(Stopping(leave_out_decided=True)),
        judgement=limits.judgement(metrics, Judgement(min_effect=GATE_MIN_EFFECT)),
        seed=fresh_seed() if limits.seed is None else limits.seed,
        chosen_contrasts=contrasts,
        gated=GatePlan(
            request.baseline,
            request.candidate,
            metrics,
            request.fail_undecided,
            request.command_line,
        ),
    )
    return plan, warnings


def _metrics(
    request: GateRequest, conditions: tuple[Condition, ...], scratch: Path, timeout_s: float
) -> tuple[tuple[str, ...], tuple[CampaignWarning, ...]]:
    """Return the metrics that are named, or the benchmarks that both revisions report."""
    if request.metrics is not None:
        return request.metrics, ()
    if request.tool is None:
        return (PRIMARY_METRIC,), ()
    # The one benchmark command of a tool; it runs once in each revision.
    baseline, candidate = (
        [
            reported.metric
            for reported in metrics_reported(condition, own_environment(), scratch, timeout_s)
            if reported.metric.endswith(BENCHMARK_SUFFIX)
        ]
        for condition in conditions
    )
    both = tuple(dict.fromkeys(metric for metric in baseline if metric in candidate))
    if not both:
        raise UnusableInput(
            f"the two revisions have no benchmark of {request.tool.name} in common",
            hint="see docs/gate.md for what Equipoise reads of it",
        )
    roles = {**dict.fromkeys(baseline, "baseline"), **dict.fromkeys(candidate, "candidate")}
    return both, tuple(
        CampaignWarning(
            "only_in_one_revision",
            f"{metric.removesuffix(BENCHMARK_SUFFIX)} is only in the {role}, and was not compared",
            "compare it once both revisions have it",
        )
        for metric, role in roles.items()
        if metric not in both
    )


def conditions_of_gate(
    benchmarks: Sequence[Benchmark],
    pair: Pair,
    native_programs: Path,
    environment: Mapping[str, str],
    tool: BenchmarkTool | None = None,
) -> tuple[tuple[Condition, ...], tuple[Contrast, ...]]:
    """Return each benchmark of both revisions as a condition, and their contrasts.

    The PATH of the environment finds programs without a slash in their name. The tool reads the
    results of the benchmarks, if they report them in its form.

    Raises
    ------
    UnusableInput
        A program does not exist, or lies in the user's own working tree.
    """
    conditions: list[Condition] = []
    contrasts: list[Contrast] = []
    for benchmark in benchmarks:
        stratum = {BENCHMARK: benchmark.name} if len(benchmarks) > 1 else {}
        contrasts.append(Contrast(len(conditions), len(conditions) + 1, REVISION, stratum))
        for side in pair:
            program = _program(benchmark.command[0], side, native_programs, environment)
            command = (program, *benchmark.command[1:])
            condition = Condition(
                name=f"{benchmark.name}: {side.label}" if stratum else side.label,
                command=command if tool is None else tool.reading(command),
                levels={BENCHMARK: benchmark.name, REVISION: side.label},
                environment=_variables(tool, side),
                process=Process(working_folder=side.folder),
            )
            conditions.append(condition)
    return tuple(conditions), tuple(contrasts)


def _program(
    name: str, side: CheckedOut, native_programs: Path, environment: Mapping[str, str]
) -> str:
    if "/" not in name:
        return find_program(name, native_programs, environment)
    real, own_tree = os.path.realpath(name), os.path.realpath(side.instead_of)
    if os.path.isabs(name) and real.startswith(own_tree + os.sep):
        raise UnusableInput(
            f"{name} is a program of your own working tree: it would be run as both revisions",
            hint=f"name it by its path in the repository, "
            f"./{os.path.relpath(name, side.instead_of)}",
        )
    path = os.path.normpath(os.path.join(side.folder, name))
    if os.path.isfile(path) and not os.access(path, os.X_OK):
        raise UnusableInput(f"{name} of the {side.label} cannot be executed", hint="chmod +x it")
    if not os.path.isfile(path):
        raise UnusableInput(
            f"the {side.label} has no program {name}",
            hint="let --build make it; the path is from the folder in which you run the gate",
        )
    return path
