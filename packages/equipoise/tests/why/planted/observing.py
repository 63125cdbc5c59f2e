"""Observing a planted pair: a few trials, and runs under the sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.design.coin import draw_block
from equipoise.measure.environment import CovariateReader
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import TrialRunner, own_environment
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise.model.record import Draw, Observation, Trial
from equipoise.model.why import Explanation
from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.differences.changes import Difference
from equipoise.why.differences.compare import difference_between, trials_difference
from equipoise.why.evidence.collect import REPETITIONS, collect, draw_runs, native_starter
from equipoise.why.evidence.sources import DEFAULT_SOURCES, Runs, decode_evidence
from packages.equipoise.tests.why.planted.pairs import Planted

MIN_BLOCKS = 4
MAX_BLOCKS = 100
"""Beside other work it takes long until a gap is certain; alone a few blocks do."""


def observe(
    planted: Planted,
    folder: Path,
    *,
    max_blocks: int = MAX_BLOCKS,
    max_rounds: int = 1,
    seed: int = 1,
) -> Difference:
    """Return the difference between both commands, which were built in that folder.

    As a campaign does, it runs blocks until the gap is certain, or so many at most. Then it makes
    rounds of observed runs until one cause certainly has the most seconds, whichever it is, or so
    many rounds at most: beside other work the runs of one round differ too much to tell.
    """
    conditions = planted.conditions(folder)
    plan = Plan(
        study="compare",
        conditions=conditions,
        measure=Measure(working_folder=str(folder)),
        stopping=Stopping(),
        judgement=Judgement(),
        seed=seed,
    )
    trials = _trials(plan, max_blocks)
    longest_trial_s = max(trial.accounting.wall_s or 0.0 for trial in trials.candidate)
    observations: list[Observation] = []
    for made in range(max_rounds):
        runs = draw_runs(0, 1, DEFAULT_SOURCES, REPETITIONS, seed + made)
        observations += collect(plan, runs, longest_trial_s=longest_trial_s)
        evidence = decode_evidence(observations, 0, 1)
        difference = difference_between(trials, evidence, conditions)
        if has_first_cause(suggested_causes(difference)):
            break
    return difference


def has_first_cause(causes: Sequence[Explanation]) -> bool:
    """Whether one cause certainly has more seconds than every other."""
    if not causes:
        return False
    (low, _), others = causes[0].seconds_ci, [other.seconds_ci[1] for other in causes[1:]]
    return low is not None and all(high is not None and high < low for high in others)


def _trials(plan: Plan, max_blocks: int) -> Runs[Trial]:
    """One trial of each in each block, after one of each that warms up."""
    trials: list[Trial] = []
    with (
        scratch_folder() as scratch,
        native_starter(scratch) as starter,
        CovariateReader() as covariates,
    ):
        runner = TrialRunner(plan, starter, scratch, own_environment(), covariates)
        _block(plan, runner, draw_block(plan, "warmup", 1))
        for block in range(1, max_blocks + 1):
            trials += _block(plan, runner, draw_block(plan, "measured", block))
            by_condition = Runs(
                tuple(trial for trial in trials if trial.condition == 0),
                tuple(trial for trial in trials if trial.condition == 1),
            )
            if block >= MIN_BLOCKS and trials_difference(by_condition).wall_time.is_certain:
                break
    return by_condition


def _block(plan: Plan, runner: TrialRunner, draw: Draw) -> list[Trial]:
    trials = [
        run().trial for place in range(len(draw.order)) for run in runner.trials_at(draw, place)
    ]
    for trial in trials:
        assert trial.failure is None, f"{plan.conditions[trial.condition]}: {trial.failure}"
    return trials
