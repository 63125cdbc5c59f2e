"""Decides how a gate counts: instructions and allocations, by which counter, in which runs.

Counting slows a program. So a gate counts or times, never both: no time of a run that counts is
compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.counting import callgrind
from equipoise.counting.run import METRICS, counting_command
from equipoise.helpers.allocation_counts import RECORDER
from equipoise.measure.counters import missing_counters
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Measure, Stopping
from equipoise.model.quantities import names_of
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.plan import Checkout, RevisionsRequest
from equipoise.revisions.probing import Notify, SuiteMetrics, reported_names
from equipoise.shared.spelling import option
from equipoise.stats.exact_counts import MIN_BLOCKS
from equipoise.suites.counted_trial import ITERATIONS, counted_trial_command
from equipoise.suites.tool import BenchmarkTool, PrintedLines

Request = TypeVar("Request", bound=RevisionsRequest)

INSTRUCTIONS = "instructions"
"""Metric that the processor counts; without such a counter, `callgrind.METRIC` replaces it."""


class Counting(Struct, frozen=True):
    """How a gate counts."""

    counted_by: dict[str, str]
    """Counter of each metric."""
    reader: BenchmarkTool | None = None
    """Benchmark tool that counts; ``None`` if Equipoise counts."""
    iterated: BenchmarkTool | None = None
    """Benchmark tool of which Equipoise counts one iteration."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(self.counted_by)

    def conditions(self, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
        """Return the conditions with commands that count."""
        if self.reader is not None:
            return tuple(conditions)
        return tuple(
            replace(condition, command=self._command(condition.command)) for condition in conditions
        )

    def _command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        if self.iterated is not None:
            return counted_trial_command(self.iterated, self.metrics, command)
        return counting_command(self.metrics, command)

    def metrics_in(
        self,
        request: RevisionsRequest,
        checkouts: Sequence[Checkout],
        conditions: Sequence[Condition],
        scratch: Path,
        notify: Notify,
    ) -> SuiteMetrics:
        """Return the metrics that are compared: with a tool, those of each benchmark.

        Warnings and errors are those of `equipoise.revisions.probing.metrics_of`.
        """
        if self.reader is None or self.reader.listing is not None:
            return SuiteMetrics(self.metrics)
        suffix = f" {self.metrics[0]}"
        found = reported_names(request, checkouts, conditions, scratch, suffix, notify)
        metrics = (f"{name} {metric}" for name in found.metrics for metric in self.metrics)
        return replace(found, metrics=tuple(metrics))

    def measure(self, measure: Measure) -> Measure:
        """Return settings with which counts can repeat: all environments have one size."""
        return replace(measure, vary_environment_size=False, counters=())

    @property
    def stopping(self) -> Stopping:
        """Default limits: counts that repeat need neither many blocks nor a minimum of seconds."""
        return Stopping(leave_out_decided=True, min_blocks=MIN_BLOCKS, min_seconds=0.0)


def with_counting(request: Request) -> tuple[Request, Counting | None]:
    """Return the request for a gate that counts, and how it counts.

    The request stays as it is, and nothing is counted, if no metric is a count, or if the processor
    counts the instructions of commands.

    Raise `UnusableInput` if times are requested too, the tool does not count, or valgrind is
    missing.
    """
    names = request.metrics if isinstance(request.metrics, tuple) else ()
    tool = request.tool
    counted = [name for name in names if name in METRICS]
    if INSTRUCTIONS in names and (counted or tool is not None or missing_counters((INSTRUCTIONS,))):
        counted.append(INSTRUCTIONS)
    if not counted:
        return request, None
    others = [name for name in names if name not in counted]
    if others:
        raise UnusableInput(
            f"{names_of(counted)} would change {names_of(others)}: counting slows a program",
            hint=f"run two gates, one with {option('metrics', counted)}, one with "
            f"{option('metrics', others)}",
        )
    # In the order in which the user named them.
    metrics = tuple(
        dict.fromkeys(callgrind.METRIC if name == INSTRUCTIONS else name for name in names)
    )
    if tool is None:
        counting = Counting(_own_counters(metrics))
        return replace(request, metrics=metrics), counting
    if tool.counts is not None and set(metrics) <= set(tool.counts.metrics):
        add_options = tool.counts.counting
        benchmarks = tuple(
            Benchmark(benchmark.name, add_options(benchmark.command))
            for benchmark in request.benchmarks
        )
        counting = Counting(dict.fromkeys(metrics, tool.counts.counter), tool)
        return replace(request, metrics=metrics, benchmarks=benchmarks), counting
    if tool.listing is not None and tool.listing.iterations is not None:
        counting = Counting(_own_counters(metrics), iterated=tool)
        return replace(request, metrics=metrics, tool=_with_iterations(tool)), counting
    known = () if tool.counts is None else tool.counts.metrics
    raise UnusableInput(
        f"{tool.name} cannot count {names_of(sorted(set(metrics) - set(known)))} of each benchmark",
        hint=f"choose {option('metrics', list(known))}"
        if known
        else f"remove {option('kind', tool.name)} to count a whole command, named after --",
    )


def _own_counters(metrics: Sequence[str]) -> dict[str, str]:
    simulator = f"callgrind of {callgrind.version()}" if callgrind.METRIC in metrics else ""
    return {metric: simulator if metric == callgrind.METRIC else RECORDER for metric in metrics}


def _with_iterations(tool: BenchmarkTool) -> BenchmarkTool:
    """Return a tool whose programs must accept a number of iterations when they are listed."""
    listing = tool.listing
    assert listing is not None
    assert listing.iterations is not None
    iterations = listing.iterations.format(ITERATIONS)

    def benchmarks(printed_lines: PrintedLines) -> Mapping[str, tuple[str, ...] | None]:
        return listing.benchmarks(lambda *options: printed_lines(iterations, *options))

    return replace(tool, listing=replace(listing, short_run=(), benchmarks=benchmarks))
