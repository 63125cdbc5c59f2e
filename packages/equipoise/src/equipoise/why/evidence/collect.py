"""Collect evidence: run both conditions of a gap again under each source, in random order.

A source is a tool that observes a program, such as a profiler. An observed run is like a trial,
except for its command and its time limit. The time of an observed run never counts for a verdict.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing
from itertools import product
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.verification import check_effects, mapped_by_condition
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
from equipoise.model.plan import Condition, Plan
from equipoise.model.record import Observation, RunRecord
from equipoise.why.evidence.observer import End, Process
from equipoise.why.evidence.sources import DEFAULT_SOURCES, SOURCES, Source, observations_of_pair
from equipoise.why.gap import Gap

REPETITIONS = 3
MIN_REPETITIONS = 2
LONG_RUN_S = 10.0
"""Run time in seconds above which `MIN_REPETITIONS` is the default."""

MAX_SLOWDOWN = 200
"""Time limit of an observed run, as a multiple of the longest trial. A program whose
instructions are counted takes about 100 times as long."""
MIN_TIMEOUT_S = 60.0

_OBSERVER_PREFIX = "equipoise-evidence: "

StarterFactory = Callable[[Path], AbstractContextManager[Starter]]
"""Function that takes a private folder and returns the starter of trials."""


class ObservationStore(Protocol):
    """Interface of the ledger for storing observations."""

    def record_observation(self, run_id: str, observation: Observation) -> None:
        """Commit an observation of a campaign to the ledger."""


class EvidenceRequest(Struct, frozen=True):
    """The user's options for the observed runs."""

    sources: tuple[str, ...] = DEFAULT_SOURCES
    repetitions: int | None = None
    """Number of runs of each condition under each source; ``None`` for the default number."""
    repeat_known: bool = False
    """Whether to repeat runs that are already observed."""


class EvidenceRun(Struct, frozen=True):
    """One run of a condition under a source."""

    source: str
    condition: int
    """Index of the condition in the plan."""
    repetition: int
    """Number of the repetition, from 1."""


def missing_runs(record: RunRecord, gap: Gap, request: EvidenceRequest) -> tuple[EvidenceRun, ...]:
    """Return the requested runs without an observation, in random order."""
    pair, observations = gap.contrast.pair, record.observations
    known = () if request.repeat_known else observations_of_pair(observations, *pair)
    repetitions = request.repetitions or default_repetitions(gap.longest_trial_s)
    seed = record.plan.seed + len(observations)
    return draw_runs(*pair, request.sources, repetitions, seed, known)


def default_repetitions(longest_trial_s: float) -> int:
    """Return the default number of runs of each condition under each source."""
    return REPETITIONS if longest_trial_s <= LONG_RUN_S else MIN_REPETITIONS


def draw_runs(
    baseline: int,
    candidate: int,
    sources: Sequence[str],
    repetitions: int,
    seed: int,
    observations: Sequence[Observation] = (),
) -> tuple[EvidenceRun, ...]:
    """Draw the order of the runs in each repetition, and leave out observed runs."""
    known_runs = {EvidenceRun(run.source, run.condition, run.repetition) for run in observations}
    combinations = list(product(sources, (baseline, candidate)))
    runs = (
        EvidenceRun(*combinations[index], repetition)
        for repetition in range(1, repetitions + 1)
        for index in draw_order(seed, "evidence", repetition, len(combinations))
    )
    return tuple(run for run in runs if run not in known_runs)


def native_starter(scratch: Path) -> Launcher:
    """Return the launcher of real trials."""
    return Launcher(launcher_program(), scratch=scratch)


def observe(
    record: RunRecord,
    gap: Gap,
    runs: Sequence[EvidenceRun],
    store: ObservationStore,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    starter_factory: StarterFactory = native_starter,
) -> None:
    """Observe these runs, and commit each observation before the next run starts.

    After each run, ``on_progress`` is called with the number of runs so far. Raise `UnusableInput`
    if a condition no longer takes effect, for instance because its library was removed. Raise
    `ConditionFailed` if a hook failed, and `EquipoiseError` if the launcher failed.
    """
    conditions = tuple(record.plan.conditions[index] for index in gap.contrast.pair)
    plan_of_gap = replace(record.plan, conditions=conditions)
    environment = own_environment()
    check_effects(plan_of_gap, mapped_by_condition(plan_of_gap, environment), environment)
    longest_trial_s, factory = gap.longest_trial_s, starter_factory
    with closing(
        collect(record.plan, runs, longest_trial_s=longest_trial_s, starter_factory=factory)
    ) as observations:
        for runs_so_far, observation in enumerate(observations, start=1):
            store.record_observation(record.id, observation)
            on_progress(runs_so_far)


