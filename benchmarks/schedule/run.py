"""How much time the schedule of a gate saves in a suite, and which slowdowns it misses.

Simulated gates with the real judge, the real schedule and a simulated clock::

    python -m benchmarks.schedule.run
    python -m benchmarks.schedule.run --noises normal,drift --gates 20 --known

Ten of 100 benchmarks are 5 % slower. Benchmarks differ in noise (0.2 to 5 %) and in duration
(0.05 to 1 s). A full run has every benchmark in each of its blocks, and is judged at its end. The
scheduled gate has a tenth of the full run's time as its budget. The exit status is 1 if recall is
below 95 % of the full run's, or if the false-discovery rate is above 5 %, each by more than two
standard errors.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import SegmentInProgress
from equipoise.kinds.gate.terms import GateOutcome, GatePlan, KnownNoise, TouchedOrder
from equipoise.kinds.gate.verdict import GateJudge, judge_gate
from equipoise.measure.trials import TrialReport
from equipoise.model.plan import Condition, Contrast, Judgement, Measure, Plan, Stopping
from equipoise.model.record import CampaignWarning, Draw, Trial
from equipoise.model.revisions import BENCHMARK, Revision
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.plans import trial_of

ALPHA, MIN_EFFECT = 0.05, 2.0
SLOWER = math.log(1.05)
SPREADS, SECONDS = (0.002, 0.05), (0.05, 1.0)
"""Bounds of the noise and of the seconds of a trial; the logarithms are uniform.

