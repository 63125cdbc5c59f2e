"""The processes of a gate over functions: one process times a benchmark of both revisions.

The process loads the libraries in the order that the coin drew, and times batches of both in turns.
A library has a place, first or second, and nothing else distinguishes the two in the process. So
if the revisions are equal, the times by place do not depend on the coin (rule 1). A process gives
one number for each revision: the median of its batches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.coin import seed_in_block
from equipoise.kinds.gate.functions import functions_program
from equipoise.kinds.gate.terms import FunctionTiming, GatePlan, benchmark_of_condition
from equipoise.measure.environment import CovariateReader
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, OnWait, Report, Request, Starter
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import (
    TrialReport,
    accounting_of,
    base_environment,
    failure_of,
    own_environment,
)
from equipoise.model.plan import CALL_METRIC, PADDING_VARIABLE, Plan
from equipoise.model.record import Accounting, Draw, Sample, Trial

SHARED_PROCESS = "one process runs both revisions"
"""Reason why a trial of a function has no measurements other than times."""
_PROCESS_FIELDS = frozenset(Accounting.__struct_fields__) - {"wall_s", "counters", "unknown"}
"""Fields of `Accounting` about a whole process, which are unknown for one function."""


class Batches(Struct, frozen=True):
    """Nanoseconds of each batch of a process, by place."""

    first: tuple[int, ...]
    second: tuple[int, ...]


class FunctionPairRunner(Struct):
    """Runs one process for each benchmark of a block; it gives the trials of both revisions."""

    plan: Plan
    program: str
    starter: Starter
    scratch: Path
    environment: Mapping[str, str]
    covariates: CovariateReader
    on_wait: OnWait | None = None
    now: Callable[[], float] = time.time
    """Seconds since the epoch."""
    _waiting: list[TrialReport] = field(default_factory=list)
    """Report of the second trial of the last process, until its turn."""

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trial at one position; the first of a benchmark runs the process."""
        if position % 2:
            return (self._waiting.pop,)
        return (lambda: self._run(draw, position),)

    def _run(self, draw: Draw, position: int) -> TrialReport:
        order = draw.order[position : position + 2]
        output, running = self.scratch / "batches.json", self.scratch / "running"
        for file in (output, running):
            file.unlink(missing_ok=True)
        started_at = self.now()
        self.covariates.read_before()
        request = self._request(draw, order, output, running)
        report = self.starter.run(request, self.on_wait)
        covariates = self.covariates.read_after(cpu=report.cpu, run_delay_s=report.run_delay_s)
        kind, _ = failure_of(report, self.plan.measure.timeout_s)
        batches = _read_batches(output) if kind is None else None
        trials = [
            self._trial(draw, position + place, condition, report, started_at, covariates, times)
            for place, (condition, times) in enumerate(
                zip(order, (None, None) if batches is None else batches, strict=True)
            )
        ]
        if batches is None:
            trials = _with_failure(
                trials, report, self.plan.measure.timeout_s, _running_place(running)
            )
        reports = [
            TrialReport(trial, report.left_behind if place == 0 else 0, None)
            for place, trial in enumerate(trials)
        ]
        # A failed trial comes first and ends the campaign, so that the block stays incomplete.
        reports.sort(key=lambda report: report.trial.failure is None)
        self._waiting = reports[1:]
        return reports[0]

    def _request(self, draw: Draw, order: Sequence[int], output: Path, running: Path) -> Request:
        plan, timing = self.plan, _timing_of(self.plan)
        benchmark = benchmark_of_condition(order[0])
        arguments: list[str] = []
        for condition in order:
            # The command of a condition is: PROGRAM --library FILE --function NAME.
            arguments += plan.conditions[condition].command[1:3]
            iterations = timing.iterations[benchmark][condition % 2]
            arguments += ("--iterations", str(iterations))
        arguments += plan.conditions[order[0]].command[3:5]
        # All that is random in a process, except its order, follows from this seed.
        seed = seed_in_block(plan.seed, f"function {benchmark}", draw.phase, draw.block)
        arguments += ("--rounds", str(timing.rounds[benchmark]))
        arguments += ("--seed", str(seed))
        arguments += ("--output", str(output), "--running", str(running))
        return Request(
            argv=(self.program, *arguments),
            environment={**self.environment, PADDING_VARIABLE: "x" * draw.padding_bytes},
            working_folder=plan.measure.working_folder,
            timeout_s=plan.measure.timeout_s,
        )

    def _trial(
        self,
        draw: Draw,
        position: int,
        condition: int,
        report: Report,
        started_at: float,
        covariates: dict[str, float | None],
        times_ns: Sequence[int] | None,
    ) -> Trial:
        accounting = accounting_of(report)
        return Trial(
            phase=draw.phase,
            block=draw.block,
            position=position,
            condition=condition,
            started_at=started_at,
            accounting=replace(
                accounting,
                **dict.fromkeys(_PROCESS_FIELDS),
                unknown={**accounting.unknown, **dict.fromkeys(_PROCESS_FIELDS, SHARED_PROCESS)},
            ),
            exit=report.exit,
            covariates=covariates,
            samples=() if times_ns is None else self._samples(condition, times_ns),
        )

    def _samples(self, condition: int, times_ns: Sequence[int]) -> tuple[Sample, ...]:
        benchmark = benchmark_of_condition(condition)
        divisor = 1e9 * _timing_of(self.plan).iterations[benchmark][condition % 2]
        # The sample without a number is the value of the trial.
        values_ns = [*enumerate(times_ns), (None, statistics.median(times_ns))]
        return tuple(
            Sample(CALL_METRIC, batch_ns / divisor, number, "s", resolution=1.0 / divisor)
            for number, batch_ns in values_ns
        )


def _timing_of(plan: Plan) -> FunctionTiming:
    assert isinstance(plan.terms, GatePlan)
    assert plan.terms.functions is not None, "the plan is a gate over functions"
    return plan.terms.functions


def _read_batches(output: Path) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the batches by place; ``None`` if the process ended before it wrote them."""
    try:
        batches = msgspec.json.decode(output.read_bytes(), type=Batches)
    except (OSError, msgspec.DecodeError):
        return None
    return batches.first, batches.second


def _running_place(running: Path) -> int | None:
    """Return the place of the library that ran last; ``None`` if none was loaded."""
    try:
        content = running.read_bytes()
    except OSError:
        return None
    return content[0] if content else None


def _with_failure(
    trials: Sequence[Trial], report: Report, timeout_s: float, place: int | None
) -> list[Trial]:
    """Return the trials of a process without times; the library that ran last failed.

    The revisions share the process, so a timeout is a failure, too, and ends the campaign.
    """
    kind, text = failure_of(report, timeout_s)
    failed = replace(
        trials[place or 0],
        failure=text or "its process ended early",
        failure_kind="failed" if kind in (None, "timed out") else kind,
        error_tail=report.error_tail,
    )
    return [failed if trial.condition == failed.condition else trial for trial in trials]


@contextmanager
def function_pair_runner(plan: Plan, on_wait: OnWait) -> Iterator[FunctionPairRunner]:
    """Provide the runner of a gate over functions, for ``campaign.conduct``."""
    # Processes that a killed campaign left behind would disturb the trials.
    clear_leftovers()
    with (
        scratch_folder() as scratch,
        Launcher(launcher_program(), scratch=scratch) as launcher,
        CovariateReader() as covariates,
    ):
        yield FunctionPairRunner(
            plan,
            str(functions_program()),
            launcher,
            scratch,
            base_environment(own_environment()),
            covariates,
            on_wait=on_wait,
        )
