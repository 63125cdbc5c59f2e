"""Runs benchmarks once before a campaign: finds their names, and those that fail or hang.

A benchmark that fails is left out, and the others are compared. These runs are not timed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.measure.trials import own_environment
from equipoise.measure.workload_metrics import UntimedRun, run_for_metrics
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import PRIMARY_METRIC, Condition
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import BENCHMARK_SUFFIX
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.plan import (
    Checkout,
    RevisionsRequest,
    common_names,
)
from equipoise.shared.spelling import option
from equipoise.suites.running import TIMEOUT_VARIABLE, StoppedAt
from equipoise.suites.tool import BenchmarkTool

Request = TypeVar("Request", bound=RevisionsRequest)
_NOTICE_S = 60.0
"""Seconds after which a line says that a benchmark still runs."""
_END_S = 10.0
"""Seconds that the process that reads a tool's results gets to end a tool that hangs."""
Notify = Callable[[str, str], None]
"""Function that shows a sentence and a hint."""


def silent(sentence: str, hint: str) -> None:
    """Show nothing."""


class BenchmarkStopped(ConditionFailed):
    """Error: a benchmark hangs, or ends the process in which a tool runs all benchmarks."""

    def __init__(self, checkout: Checkout, benchmark: str, reason: str, *, hint: str) -> None:
        super().__init__(f"{checkout.label}: {benchmark}: {reason}", hint=hint)
        self.benchmark = benchmark
        self.reason = f"{checkout.role}: {reason}"


