"""A clock and trials that follow a script instead of the machine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from equipoise.measure.launcher import OnWait, Report, Request
from equipoise.measure.trials import TrialReport
from equipoise.model.record import Draw
from packages.equipoise.tests.plans import trial_of


@dataclass
class ScriptedClock:
    """A clock that moves only when a test moves it."""

    seconds: float = 0.0

    def __call__(self) -> float:
        """The time now."""
        return self.seconds


@dataclass
class ScriptedRunner:
    """Trials whose times are drawn, on a scripted clock."""

    clock: ScriptedClock
    medians: tuple[float, ...] = (0.010, 0.010)
    noise: float = 0.02
    random: random.Random = field(default_factory=lambda: random.Random(7))
    before_trial: Callable[[Draw, int], None] = lambda draw, place: None
    fails_at: tuple[str, int, int] | None = None
    """Phase, block and condition of the trial that fails."""
    times_out: frozenset[int] = frozenset()
    """Conditions that always time out, after one second."""
    slows_next: tuple[float, ...] = ()
    """Log ratio by which each condition slows whatever runs next; nothing by default."""
    ran_before: int | None = None

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        """One trial at one place of a block, with the washout before it."""
        if draw.washout_condition is None:
            return (lambda: self._run(draw, place),)
        before = replace(draw, order=(draw.washout_condition,) * len(draw.order))
        return (
            lambda: self._washed(self._run(before, place), 2 * place, washout=True),
            lambda: self._washed(self._run(draw, place), 2 * place + 1, washout=False),
        )

    def _washed(self, report: TrialReport, position: int, *, washout: bool) -> TrialReport:
        trial = replace(report.trial, position=position, washout=washout)
        return replace(report, trial=trial)

    def _run(self, draw: Draw, place: int) -> TrialReport:
        self.before_trial(draw, place)
        condition = draw.order[place]
        wall_s = self.medians[condition] * math.exp(self.random.gauss(0.0, self.noise))
        if self.slows_next and self.ran_before is not None:
            wall_s *= math.exp(self.slows_next[self.ran_before])
        self.ran_before = condition
        timed_out = condition in self.times_out
        if timed_out:
            wall_s = 1.0
        started_at = 1.7e9 + self.clock.seconds
        self.clock.seconds += wall_s
        failing = self.fails_at == (draw.phase, draw.block, condition)
        failure = "exit status 1" if failing else "timed out after 1 s" if timed_out else None
        trial = trial_of(draw, place, wall_s, failure=failure, timed_out=timed_out)
        return TrialReport(replace(trial, started_at=started_at), 0, None)


FINISHED = Report(
    pid=42,
    wall_ns=12_345_678,
    user_s=0.01,
    sys_s=0.002,
    max_rss_bytes=2_000_000,
    floor_rss_bytes=1_000_000,
    minor_faults=100,
    major_faults=0,
    voluntary_switches=1,
    involuntary_switches=2,
    block_reads=0,
    block_writes=0,
    exit=0,
    signal=None,
    timed_out=False,
    stopped_by=None,
    could_not_start=None,
    start_errno=None,
    error_tail="chatter\n",
    error_bytes=8,
    output_bytes=None,
    left_behind=0,
    containment="process_group",
    cpu=0,
    run_delay_s=0.0003,
    out_of_memory=None,
    unknown={"output_bytes": "not counted"},
)


@dataclass
class ScriptedStarter:
    """Returns a fixed report, and keeps the requests."""

    report: Report = FINISHED
    does: Callable[[Request], None] = lambda request: None
    requests: list[Request] = field(default_factory=list)

    def run(self, request: Request, on_wait: OnWait | None = None) -> Report:
        self.requests.append(request)
        self.does(request)
        return self.report
