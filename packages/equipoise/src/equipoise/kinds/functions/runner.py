"""A block of a campaign of functions: one fresh process, and a trial for each function.

A batch is a number of calls that are timed together. In each round the process runs one batch of
every function, so a change of the machine affects all functions. The coin draws three orders
separately: the order of the functions in the block, in each round, and of their definitions. A
process yields one number for each function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.design.coin import draw_block, draw_order
from equipoise.kinds.functions.functions import Benchmark
from equipoise.kinds.functions.processes import (
    MAX_WAITING_PROCESSES,
    Answer,
    ProcessKey,
    ProcessProvider,
    process_pool,
)
from equipoise.kinds.functions.terms import FunctionsPlan, functions_of
from equipoise.kinds.functions.trial_runs import ROUNDS
from equipoise.measure.environment import CovariateReader
from equipoise.measure.launcher import OnWait
from equipoise.measure.trials import (
    TrialReport,
    accounting_of,
    base_environment,
    failure_of,
    own_environment,
)
from equipoise.model.plan import CALL_METRIC, PADDING_VARIABLE, Plan
from equipoise.model.record import Accounting, Draw, Sample, Trial
from equipoise.stats.warm_up import classify_trial

SHARED_PROCESS = "one process runs every function"
"""Reason why a trial of a function has no measurements other than times."""
_PROCESS_FIELDS = frozenset(Accounting.__struct_fields__) - {"wall_s", "counters", "unknown"}
"""Fields of `Accounting` about a whole process, which are unknown for one function."""
WARMUP_BATCHES = 1
"""Number of batches that are not analysed: their calls import modules and fill caches."""


def steady_ns(batches: Sequence[int]) -> float:
    """Return the nanoseconds of a typical batch of a process, after its warm-up.

    The result is the median of all batches except the first. If `stats.warm_up` finds a longer
    warm-up, only the batches after it count.
    """
    analysed = np.asarray(batches[WARMUP_BATCHES:] or batches, dtype=np.float64)
    shape = classify_trial(analysed)
    if shape is not None and shape.kind == "warm-up":
        analysed = analysed[shape.steady_from or 0 :]
    return float(np.median(analysed))


class FunctionRunner(Struct):
    """Runner of one process for each block of a plan; the process gives all trials of the block."""

    plan: Plan
    processes: ProcessProvider
    covariates: CovariateReader
    on_wait: OnWait | None = None
    now: Callable[[], float] = time.time
    """Seconds since the epoch."""
    clock: Callable[[], float] = time.monotonic
    _reports: tuple[TrialReport, ...] = ()

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trial at one position of a block; the first trial runs the process."""
        return (lambda: self._run(draw, position),)

    def _run(self, draw: Draw, position: int) -> TrialReport:
        if position == 0:
            instructions = instructions_of_block(self.plan, draw)
            started_at, began = self.now(), self.clock()
            self.covariates.read_before()
            answer = self.processes.run((draw.phase, draw.block), instructions, self.on_wait)
            report = answer.report
            covariates = self.covariates.read_after(cpu=report.cpu, run_delay_s=report.run_delay_s)
            wall_s = self.clock() - began
            trials = self._trials(draw, answer, started_at, wall_s, covariates)
            # Failed trials come first and end the campaign, so the block stays incomplete.
            self._reports = tuple(sorted(trials, key=lambda report: report.trial.failure is None))
        return self._reports[position]

    def _trials(
        self,
        draw: Draw,
        answer: Answer,
        started_at: float,
        wall_s: float,
        covariates: dict[str, float | None],
    ) -> Iterator[TrialReport]:
        """Yield the trial of each function, from the answer of the process that ran all of them."""
        report, content = answer.report, answer.content or {}
        batches = content.get("batches")
        end_kind, failure_text = failure_of(report, self.plan.measure.timeout_s)
        process_accounting = accounting_of(report)
        accounting = replace(
            process_accounting,
            wall_s=wall_s,
            **dict.fromkeys(_PROCESS_FIELDS),
            unknown={
                **process_accounting.unknown,
                **dict.fromkeys(_PROCESS_FIELDS, SHARED_PROCESS),
            },
        )
        for position, condition in enumerate(draw.order):
            failure, failure_kind = None, None
            # If a process ends before any function runs, all its functions fail.
            if batches is None and content.get("failed", answer.running_index) in (None, condition):
                failure = failure_text or "its process ended early"
                # The functions share the process, so a timeout is a failure and ends the campaign.
                failure_kind = end_kind if end_kind not in (None, "timed out") else "failed"
                if "failed" in content:
                    failure, failure_kind = f"{content['stage']}: {content['text']}", "failed"
            trial = Trial(
                phase=draw.phase,
                block=draw.block,
                position=position,
                condition=condition,
                started_at=started_at,
                accounting=accounting,
                exit=report.exit,
                failure=failure,
                failure_kind=failure_kind,
                error_tail=report.error_tail if failure is not None else "",
                covariates=covariates,
                samples=() if batches is None else self._samples(condition, batches[condition]),
            )
            yield TrialReport(trial, report.left_behind if position == 0 else 0, None)

    def _samples(self, condition: int, batches: Sequence[int]) -> tuple[Sample, ...]:
        # The nanoseconds of a batch / divisor = the seconds of a call. The sample without a number
        # is the value of the trial.
        divisor = 1e9 * functions_of(self.plan).batch_calls[condition]
        times_ns: list[tuple[int | None, float]] = [*enumerate(batches), (None, steady_ns(batches))]
        return tuple(
            Sample(CALL_METRIC, batch_ns / divisor, number, "s", resolution=1.0 / divisor)
            for number, batch_ns in times_ns
        )


