"""Run the trials of a campaign, each in a fresh process that the launcher starts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.layouts import longer_path
from equipoise.measure.environment import CovariateReader
from equipoise.measure.launcher import Report, Request, Starter
from equipoise.measure.untimed import describe_signal, run_hook, unavailable_reason
from equipoise.measure.workload_metrics import (
    METRICS_VARIABLE,
    MetricsFile,
    WorkloadMetrics,
    with_missing_metrics,
)
from equipoise.model.plan import (
    OWN_PREFIX,
    PADDING_VARIABLE,
    PLAIN_PADDING_VARIABLE,
    Condition,
    Layout,
    Plan,
)
from equipoise.model.record import Accounting, Draw, FailureKind, Trial
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.measure.servers import Servers, Service

OUTPUT_ROOM = "output_room"
"""Key of the launcher's reason if the disk was too full for a trial's output (crates/launcher)."""
ITERATION_VARIABLE = "HYPERFINE_ITERATION"
"""Variable with the number of the trial, such as ``0`` or ``warmup-0``, as in hyperfine."""
_LAUNCHER_COVARIATES = ("cpu", "run_delay_s")
"""Covariates that the launcher reports."""


class TrialReport(Struct, frozen=True):
    """A finished trial, with facts that may cause warnings."""

    trial: Trial
    left_behind: int
    """Number of processes that the trial left behind; they were ended."""
    metrics_problem: str | None
    """Problem with the metrics that the workload reported; ``None`` if there is none."""
    at_once: TrialReport | None = None
    """Report of the next trial of the block if it ran at the same time; else ``None``."""


class FinishedTrial(Struct, frozen=True):
    """Measurements of a trial that has ended."""

    report: Report
    metrics: WorkloadMetrics
    started_at: float
    """Seconds since the epoch."""
    covariates: dict[str, float | None]
    service: Service | None = None
    """Server of the trial; ``None`` without a server."""


class TrialRunner(Struct):
    """Runner of the trials of a plan, one at a time."""

    plan: Plan
    starter: Starter
    scratch: Path
    """Private folder for the workload's own metrics."""
    environment: Mapping[str, str]
    """Environment of the caller, to which each condition's own environment is added."""
    covariates: CovariateReader
    servers: Servers | None = None
    on_wait: Callable[[], None] = lambda: None
    """Function to call about once a second during a long trial."""
    now: Callable[[], float] = time.time
    """Clock in seconds since the epoch."""
    _set_up_conditions: set[int] = field(default_factory=set)
    """Indices of the conditions whose ``--setup`` was started."""
    _uses_iteration_variable: bool = False
    """Whether a command or a hook mentions `ITERATION_VARIABLE`, so that the variable is set."""
    _iteration_variable: dict[str, str] = field(default_factory=dict)
    """`ITERATION_VARIABLE` with the number of the present trial; empty if it is not used."""

    def __post_init__(self) -> None:
        """Remove the variables that are set for each trial from the environment."""
        self.environment = base_environment(self.environment)
        self._uses_iteration_variable = any(map(_mentions_iteration, self.plan.conditions))

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return functions that run the trials at one position of a block.

        In most blocks, a position has one function. In a block with washouts, a position has two
        functions: for the washout, and then for the trial. If a function runs two trials at once
        (`DuetRunner`), the position of the second trial has no function. The caller stores each
        trial in the ledger before it starts the next trial.
        """
        condition_index, washout_index = draw.order[position], draw.washout_condition
        if washout_index is None:
            return (lambda: self._run(draw, condition_index, position, washout=False),)
        return (
            lambda: self._run(draw, washout_index, 2 * position, washout=True),
            lambda: self._run(draw, condition_index, 2 * position + 1, washout=False),
        )

    def clean_up(self) -> None:
        """Run ``--cleanup`` of every condition whose ``--setup`` may have run."""
        for index in sorted(self._set_up_conditions):
            condition = self.plan.conditions[index]
            self._run_hook("cleanup", condition)
        self._set_up_conditions.clear()

    def _run(self, draw: Draw, index: int, position: int, *, washout: bool) -> TrialReport:
        """Run one trial of the condition with this index, with its hooks, server and covariates."""
        condition = self.plan.conditions[index]
        self._run_hooks_before(draw, index)
        metrics_file = MetricsFile(self.scratch)
        metrics_file.clear()
        with self._running_server(condition, draw.padding_bytes) as service:
            request = self._request(condition, draw, service, metrics_file)
            started_at = self.now()
            self.covariates.read_before()
            report = self.starter.run(request, self.on_wait)
            covariates = self.covariates.read_after(cpu=report.cpu, run_delay_s=report.run_delay_s)
        metrics = metrics_file.read()
        self._run_hook("conclude", condition)
        finished = FinishedTrial(report, metrics, started_at, covariates, service)
        return self._trial_report(draw, index, position, finished, washout=washout)

    def _run_hooks_before(self, draw: Draw, index: int) -> None:
        """Run the hooks of a condition that come before its trial."""
        condition = self.plan.conditions[index]
        if self._uses_iteration_variable:
            number_prefix = "warmup-" if draw.phase == "warmup" else ""
            self._iteration_variable = {ITERATION_VARIABLE: f"{number_prefix}{draw.block - 1}"}
        if index not in self._set_up_conditions:
            self._set_up_conditions.add(index)
            self._run_hook("setup", condition)
        self._run_hook("prepare", condition)

    def _trial_report(
        self,
        draw: Draw,
        index: int,
        position: int,
        finished: FinishedTrial,
        *,
        washout: bool = False,
    ) -> TrialReport:
        condition = self.plan.conditions[index]
        report, metrics, service = finished.report, finished.metrics, finished.service
        accounting = accounting_of(report)
        if metrics.unknown:
            unknown = {**metrics.unknown, **accounting.unknown}
            accounting = replace(accounting, unknown=unknown)
        if metrics.unreadable_because is not None:
            accounting = with_missing_metrics(
                accounting, metrics.unreadable_because, self.plan, condition
            )
        failure_kind, failure = failure_of(report, self.plan.measure.timeout_s)
        error_tail, samples = report.error_tail, metrics.samples
        if service is not None:
            samples += service.samples
            if service.failure is not None:
                # The server's failure caused any failure of the client.
                client_clause = "" if failure is None else f", and its client: {failure}"
                failure_kind = "timed out" if report.timed_out else "failed"
                failure = f"its server ended: {service.failure}{client_clause}"
                error_tail = service.log_tail
        trial = Trial(
            phase=draw.phase,
            block=draw.block,
            position=position,
            condition=index,
            started_at=finished.started_at,
            accounting=accounting,
            exit=report.exit,
            failure=failure,
            failure_kind=failure_kind,
            washout=washout,
            error_tail=error_tail if failure is not None else "",
            covariates=finished.covariates,
            samples=samples,
        )
        return TrialReport(trial, report.left_behind, metrics.unreadable_because or metrics.problem)

    def _running_server(
        self, condition: Condition, padding_bytes: int
    ) -> AbstractContextManager[Service | None]:
        if condition.server is None:
            return nullcontext()
        assert self.servers is not None, "a plan with servers needs `servers`"
        return self.servers.serving(
            condition.name,
            condition.server,
            self._with_trial_variables({}, padding_bytes, MetricsFile(self.scratch)),
            self.plan.measure.timeout_s,
        )

    def _request(
        self,
        condition: Condition,
        draw: Draw,
        service: Service | None,
        metrics_file: MetricsFile,
    ) -> Request:
        measure = self.plan.measure
        command, environment = condition.command_in(draw.layout), condition.environment
        if service is not None:
            command = service.home.fill_all(command)
            environment = service.home.fill_values(environment)
        request = Request(
            argv=command,
            environment=self._with_trial_variables(environment, draw.padding_bytes, metrics_file),
            working_folder=condition.process.working_folder or measure.working_folder,
            input=measure.input,
            output=condition.output or measure.output,
            timeout_s=measure.timeout_s,
            process=condition.process,
        )
        if draw.layout is None:
            return request
        return in_layout(request, self.plan.layouts[draw.layout - 1])

    def _with_trial_variables(
        self, environment: Mapping[str, str], padding_bytes: int, metrics_file: MetricsFile
    ) -> dict[str, str]:
        if not self.plan.measure.own_variables:
            # The path identifies the processes of a killed campaign.
            padding = {PLAIN_PADDING_VARIABLE: f"{self.scratch}/{'x' * padding_bytes}"}
            return without_own_variables({**self.environment, **padding, **environment})
        return {
            **self.environment,
            **self._iteration_variable,
            METRICS_VARIABLE: str(metrics_file.path),
            PADDING_VARIABLE: "x" * padding_bytes,
            **environment,
        }

    def _run_hook(self, hook: str, condition: Condition) -> None:
        line = getattr(condition.hooks, hook)
        if line is not None:
            run_hook(
                hook,
                condition.name,
                line,
                {**self.environment, **self._iteration_variable, **condition.environment},
                self.plan.measure.working_folder,
                self.plan.measure.timeout_s,
            )


def _mentions_iteration(condition: Condition) -> bool:
    lines = (*condition.command, condition.hooks.prepare or "", condition.hooks.conclude or "")
    return any(ITERATION_VARIABLE in line for line in lines)


def in_layout(request: Request, layout: Layout) -> Request:
    """Return the request in a memory layout.

    If the condition itself sets whether addresses are random, the condition's setting holds.
    """
    process = request.process
    if process.random_addresses is None:
        process = replace(process, random_addresses=layout.random_addresses)
    program = longer_path(request.argv[0], layout.argument_bytes)
    return replace(request, program=program, process=process)


def accounting_of(report: Report) -> Accounting:
    """Return the launcher's measurements for the ledger, with times in seconds."""
    fields = set(Accounting.__struct_fields__)
    unknown = report.unknown.items()
    reasons = {"wall_s" if name == "wall_ns" else name: reason for name, reason in unknown}
    return Accounting(
        wall_s=None if report.wall_ns is None else report.wall_ns / 1e9,
        unknown={
            name: reason
            for name, reason in reasons.items()
            if name in fields or name in report.counters or name in _LAUNCHER_COVARIATES
        },
        **{name: getattr(report, name) for name in fields - {"wall_s", "unknown"}},
    )


