"""The blocks of a verification: their inputs, the comparison of outputs, and when they end."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec import Struct, field

from equipoise.campaign.interim import CampaignKind, InterimAnalysis
from equipoise.campaign.segment import Runner
from equipoise.design.coin import seed_in_block
from equipoise.kinds.verify.outputs import Difference, OutputCheck, different_end
from equipoise.kinds.verify.terms import BASELINE, CANDIDATE, OUTPUT_SOURCE, OutputDifference
from equipoise.measure.trials import TrialReport
from equipoise.measure.untimed import SHELL, describe_status, run_untimed, stderr_suffix, tail
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import Draw, Observation, Trial
from equipoise.shared.spelling import option

SEED_VARIABLE = "EQUIPOISE_SEED"
"""Variable with the seed of a block, for ``--input-command``."""


def seed_of_input(plan_seed: int, phase: str, block: int) -> int:
    """Return the seed of the input of a block."""
    return seed_in_block(plan_seed, "input", phase, block)


class InputCommand(Struct, frozen=True):
    """The shell line that writes the input of both trials of a block."""

    line: str
    path: Path
    """File with the input, which both trials read as standard input."""
    environment: Mapping[str, str]
    """Complete environment of the shell line, without its seed."""
    folder: str
    """Folder in which the shell line runs."""
    timeout_s: float

    def write(self, seed: int) -> None:
        """Write the input of a block.

        Raise `ConditionFailed` if the shell line fails or takes too long.
        """
        environment = {**self.environment, SEED_VARIABLE: str(seed)}
        errors_path = self.path.with_suffix(".errors")
        with self.path.open("wb") as output, errors_path.open("w+b") as errors:
            command = (SHELL, "-c", self.line)
            try:
                status = run_untimed(
                    command, environment, self.folder, self.timeout_s, errors, output
                )
                problem = f"{describe_status(status)}{stderr_suffix(tail(errors.fileno()))}"
            except subprocess.TimeoutExpired:
                status, problem = 1, f"it did not end within {self.timeout_s:g} s"
        if status != 0:
            raise ConditionFailed(
                f"{option('input_command')} failed with {SEED_VARIABLE}={seed}: {problem}",
                hint=f"run it alone in the repository: {SEED_VARIABLE}={seed} {self.line}",
            )


class ObservationStore(Protocol):
    """The methods of the ledger with which a difference of outputs is recorded."""

    def id_of(self, identity: str) -> str | None:
        """Return the id of the run with an identity."""

    def record_observation(self, run_id: str, observation: Observation) -> None:
        """Commit an observation."""


class BlockChecks(Struct):
    """The first difference that the blocks of a campaign have shown."""

    difference: OutputDifference | None = None


class VerifyJudge(InterimAnalysis):
    """Judges the times, and ends the campaign once an output differs.

    A failing candidate has a wrong output, but a failing baseline ends the campaign as a failure.
    """

    def __init__(self, plan: Plan, stopping: Stopping, checks: BlockChecks | None = None) -> None:
        super().__init__(plan, stopping)
        self._checks = BlockChecks() if checks is None else checks

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return the reason to stop; ``None`` if another block is needed."""
        return "verdict" if self._checks.difference is not None else super().stop_reason()

    def tolerates(self, trial: Trial) -> bool:
        """Return whether a failed trial is one of the candidate."""
        return trial.condition == CANDIDATE


class VerifyCampaign(CampaignKind):
    """Makes the judge of a verification."""

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the interim analysis of a plan, without the outputs."""
        return VerifyJudge(plan, stopping)


class CheckingRunner(Struct):
    """Runs the trials of a campaign: writes inputs before a block, and compares outputs after it.

    The comparison comes before the last trial of the block is recorded, so every complete block of
    the ledger was compared.
    """

    runner: Runner
    plan: Plan
    check: OutputCheck
    input: InputCommand | None
    checks: BlockChecks
    store: ObservationStore
    identity: str
    """Identity of the campaign, 32 hexadecimal digits."""
    now: Callable[[], float] = time.time
    _trials: dict[int, Trial] = field(default_factory=dict)
    """Finished trials of the present block, by condition."""

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one position of a block; before the first, write the input."""
        if position == 0:
            self._trials.clear()
            if self.input is not None:
                self.input.write(seed_of_input(self.plan.seed, draw.phase, draw.block))
        return tuple(self._checked(draw, trial) for trial in self.runner.trials_at(draw, position))

    def _checked(self, draw: Draw, trial: Callable[[], TrialReport]) -> Callable[[], TrialReport]:
        def run() -> TrialReport:
            report = trial()
            self._trials[report.trial.condition] = report.trial
            if len(self._trials) == len(draw.order) and self.checks.difference is None:
                difference = self._difference()
                if difference is not None:
                    self._record(draw, difference)
            return report

        return run

    def _difference(self) -> Difference | None:
        baseline, candidate = self._trials[BASELINE], self._trials[CANDIDATE]
        if not is_comparable(baseline, candidate):
            return None
        return different_end(baseline, candidate) or self.check.difference()

    def _record(self, draw: Draw, difference: Difference) -> None:
        known = OutputDifference(
            draw.phase, draw.block, difference.line, difference.expected, difference.actual
        )
        self.checks.difference = known
        run_id = self.store.id_of(self.identity)
        assert run_id is not None, "the campaign has begun"
        self.store.record_observation(
            run_id,
            Observation(
                OUTPUT_SOURCE,
                CANDIDATE,
                repetition=1,
                position=0,
                observed_at=self.now(),
                document=msgspec.json.encode(known),
                failure=None,
            ),
        )


def is_comparable(baseline: Trial, candidate: Trial) -> bool:
    """Return whether the outputs of two trials can be compared: both ended by themselves."""
    return baseline.failure is None and not (candidate.timed_out or candidate.is_unavailable)


def new_identity() -> bytes:
    """Return the random identity of a campaign, 16 bytes."""
    return os.urandom(16)