def collect(
    plan: Plan,
    runs: Sequence[EvidenceRun],
    *,
    longest_trial_s: float,
    starter_factory: StarterFactory = native_starter,
    now: Callable[[], float] = time.time,
) -> Generator[Observation, None, None]:
    """Observe these runs, and yield one observation for each.

    If a source cannot be used on this host, its observation has the reason instead of evidence.
    Raise `ConditionFailed` if a hook of a condition without a server failed, and `EquipoiseError`
    if the launcher failed.
    """
    plan = _with_longer_limits(plan, longest_trial_s)
    # Processes that a killed campaign left behind would disturb these runs.
    clear_leftovers()
    with (
        scratch_folder() as scratch,
        starter_factory(scratch) as starter,
        CovariateReader() as covariates,
    ):
        observer = _ObservingStarter(starter)
        servers = Servers(
            lambda: Launcher(launcher_program(), shared_scratch=scratch),
            scratch,
            wrap=observer.wrap,
        )
        runner = TrialRunner(
            plan, observer, scratch, own_environment(), covariates, servers=servers
        )
        with servers:
            try:
                for position, run in enumerate(runs):
                    run_fields = (run.source, run.condition, run.repetition, position, now())
                    with tempfile.TemporaryDirectory(prefix="evidence-", dir=scratch) as folder:
                        evidence, failure = _observe_run(plan, run, Path(folder), runner, observer)
                    yield Observation(*run_fields, evidence, failure)
            finally:
                runner.clean_up()


class _ObservingStarter:
    """Starter that runs trials under a source. It observes a server, not its client."""

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._source: Source | None = None
        self._folder = Path()
        self._is_client = False

    def use(self, source: Source, folder: Path, condition: Condition) -> None:
        """Set the source, its folder and the condition of the next runs."""
        self._source, self._folder = source, folder
        self._is_client = condition.server is not None

    def run(self, request: Request, on_wait: OnWait | None = None) -> Report:
        """Run one trial to its end, observed unless it is the client of a server."""
        return self._starter.run(request if self._is_client else self.wrap(request), on_wait)

    def wrap(self, request: Request) -> Request:
        """Return the request with a command that runs under the current source."""
        assert self._source is not None, "use() comes first"
        # A memory layout may set `program`, a longer path of the same file.
        command = (request.program or request.argv[0], *request.argv[1:])
        process = self._source.wrap(Process(command, request.environment), self._folder)
        if request.user is not None:
            os.chown(self._folder, request.user.uid, request.user.gid)
        return replace(request, program=None, argv=process.command, environment=process.environment)


def _with_longer_limits(plan: Plan, longest_trial_s: float) -> Plan:
    """Return the plan with longer time limits, and a new start of the server for each run."""
    timeout_s = max(MIN_TIMEOUT_S, MAX_SLOWDOWN * longest_trial_s)
    conditions = list(plan.conditions)
    for index, condition in enumerate(conditions):
        if condition.server is not None:
            ready_s = timeout_s + condition.server.ready_s
            server = replace(condition.server, trial="life", ready_s=ready_s)
            conditions[index] = replace(condition, server=server)
    measure = replace(plan.measure, timeout_s=timeout_s, cpu_sets=())
    return replace(plan, measure=measure, conditions=tuple(conditions))


def _observe_run(
    plan: Plan, run: EvidenceRun, folder: Path, runner: TrialRunner, observer: _ObservingStarter
) -> tuple[bytes | None, str | None]:
    """Return the evidence as JSON, or the reason why there is none."""
    source, condition = SOURCES[run.source], plan.conditions[run.condition]
    try:
        # Report a missing tool before the run is prepared.
        source.wrap(Process(condition.command), folder)
    except UnusableInput as error:
        return None, error.what
    observer.use(source, folder, condition)
    # Repetition N has the layout and the environment size of block N.
    block_draw = replace(
        draw_block(plan, "measured", run.repetition), phase="warmup", order=(run.condition,)
    )
    (run_trial,) = runner.trials_at(block_draw, 0)
    try:
        trial = run_trial().trial
    except ConditionFailed as error:
        if condition.server is None:
            raise
        # The server may fail only under this source, so try the next source.
        return None, _last_observer_message(error.what) or error.what
    if trial.timed_out:
        return None, trial.failure
    failure = None if trial.failure is None else f"{trial.failure}{stderr_suffix(trial.error_tail)}"
    try:
        evidence = source.read(folder)
    except UnusableInput as error:
        message = failure and _last_observer_message(trial.error_tail)
        return None, message or failure or error.what
    end: End | None = getattr(evidence, "end", None)
    # Equipoise itself stops a server, so the end of a server is not a failure.
    if end is not None and condition.server is None:
        failure = f"exit status {end.exit}" if end.exit else None
        if end.signal is not None:
            failure = describe_signal(end.signal)
    if failure is not None and not plan.measure.ignore_failure:
        return None, f"{condition.name} fails under this source: {failure}"
    return msgspec.json.encode(evidence), None


def _last_observer_message(text: str) -> str | None:
    lines = text.splitlines()
    messages = [line.partition(_OBSERVER_PREFIX)[2] for line in lines if _OBSERVER_PREFIX in line]
    return messages[-1] if messages else None
