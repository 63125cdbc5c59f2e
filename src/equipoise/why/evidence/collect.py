"""Gathering evidence: both conditions of a comparison are run under each source, in random order.

Such a run is a trial in everything but its command: hooks, working folder, environment, CPUs,
layout, input and output are the plan's. It is never timed for a verdict (rule 4).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from equipoise.design.coin import draw_block, draw_order
from equipoise.measure.environment import CovariateReader
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, OnWait, Report, Request, Starter
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.servers import Servers
from equipoise.measure.trials import TrialRunner, own_environment
from equipoise.measure.untimed import describe_signal, stderr_suffix
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.observation import Observation
from equipoise.model.plan import Condition, Plan
from equipoise.model.record import Trial
from equipoise.why.evidence.observed import End, Process
from equipoise.why.evidence.sources import SOURCES, Source

REPETITIONS = 3
FEWEST_REPETITIONS = 2
LONG_RUN_S = 10.0
"""Where a run takes longer, the fewest repetitions are usual."""

SLOWED_DOWN = 200
"""An observed run may take so many times the longest trial: what counts instructions takes 100."""
LEAST_PATIENCE_S = 60.0

OBSERVER = "equipoise-evidence: "
"""So begins what the native observer says of itself."""

Hire = Callable[[Path], AbstractContextManager[Starter]]
"""Gives what runs trials; the folder is private, and is removed at the end."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One run that is to be observed."""

    source: str
    condition: int
    repetition: int
    """From 1."""


def usual_repetitions(longest_s: float) -> int:
    """How often each condition is run under each source, if nobody says."""
    return REPETITIONS if longest_s <= LONG_RUN_S else FEWEST_REPETITIONS


def draw_runs(
    baseline: int,
    candidate: int,
    sources: Sequence[str],
    repetitions: int,
    seed: int,
    known: Sequence[Observation] = (),
) -> tuple[Wanted, ...]:
    """Draw the order of all runs: that of sources and conditions anew in each repetition.

    Parameters
    ----------
    known
        Observations that need not be made again.
    """
    there = {(one.source, one.condition, one.repetition) for one in known}
    kinds = [(source, one) for source in sources for one in (baseline, candidate)]
    runs = [
        Wanted(*kinds[place], repetition)
        for repetition in range(1, repetitions + 1)
        for place in draw_order(seed, "evidence", repetition, len(kinds))
    ]
    return tuple(run for run in runs if (run.source, run.condition, run.repetition) not in there)


def native_starter(scratch: Path) -> Launcher:
    """The launcher of real trials."""
    return Launcher(launcher_program(), scratch=scratch)


def gather(
    plan: Plan,
    runs: Sequence[Wanted],
    *,
    longest_s: float,
    on_wait: OnWait = lambda: None,
    hire: Hire = native_starter,
    now: Callable[[], float] = time.time,
) -> Generator[Observation, None, None]:
    """Make these runs, one for each observation that is asked for.

    Whoever iterates keeps each observation before asking for the next. What cannot be seen here
    is an observation with its failure in words.

    Parameters
    ----------
    longest_s
        What the longest trial of these conditions took, in seconds.

    Raises
    ------
    ConditionFailed
        A hook of a condition without a server failed.
    EquipoiseError
        The launcher cannot be started or has died.
    """
    patient = _patient(plan, longest_s)
    # What still runs of a killed campaign would run beside this.
    clear_leftovers()
    with (
        scratch_folder() as scratch,
        hire(scratch) as starter,
        CovariateReader() as beside,
    ):
        observer = _Observer(starter)
        servers = Servers(
            lambda: Launcher(launcher_program(), campaign=scratch), scratch, wrap=observer.dressed
        )
        runner = TrialRunner(
            patient,
            observer,
            scratch,
            own_environment(),
            beside,
            servers=servers,
            on_wait=on_wait,
        )
        with servers:
            try:
                for position, run in enumerate(runs):
                    yield _observation(patient, run, position, now(), scratch, runner, observer)
            finally:
                runner.clean_up()