def instructions_of_block(plan: Plan, draw: Draw) -> dict[str, Any]:
    """Return the instructions for the process of a block."""
    position_count = len(draw.order)

    def drawn_order(purpose: str) -> list[int]:
        label = f"{purpose} of {draw.phase}"
        positions = draw_order(plan.seed, label, draw.block, position_count)
        return [draw.order[position] for position in positions]

    rounds = WARMUP_BATCHES + functions_of(plan).rounds
    return {
        "definition_order": drawn_order("definitions"),
        "round_orders": [drawn_order(f"round {number}") for number in range(rounds)],
        "calls": list(functions_of(plan).batch_calls),
        "fresh_data": functions_of(plan).fresh_data,
    }


@contextmanager
def function_runner(
    benchmarks: Sequence[Benchmark], plan: Plan, on_wait: OnWait
) -> Iterator[FunctionRunner]:
    """Provide the runner of a campaign of functions, for ``campaign.conduct``."""
    environment = base_environment(own_environment())
    with (
        process_pool(
            benchmarks,
            lambda key: {**environment, PADDING_VARIABLE: "x" * padding_bytes(plan, key)},
            lambda key: keys_prepared_with(plan, key),
            plan.measure.timeout_s,
        ) as processes,
        CovariateReader() as covariates,
    ):
        yield FunctionRunner(plan, processes, covariates, on_wait=on_wait)


def keys_prepared_with(plan: Plan, key: ProcessKey) -> list[ProcessKey]:
    """Return the key of a block, and the keys of further blocks to prepare at the same time."""
    phase, block = key
    last_block = block + MAX_WAITING_PROCESSES - 1
    if phase == "warmup":
        last_block = min(last_block, plan.warmup_blocks)
    elif plan.stopping.blocks is not None:
        last_block = min(last_block, plan.stopping.blocks)
    # Slow functions get fewer rounds. For them, early preparation saves little time.
    if not isinstance(plan.terms, FunctionsPlan) or plan.terms.rounds < ROUNDS:
        last_block = block
    return [(phase, number) for number in range(block, max(last_block, block) + 1)]


def padding_bytes(plan: Plan, key: ProcessKey) -> int:
    """Return the number of bytes to add to the environment of a block's process."""
    phase, block = key
    return draw_block(plan, "warmup" if phase == "warmup" else "measured", block).padding_bytes
