"""Running the trials of one sitting: each in a fresh process, started by the launcher."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.design.layouts import longer_path
from equipoise.measure import hooks, own_metrics
from equipoise.measure.accounting import accounting
from equipoise.measure.launcher import Report, Request, Starter
from equipoise.measure.servers import Servers, Service
from equipoise.measure.surroundings import CovariateReader
from equipoise.measure.unavailable import unavailable_reason
from equipoise.model.plan import PADDING_VARIABLE, Condition, Layout, Plan
from equipoise.model.record import UNAVAILABLE, Draw, Trial

OUTPUT_ROOM = "output_room"
"""Key of the report's unknowns: why the output of a trial had no room (crates/launcher)."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished trial, and what the user should hear about it beside its numbers."""

    trial: Trial
    left_behind: int
    """Processes that it left and that were ended."""
    metrics_problem: str | None


class TrialRunner:
    """Runs the trials that a plan's draws ask for.

    Parameters
    ----------
    scratch
        A private folder for the workload's own metrics.
    environment
        What each trial's environment starts from: the caller's own.
    beside
        Reads the covariates of each trial.
    servers
        Starts the servers that conditions have.
    on_wait
        Called about once a second while a trial takes longer than that.
    now
        Seconds since the epoch.
    """

    def __init__(
        self,
        plan: Plan,
        starter: Starter,
        scratch: Path,
        environment: Mapping[str, str],
        beside: CovariateReader,
        *,
        servers: Servers | None = None,
        on_wait: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._plan = plan
        self._starter = starter
        self._metrics_file = own_metrics.MetricsFile(scratch)
        self._environment = {
            key: value
            for key, value in environment.items()
            if key not in (PADDING_VARIABLE, own_metrics.VARIABLE)
        }
        self._beside = beside
        self._servers = servers
        self._on_wait = on_wait
        self._now = now
        self._was_set_up: set[int] = set()

    def run_place(self, draw: Draw, place: int) -> tuple[Callable[[], Ran], ...]:
        """The trials at one place of a block, each run when it is called.

        One trial; with ``--washout`` two of the same condition, of which the second counts.
        They are handed out one by one so that each is in the ledger before the next starts.
        """
        if not self._plan.measure.washout or draw.phase == "warmup":
            return (lambda: self._run(draw, place, place, washout=False),)
        return (
            lambda: self._run(draw, place, 2 * place, washout=True),
            lambda: self._run(draw, place, 2 * place + 1, washout=False),
        )

    def clean_up(self) -> None:
        """Run the ``--cleanup`` of every condition whose ``--setup`` may have run."""
        for index in sorted(self._was_set_up):
            condition = self._plan.conditions[index]
            self._run_hook("cleanup", condition, condition.hooks.cleanup)
        self._was_set_up.clear()

    def _run(self, draw: Draw, place: int, position: int, *, washout: bool) -> Ran:
        index = draw.order[place]
        condition = self._plan.conditions[index]
        if index not in self._was_set_up:
            self._was_set_up.add(index)
            self._run_hook("setup", condition, condition.hooks.setup)
        self._run_hook("prepare", condition, condition.hooks.prepare)
        self._metrics_file.clear()
        with self._serving(condition, draw.padding_bytes) as service:
            request = self._request(condition, draw, service)
            started_at = self._now()
            self._beside.before()
            report = self._starter.run(request, self._on_wait)
            covariates = self._beside.after(cpu=report.cpu, run_delay_s=report.run_delay_s)
        own = self._metrics_file.read()
        accounted = accounting(report)
        if own.unreadable is not None:
            accounted = own_metrics.without_metrics(
                accounted, own.unreadable, self._plan, condition
            )
        self._run_hook("conclude", condition, condition.hooks.conclude)
        failure, said = failure_of(report, self._plan.measure.timeout_s), report.error_tail
        if service is not None and service.failure is not None:
            # The client's own failure only follows from it.
            client = "" if failure is None else f", and its client: {failure}"
            failure, said = f"its server ended: {service.failure}{client}", service.last_words
        trial = Trial(
            phase=draw.phase,
            block=draw.block,
            position=position,
            condition=index,
            started_at=started_at,
            accounting=accounted,
            exit=report.exit,
            failure=failure,
            timed_out=report.timed_out,
            washout=washout,
            error_tail=said if failure is not None else "",
            covariates=covariates,
            samples=own.samples + (service.samples if service is not None else ()),
        )
        return Ran(trial, report.left_behind, own.unreadable or own.problem)

    def _serving(
        self, condition: Condition, padding_bytes: int
    ) -> AbstractContextManager[Service | None]:
        if condition.server is None:
            return nullcontext()
        assert self._servers is not None, "whoever plans servers hires somebody to start them"
        return self._servers.serving(
            condition.name,
            condition.server,
            self._around({}, padding_bytes),
            self._plan.measure.timeout_s,
        )

    def _request(self, condition: Condition, draw: Draw, service: Service | None) -> Request:
        measure = self._plan.measure
        command, own = condition.command_in(draw.layout), condition.environment
        if service is not None:
            command, own = service.place.words(command), service.place.variables(own)
        request = Request(
            argv=command,
            environment=self._around(own, draw.padding_bytes),
            working_folder=condition.process.working_folder or measure.working_folder,
            input=measure.input,
            output=condition.output or measure.output,
            timeout_s=measure.timeout_s,
            process=condition.process,
        )
        if draw.layout is None:
            return request
        return in_layout(request, self._plan.layouts[draw.layout - 1])

    def _around(self, own: Mapping[str, str], padding_bytes: int) -> dict[str, str]:
        """The environment of a process of a trial."""
        return {
            **self._environment,
            own_metrics.VARIABLE: str(self._metrics_file.path),
            PADDING_VARIABLE: "x" * padding_bytes,
            **own,
        }

    def _run_hook(self, option: str, condition: Condition, line: str | None) -> None:
        if line is not None:
            hooks.run(
                hooks.Hook(option, condition.name, line),
                {**self._environment, **condition.environment},
                self._plan.measure.working_folder,
                self._plan.measure.timeout_s,
            )


def in_layout(request: Request, layout: Layout) -> Request:
    """The same trial in one layout; what its condition says itself of addresses stays."""
    process = request.process
    if process.random_addresses is None:
        process = replace(process, random_addresses=layout.random_addresses)
    program = longer_path(request.argv[0], layout.argument_bytes)
    return replace(request, program=program, process=process)


def failure_of(report: Report, timeout_s: float) -> str | None:
    """Why a trial failed, in words; ``None`` if it did not."""
    if report.could_not_start is not None:
        return f"could not be started: {report.could_not_start}"
    if report.timed_out:
        stopped = "" if report.stopped_by is None else f", stopped by {_name(report.stopped_by)}"
        return f"timed out after {timeout_s:g} s{stopped}"
    if report.stopped_by is not None:
        return (
            f"stopped by {_name(report.stopped_by)}: it wants a terminal, and trials have none; "
            "run it with --input FILE, or with an option that asks nothing"
        )
    if report.signal is not None:
        memory = ": out of memory" if report.out_of_memory else ""
        return hooks.signal_words(report.signal) + memory
    unavailable = unavailable_reason(report.exit, report.error_tail)
    if unavailable is not None:
        return f"{UNAVAILABLE}{unavailable}"
    if report.exit:
        room = report.unknown.get(OUTPUT_ROOM)
        return f"exit status {report.exit}" + ("" if room is None else f": {room}")
    return None


def _name(number: int) -> str:
    return hooks.signal_words(number).partition("(")[2].rstrip(")") or f"signal {number}"


def own_environment() -> dict[str, str]:
    """The environment that Equipoise itself was started in."""
    return dict(os.environ)