class SuiteMetrics(Struct, frozen=True):
    """The metrics of a suite that are compared."""

    metrics: tuple[str, ...]
    warnings: tuple[CampaignWarning, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reason why a benchmark failed, with the revision, by the benchmark's name."""


def metrics_of(
    request: RevisionsRequest,
    checkouts: Sequence[Checkout],
    conditions: Sequence[Condition],
    scratch: Path,
    notify: Notify = silent,
) -> SuiteMetrics:
    """Return the requested metrics, the wall time, or the tool's benchmarks in all checkouts.

    If a tool cannot list benchmarks, its command runs once in each checkout to find their names.
    Warnings name the benchmarks that only one checkout has, and those that failed.

    Raise `UnusableInput` if the checkouts have no benchmark in common. Raise `BenchmarkStopped` or
    `ConditionFailed` if the benchmarks failed.
    """
    tool = request.tool
    if isinstance(request.metrics, tuple):
        return SuiteMetrics(request.metrics)
    if tool is None:
        return SuiteMetrics((request.metrics or PRIMARY_METRIC,))
    if tool.listing is not None:
        return SuiteMetrics((BENCHMARK_SUFFIX.strip(),))
    found = reported_names(request, checkouts, conditions, scratch, BENCHMARK_SUFFIX, notify)
    return replace(found, metrics=tuple(name + BENCHMARK_SUFFIX for name in found.metrics))


def reported_names(
    request: RevisionsRequest,
    checkouts: Sequence[Checkout],
    conditions: Sequence[Condition],
    scratch: Path,
    suffix: str,
    notify: Notify = silent,
) -> SuiteMetrics:
    """Return, as metrics, the benchmarks that report a metric with a suffix, by one run in each.

    Warnings and errors are those of `metrics_of`.
    """
    tool, timeout_s = request.tool, request.limits.timeout_s
    assert tool is not None
    environment = {**own_environment(), TIMEOUT_VARIABLE: f"{timeout_s:g}"}
    all_names: list[list[str]] = []
    failures: dict[str, list[str]] = {}
    for condition, checkout in zip(conditions, checkouts, strict=True):
        with _notice_of(condition, timeout_s, notify):
            run = run_for_metrics(condition, environment, scratch, timeout_s + _END_S)
        reasons = {
            metric.removesuffix(BENCHMARK_SUFFIX): reason for metric, reason in run.unknown.items()
        }
        if run.exit == StoppedAt.exit_status and reasons:
            benchmark, reason = list(reasons.items())[-1]
            hint = _deselecting_hint(tool, request.benchmarks[0].command, benchmark)
            raise BenchmarkStopped(checkout, benchmark, reason, hint=hint)
        require_success(condition, run, timeout_s)
        reported = [sample.metric for sample in run.samples if sample.metric.endswith(suffix)]
        names = [metric.removesuffix(suffix) for metric in reported]
        all_names.append([name for name in names if name not in reasons])
        for name, reason in reasons.items():
            failures.setdefault(name, []).append(f"{checkout.role}: {reason}")
    described = {name: "; ".join(reasons) for name, reasons in failures.items()}
    # A benchmark that failed in one revision is not missing in it.
    all_names = [[name for name in names if name not in failures] for names in all_names]
    if failures and not any(all_names):
        problem = "; ".join(f"{name} failed in the {reason}" for name, reason in described.items())
        raise ConditionFailed(problem, hint="correct the benchmarks: none can be compared")
    names_of_all, warnings = common_names(tool.name, checkouts, all_names)
    return SuiteMetrics(names_of_all, (*failure_warnings(described), *warnings), described)


def require_success(condition: Condition, run: UntimedRun, timeout_s: float) -> None:
    """Raise `ConditionFailed` if a run of a condition failed."""
    if run.failure is not None:
        hint = f"run `{shell_line(condition.command)}` by hand to see the whole error"
        if run.exit is None:
            hint = f"allow more time, for example {option('timeout', f'{2 * timeout_s:g}')}"
        raise ConditionFailed(f"{condition.name} failed: {run.failure}", hint=hint)


def failure_warnings(failures: Mapping[str, str]) -> Iterator[CampaignWarning]:
    """Yield a warning for each benchmark that failed, by its name and the reason."""
    for name, reason in failures.items():
        yield CampaignWarning(
            "benchmark_failed",
            f"{name} failed, and was not compared ({reason})",
            "correct it, or leave it out; the others were compared",
        )


def _deselecting_hint(tool: BenchmarkTool, command: tuple[str, ...], benchmark: str) -> str:
    selected = None if tool.without is None else tool.without(command, benchmark)
    leave_out = "take it out of the suite, because the tool cannot leave it out"
    if selected is not None:
        leave_out = f"leave it out: -- {shell_line(selected)}"
    return f"correct it, raise {option('timeout')}, or {leave_out}"


@contextmanager
def _notice_of(condition: Condition, timeout_s: float, notify: Notify) -> Iterator[None]:
    """Notify once if the block of this context takes long."""
    sentence = f"{condition.name} has run for {_NOTICE_S:g} s, and ends after {timeout_s:g} s"
    hint = f"if it hangs, set {option('timeout', f'{_NOTICE_S:g}')}"
    timer = threading.Timer(_NOTICE_S, notify, (sentence, hint))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def without_benchmark(request: Request, error: BenchmarkStopped) -> Request:
    """Return the request without the benchmark of an error; or raise the error."""
    without = None if request.tool is None else request.tool.without
    benchmarks: list[Benchmark] = []
    for program in request.benchmarks:
        command = None if without is None else without(program.command, error.benchmark)
        if command is None:
            raise error
        benchmarks.append(replace(program, command=command))
    return replace(request, benchmarks=tuple(benchmarks))


def working_benchmarks(
    request: RevisionsRequest,
    benchmarks: Sequence[Benchmark],
    checkouts: Sequence[Checkout],
    conditions: Sequence[Condition],
    scratch: Path,
    notify: Notify,
) -> tuple[tuple[Benchmark, ...], Mapping[str, str]]:
    """Return the listed benchmarks that run in all checkouts, and the failures of the others.

    ``conditions`` has a condition for each benchmark and checkout, as `conditions_of_gate`; each
    runs once. ``notify`` gets a sentence about one that runs long. Raise `ConditionFailed` with the
    first failure if all benchmarks failed.
    """
    timeout_s = request.limits.timeout_s
    working: list[Benchmark] = []
    failures: dict[str, str] = {}
    first_failure: tuple[Condition, UntimedRun] | None = None
    # The conditions of a benchmark are next to each other.
    groups = zip(*[iter(conditions)] * len(checkouts), strict=True)
    for benchmark, group in zip(benchmarks, groups, strict=True):
        reasons: list[str] = []
        for checkout, condition in zip(checkouts, group, strict=True):
            with _notice_of(condition, timeout_s, notify):
                run = run_for_metrics(condition, own_environment(), scratch, timeout_s)
            if run.failure is not None:
                first_failure = first_failure or (condition, run)
                reasons.append(f"{checkout.role}: {run.failure}")
        if reasons:
            failures[benchmark.name] = "; ".join(reasons)
        else:
            working.append(benchmark)
    if not working and first_failure is not None:
        require_success(*first_failure, timeout_s)
    return tuple(working), failures