class _Observer:
    """What starts trials: under the source at hand, or, beside a server, as they are."""

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._source: Source | None = None
        self._folder = Path()
        self._of_client = False

    def watch(self, source: Source, folder: Path, condition: Condition) -> None:
        """Put what is started from now on under this source."""
        self._source, self._folder = source, folder
        self._of_client = condition.server is not None

    def run(self, request: Request, on_wait: OnWait | None = None) -> Report:
        """Run one trial to its end; the client of an observed server is let alone."""
        return self._starter.run(request if self._of_client else self.dressed(request), on_wait)

    def dressed(self, request: Request) -> Request:
        """The same start under the source."""
        assert self._source is not None, "who runs something says first how it is observed"
        # In a layout the program has a longer path.
        command = (request.program or request.argv[0], *request.argv[1:])
        process = self._source.wrap(Process(command, request.environment), self._folder)
        if request.user is not None:
            os.chown(self._folder, request.user.uid, request.user.gid)
        return replace(request, program=None, argv=process.command, environment=process.environment)


def _patient(plan: Plan, longest_s: float) -> Plan:
    """The plan with the time that observed runs need; each life of a server is one trial."""
    timeout_s = max(LEAST_PATIENCE_S, SLOWED_DOWN * longest_s)
    return replace(
        plan,
        measure=replace(plan.measure, timeout_s=timeout_s),
        conditions=tuple(
            one
            if one.server is None
            else replace(
                one,
                server=replace(one.server, trial="life", ready_s=timeout_s + one.server.ready_s),
            )
            for one in plan.conditions
        ),
    )


def _observation(
    plan: Plan,
    run: Wanted,
    position: int,
    observed_at: float,
    scratch: Path,
    runner: TrialRunner,
    observer: _Observer,
) -> Observation:
    with tempfile.TemporaryDirectory(prefix="evidence-", dir=scratch) as folder:
        document, failure = _observed(plan, run, Path(folder), runner, observer)
    return Observation(
        source=run.source,
        condition=run.condition,
        repetition=run.repetition,
        position=position,
        observed_at=observed_at,
        document=document,
        failure=failure,
    )


def _observed(
    plan: Plan, run: Wanted, folder: Path, runner: TrialRunner, observer: _Observer
) -> tuple[bytes | None, str | None]:
    """What the source saw, as JSON, or why it saw nothing."""
    source, condition = SOURCES[run.source], plan.conditions[run.condition]
    try:
        # Found out before anything is prepared for the run.
        source.wrap(Process(condition.command), folder)
    except UnusableInput as missing:
        return None, missing.what
    observer.watch(source, folder, condition)
    # The size of the environment and the layout are those that a block of this number has.
    draw = replace(
        draw_block(plan, "measured", run.repetition), phase="warmup", order=(run.condition,)
    )
    (start,) = runner.run_place(draw, 0)
    try:
        trial = start().trial
    except ConditionFailed as failed:
        if condition.server is None:
            raise
        # Its observer may be what is refused here; the next source may do.
        return None, _quoted(failed.what) or failed.what
    if trial.timed_out:
        return None, trial.failure
    try:
        seen = source.read(folder)
    except UnusableInput as unread:
        return None, _complaint(trial) or unread.what
    failure = _how_it_failed(trial, getattr(seen, "end", None), condition)
    if failure is not None and not plan.measure.ignore_failure:
        return None, f"{condition.name} fails under it: {failure}"
    return msgspec.json.encode(seen), None


def _complaint(trial: Trial) -> str | None:
    """Why there is nothing to read: what the observer said last, or how the run failed."""
    if trial.failure is None:
        return None
    return _quoted(trial.error_tail) or f"{trial.failure}{stderr_suffix(trial.error_tail)}"


def _quoted(text: str) -> str | None:
    """What the observer says of itself in the last line that has something of it."""
    said = [line.partition(OBSERVER)[2] for line in text.splitlines() if OBSERVER in line]
    return said[-1] if said else None


def _how_it_failed(trial: Trial, end: End | None, condition: Condition) -> str | None:
    """Why the program itself failed; that a server was stopped is no failure."""
    if end is None or condition.server is not None:
        return trial.failure and f"{trial.failure}{stderr_suffix(trial.error_tail)}"
    if end.signal is not None:
        return describe_signal(end.signal)
    return f"exit status {end.exit}" if end.exit else None