The noise is the standard deviation of the log time. For heavy tails it is the scale of Student's t
with 3 degrees of freedom, and for spikes the noise of the trials without a spike.
"""
FULL_BLOCKS = 250
"""Length of a full run, which finds nearly all slowdowns under each noise."""
NOISES = ("normal", "heavy tails", "two modes", "drift", "spikes", "autocorrelated")
TWO_MODES_SCALE = 1.0 / math.sqrt(9.0 * 0.3 * 0.7 + 0.25)
"""Scale that gives the noise with two modes a standard deviation of 1."""
SHARE = 0.1
"""Time of the scheduled gate over that of the full run."""


class SimulatedSuite:
    """A suite whose trials take simulated time; ``clock`` is in seconds."""

    def __init__(self, noise: str, seed: int, benchmarks: int, planted: int) -> None:
        self.random = np.random.default_rng(seed)
        self.noise, self.clock_s, self._previous = noise, 0.0, 0.0
        self.spreads = self._log_uniform(SPREADS, benchmarks)
        self.seconds = self._log_uniform(SECONDS, benchmarks)
        self.planted = frozenset(self.random.choice(benchmarks, planted, replace=False).tolist())
        self._is_slower = np.zeros(2 * benchmarks)
        self._is_slower[[2 * index + 1 for index in self.planted]] = 1.0

    def _log_uniform(self, bounds: tuple[float, float], count: int) -> NDArray[np.float64]:
        low, high = bounds
        values: NDArray[np.float64] = low * (high / low) ** self.random.random(count)
        return values

    def clock(self) -> float:
        """Return the simulated time."""
        return self.clock_s

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trial at one position of a block."""
        return (lambda: TrialReport(self.trial(draw, position), 0, None),)

    def trial(self, draw: Draw, position: int) -> Trial:
        """Run a trial: conditions 2i and 2i + 1 are the two revisions of benchmark i."""
        started_s = self.clock_s
        (wall_s,) = self.wall_seconds(np.array([draw.order[position]])).tolist()
        return replace(trial_of(draw, position, wall_s), started_at=started_s)

    def wall_seconds(self, conditions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Run trials of n conditions one after another; return their seconds, shape (n,)."""
        benchmarks, revisions = np.divmod(conditions, 2)
        log_s = np.log(self.seconds[benchmarks]) + SLOWER * self._is_slower[conditions]
        if self.noise == "drift":
            # The noise is small beside the period.
            starts = self.clock_s + np.cumsum(np.exp(log_s))
            log_s += 0.1 * np.sin(starts / 2000.0)
        log_s += self.spreads[benchmarks] * self._deviates(len(conditions))
        wall_s: NDArray[np.float64] = np.exp(log_s)
        self.clock_s += float(wall_s.sum())
        return wall_s

    def _deviates(self, count: int) -> NDArray[np.float64]:
        """Return the deviations of successive trials in units of the benchmark's spread."""
        random = self.random
        normal = random.standard_normal(count)
        match self.noise:
            case "heavy tails":
                return random.standard_t(3, count)
            case "two modes":
                return TWO_MODES_SCALE * (3.0 * (random.random(count) < 0.3) + 0.5 * normal)
            case "spikes":
                return normal + 10.0 * random.random(count) * (random.random(count) < 0.05)
            case "autocorrelated":
                # The host drifts from trial to trial, whichever benchmark runs.
                steps = itertools.accumulate(
                    (math.sqrt(0.19) * normal).tolist(),
                    lambda previous, step: 0.9 * previous + step,
                    initial=self._previous,
                )
                values = np.fromiter(steps, np.float64, count + 1)[1:]
                self._previous = float(values[-1])
                return values
            case _:
                return normal


class NoStore:
    """A store that keeps nothing."""

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Keep nothing."""

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Keep nothing."""

    def record_warning(self, run_id: str, warning: CampaignWarning) -> None:
        """Keep nothing."""


def suite_plan(benchmarks: int, seed: int, stopping: Stopping) -> Plan:
    """Return the plan of a gate over a simulated suite."""
    return Plan(
        study="gate",
        conditions=tuple(
            Condition(f"{index}: {side}", ("/bin/x",), {BENCHMARK: str(index)})
            for index in range(benchmarks)
            for side in ("old", "new")
        ),
        measure=Measure("/"),
        stopping=stopping,
        judgement=Judgement(alpha=ALPHA, min_effect=MIN_EFFECT),
        seed=seed,
        chosen_contrasts=tuple(Contrast(2 * i, 2 * i + 1) for i in range(benchmarks)),
        terms=GatePlan(Revision("main", "1" * 40), Revision("HEAD", "2" * 40), ("wall_s",)),
    )


class Gate(Struct, frozen=True):
    """The end of one simulated gate."""

    seconds: float
    found: int
    """Number of planted slowdowns that the gate found."""
    false: int
    """Number of other benchmarks that it called slower."""
    passes: int
    wrong_passes: int
    warned: frozenset[int] = frozenset()
    """Benchmarks of which the gate warned that the budget cannot decide them."""
    slower: frozenset[int] = frozenset()
    """Benchmarks that the gate called slower."""
    warned_decided: int = 0
    """Number of these benchmarks that it decided all the same."""


def gate_of(
    suite: SimulatedSuite, blocks: Sequence[PairedBlocks], warned: frozenset[int] = frozenset()
) -> Gate:
    """Return the end of a gate from the blocks of its benchmarks."""
    decisions = judge_gate(blocks, min_effect=MIN_EFFECT, alpha=ALPHA)
    outcomes: list[GateOutcome] = [decision.outcome for decision in decisions]
    slower = {index for index, outcome in enumerate(outcomes) if outcome == "slower"}
    passing = {index for index, outcome in enumerate(outcomes) if outcome == "passes"}
    return Gate(
        seconds=suite.clock_s,
        found=len(slower & suite.planted),
        false=len(slower - suite.planted),
        passes=len(passing),
        wrong_passes=len(passing & suite.planted),
        warned=warned,
        slower=frozenset(slower),
        warned_decided=len(warned & (slower | passing)),
    )


def full_gate(suite: SimulatedSuite, block_count: int = FULL_BLOCKS) -> Gate:
    """Run every benchmark in every block, and judge the gate at its end."""
    count = len(suite.spreads)
    positions = np.argsort(suite.random.random((block_count, 2 * count)), axis=1)
    wall_s = suite.wall_seconds(positions.ravel()).reshape(positions.shape)
    by_condition = np.empty_like(wall_s)
    np.put_along_axis(by_condition, positions, wall_s, axis=1)
    places = np.argsort(positions, axis=1)
    orders = np.where(places[:, ::2] < places[:, 1::2], 1, -1).astype(np.int8)
    blocks = [
        PairedBlocks(by_condition[:, 2 * i], by_condition[:, 2 * i + 1], orders[:, i])
        for i in range(count)
    ]
    return gate_of(suite, blocks)


class _Listener(ProgressListener):
    def __init__(self) -> None:
        self.warned: set[int] = set()

    def block_ended(self, progress: object) -> None:
        for index, status in enumerate(progress.statuses):  # type: ignore[attr-defined]
            if status.warning is not None:
                self.warned.add(index)


def scheduled_gate(
    suite: SimulatedSuite,
    seed: int,
    budget_s: float,
    *,
    known: bool = False,
    schedule: bool = True,
    untouched: frozenset[int] = frozenset(),
) -> Gate:
    """Run a gate with a budget; without a schedule it only leaves out decided benchmarks.

    The ``untouched`` benchmarks are measured last.
    """
    count = len(suite.spreads)
    # With a limit of blocks, a gate has no schedule.
    stopping = Stopping(
        budget_s=budget_s, leave_out_decided=True, blocks=None if schedule else 1_000_000
    )
    plan = suite_plan(count, seed, stopping)
    if known:
        noises = tuple(
            KnownNoise("earlier", math.sqrt(2.0) * spread, 2.0 * seconds, 10)
            for spread, seconds in zip(suite.spreads.tolist(), suite.seconds.tolist(), strict=True)
        )
        assert isinstance(plan.terms, GatePlan)
        plan = replace(plan, terms=replace(plan.terms, known_noises=noises))
    if untouched:
        assert isinstance(plan.terms, GatePlan)
        order = TouchedOrder(tuple(sorted(untouched)), (), ())
        plan = replace(plan, terms=replace(plan.terms, touched=order))
    judge, listener = GateJudge(plan, stopping), _Listener()
    SegmentInProgress("1", plan, stopping, NoStore(), judge, listener, suite.clock).run(suite)
    return gate_of(suite, judge.paired_blocks, frozenset(listener.warned))


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean and its standard error."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), error


def percent(values: Sequence[float]) -> str:
    """Return a mean with its standard error, in percent."""
    mean, error = mean_and_error(values)
    return f"{100 * mean:.1f} ± {100 * error:.1f}"


def main(words: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=20, help="of each kind of noise")
    parser.add_argument("--benchmarks", type=int, default=100)
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--full-blocks", type=int, default=FULL_BLOCKS)
    parser.add_argument("--noises", default=",".join(NOISES))
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--known", action="store_true", help="spreads of an earlier gate")
    parser.add_argument("--no-schedule", action="store_true", help="only leave out the decided")
    options = parser.parse_args(words)
    print(
        f"{'noise':<15} {'full: recall %':>14} {'FDR %':>10} | "
        f"{'time %':>10} {'recall of full %':>17} {'FDR %':>10} {'passes':>13} "
        f"{'warned: decided':>15}"
    )
    is_good = True
    for noise in options.noises.split(","):
        full: list[Gate] = []
        scheduled: list[Gate] = []
        for seed in range(options.first_seed, options.first_seed + options.gates):
            size = (options.benchmarks, options.planted)
            full.append(full_gate(SimulatedSuite(noise, seed, *size), options.full_blocks))
            scheduled.append(
                scheduled_gate(
                    SimulatedSuite(noise, seed, *size),
                    seed,
                    SHARE * full[-1].seconds,
                    known=options.known,
                    schedule=not options.no_schedule,
                )
            )
        recall = [
            gate.found / max(1, whole.found) for gate, whole in zip(scheduled, full, strict=True)
        ]
        false = [gate.false / max(1, gate.false + gate.found) for gate in scheduled]
        print(
            f"{noise:<15} {percent([gate.found / options.planted for gate in full]):>14} "
            f"{percent([gate.false / max(1, gate.false + gate.found) for gate in full]):>10} | "
            f"{percent([a.seconds / b.seconds for a, b in zip(scheduled, full, strict=True)]):>10} "
            f"{percent(recall):>17} {percent(false):>10} "
            f"{np.mean([gate.passes for gate in scheduled]):>4.0f} of "
            f"{np.mean([gate.passes for gate in full]):>4.0f} "
            f"{sum(gate.warned_decided for gate in scheduled):>6} of "
            f"{sum(len(gate.warned) for gate in scheduled):<4}",
            flush=True,
        )
        mean_recall, recall_error = mean_and_error(recall)
        mean_false, false_error = mean_and_error(false)
        is_good &= not mean_recall + 2 * recall_error < 0.95
        is_good &= not mean_false - 2 * false_error > ALPHA
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