def failure_of(report: Report, timeout_s: float) -> tuple[FailureKind | None, str | None]:
    """Return the kind and the description of a failure; both are ``None`` after a success."""
    if report.could_not_start is not None:
        return "failed", f"could not be started: {report.could_not_start}"
    if report.timed_out:
        stopped_by = report.stopped_by
        suffix = "" if stopped_by is None else f", stopped by {_signal_name(stopped_by)}"
        return "timed out", f"timed out after {timeout_s:g} s{suffix}"
    if report.stopped_by is not None:
        return "failed", (
            f"stopped by {_signal_name(report.stopped_by)}: it needs a terminal, and trials have "
            f"none; run it with {option('input', 'FILE')}, or so that it asks no questions"
        )
    if report.signal is not None:
        memory_suffix = ": out of memory" if report.out_of_memory else ""
        return "failed", describe_signal(report.signal) + memory_suffix
    reason = unavailable_reason(report.exit, report.error_tail)
    if reason is not None:
        return "unavailable", reason
    if not report.exit:
        return None, None
    room_reason = report.unknown.get(OUTPUT_ROOM)
    if room_reason is not None:
        return "no room", f"exit status {report.exit}: {room_reason}"
    return "failed", f"exit status {report.exit}"


def _signal_name(number: int) -> str:
    """Return, for example, ``SIGTTIN``."""
    return describe_signal(number).partition("(")[2].rstrip(")") or f"signal {number}"


def own_environment() -> dict[str, str]:
    """Return the environment of Equipoise itself."""
    return dict(os.environ)


def base_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that are set for each trial."""
    trial_variables = (PADDING_VARIABLE, METRICS_VARIABLE)
    return {name: value for name, value in environment.items() if name not in trial_variables}


def without_own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a program cannot see that Equipoise runs it."""
    return {name: value for name, value in environment.items() if not name.startswith(OWN_PREFIX)}
