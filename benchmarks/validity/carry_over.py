"""``python -m benchmarks.validity.carry_over``: carry-over that differs, and the washouts after it.

The candidate slows whatever runs next, and takes as long as the baseline; or it takes longer, and
nothing carries over. Each campaign is judged by the shipped `InterimAnalysis` after every block,
with blocks by the shipped coin, once as it is and once with washouts ruled out; the warnings are
those of the shipped result. A campaign has at most 200 blocks, and 200 more if it goes on with
washouts. The command fails if a bound is broken beyond chance (99.9 %).
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.validity import scenarios
from benchmarks.validity.machine import Machine
from benchmarks.validity.pieces import in_pieces, source
from benchmarks.validity.shares import Share
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.interim import DIFFERENCE_VERDICTS, InterimAnalysis
from equipoise.design.coin import draw_block
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, RunRecord, Trial

ALPHA = 0.05
BLOCKS = 200
RUNS = 2 * BLOCKS + 4 * BLOCKS
MAX_EXTRA_SHARE = 0.05
"""Trials that the washouts may cost without any carry-over, as a part of those without them."""
MAX_STANDARD_ERRORS = 3.0902
"""Standard errors that chance may add to a mean: one-sided 99.9 %."""
NOISES: dict[str, scenarios.Draw] = {
    "Gauss 2 %": scenarios.white(0.02),
    "Gauss 1 %": scenarios.white(0.01),
    "t3 2 %": scenarios.student(3, 0.02),
    "AR(1) 0.9": scenarios.autoregressive(0.9, 0.02),
    "drift": scenarios.drift(0.01, 0.02),
    "two modes": scenarios.two_modes(0.10, 0.005),
    "slot 5 %": scenarios.periodic(2, 0.05, 0.02),
}
CARRIED = (0.0, 0.5, 1.0, 2.0, 3.0)
"""Percent by which the candidate slows whatever runs next, without an effect of its own."""
EFFECTS = (1.0, 2.0, 3.0, 10.0, 100.0)
"""True effects in percent, without carry-over."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of campaign."""

    noise: str
    carried: float
    """Percent by which the candidate slows whatever runs next."""
    effect: float
    """Percent by which the candidate takes longer."""

    @property
    def name(self) -> str:
        """Name that its random source is made of."""
        return f"{self.noise}|{self.carried}|{self.effect}"

    @classmethod
    def of(cls, name: str) -> Case:
        """Return the case of a name."""
        noise, carried, effect = name.split("|")
        return cls(noise, float(carried), float(effect))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One campaign, with washouts ruled out and as it is."""

    verdict_before: str
    trials_before: int
    verdict: str
    trials: int
    washed: bool
    warned: bool


def plan_of(seed: int, *, washouts: bool) -> Plan:
    """Return the plan of a campaign; the one that chose ``--washout`` never goes on with any."""
    return Plan(
        study="compare",
        conditions=(Condition("baseline", ("a",)), Condition("candidate", ("b",))),
        measure=Measure(working_folder="/", vary_environment_size=False, washout=not washouts),
        stopping=Stopping(blocks=2 * BLOCKS, min_seconds=0.0),
        judgement=Judgement(alpha=ALPHA),
        seed=seed,
    )


class Simulation:
    """Runs the blocks of one campaign on a simulated machine."""

    def __init__(self, machine: Machine, effect: float) -> None:
        self._machine = machine
        self._effect = effect
        self.ran = 0
        """Runs so far."""
        self._before: int | None = None

    def block(self, draw: Draw) -> tuple[Trial, ...]:
        """Run a block, and return the trials that count."""
        counted = []
        for place, condition in enumerate(draw.order):
            if draw.washout_condition is not None:
                self._run(draw.washout_condition)
            position = place if draw.washout_condition is None else 2 * place + 1
            seconds = self._run(condition)
            counted.append(
                Trial("measured", draw.block, position, condition, 0.0, Accounting(wall_s=seconds))
            )
        return tuple(counted)

    def _run(self, condition: int) -> float:
        log = self._machine.logs[condition, self.ran] + self._effect * condition
        if self._before is not None:
            log += self._machine.carried[self._before]
        self.ran, self._before = self.ran + 1, condition
        return math.exp(float(log))


def campaign(case: Case, seed: int, number: int) -> Outcome:
    """Simulate one campaign."""
    random = np.random.default_rng(source(seed, case.name, number))
    machine = replace_carried(NOISES[case.noise](random, RUNS), case.carried)
    coin = int(random.integers(2**62))
    plan = plan_of(coin, washouts=True)
    simulation = Simulation(machine, math.log1p(case.effect / 100.0))
    judge, ruled_out = (
        InterimAnalysis(one, one.stopping) for one in (plan, plan_of(coin, washouts=False))
    )
    before: tuple[str, int] | None = None
    draws: list[Draw] = []
    trials: list[Trial] = []
    ordinary = 0
    for block in itertools.count(1):
        washes = judge.runs_washouts()
        if (block > BLOCKS and not washes) or len(draws) - ordinary >= BLOCKS:
            break
        ordinary += not washes
        draws.append(draw_block(plan, "measured", block, washouts=washes))
        counted = simulation.block(draws[-1])
        trials += counted
        judge.add(counted)
        (status,) = judge.analyse()
        if before is None:
            ruled_out.add(counted)
            (other,) = ruled_out.analyse()
            if ruled_out.stop_reason() is not None or block == BLOCKS:
                before = (other.verdict, simulation.ran)
        if judge.stop_reason() is not None:
            break
    assert before is not None, "the judge with washouts ruled out stops first"
    washed = len(draws) > ordinary
    called = status.verdict in DIFFERENCE_VERDICTS
    return Outcome(
        *before,
        status.verdict,
        simulation.ran,
        washed=washed,
        warned=called and not washed and _warns(plan, draws, trials),
    )


def replace_carried(machine: Machine, percent: float) -> Machine:
    """Return a machine on which the candidate slows whatever runs next."""
    return Machine(
        machine.logs, (0.0, math.log1p(percent / 100.0)), machine.quantum, machine.quantum_told
    )


def _warns(plan: Plan, draws: list[Draw], trials: list[Trial]) -> bool:
    record = RunRecord("1", plan, 0.0, (), tuple(draws), tuple(trials), ())
    return any(one.code == "carry_over" for one in analyse_campaign(record).warnings)


def piece(name: str, start: int, end: int, seed: int) -> list[Outcome]:
    """Simulate the campaigns of a case from one number up to another."""
    case = Case.of(name)
    return [campaign(case, seed, number) for number in range(start, end)]


@dataclass(frozen=True, slots=True)
class Row:
    """What the campaigns of a case add up to."""

    case: Case
    outcomes: list[Outcome]

    def share(self, happened: Callable[[Outcome], bool]) -> Share:
        """Return how often something happened."""
        return Share.of(map(happened, self.outcomes))

    @property
    def called_before(self) -> Share:
        """Called different, with washouts ruled out."""
        return self.share(lambda one: one.verdict_before in DIFFERENCE_VERDICTS)

    @property
    def called(self) -> Share:
        """Called different."""
        return self.share(lambda one: one.verdict in DIFFERENCE_VERDICTS)

    @property
    def unwarned(self) -> Share:
        """Called different, without a warning of carry-over or by washouts."""
        return self.share(lambda one: one.verdict in DIFFERENCE_VERDICTS and not one.warned)

    @property
    def washed(self) -> Share:
        """Went on with washouts."""
        return self.share(lambda one: one.washed)

    @property
    def more_trials(self) -> tuple[float, float]:
        """Part of the trials that washouts add, and its Monte Carlo standard error."""
        now = np.array([one.trials for one in self.outcomes], dtype=np.float64)
        before = np.array([one.trials_before for one in self.outcomes], dtype=np.float64)
        ratio = float(now.sum() / before.sum())
        error = float(np.std(now - ratio * before) / before.mean() / math.sqrt(len(now)))
        return ratio - 1.0, error

    def broken(self) -> Iterator[str]:
        """Yield the bounds that the campaigns break."""
        where = f"{self.case.noise}, carry-over {self.case.carried:g} %"
        if self.case.effect == 0.0 and self.unwarned.exceeds(ALPHA):
            yield self.unwarned.beyond(ALPHA, f"{where}: called different without a warning")
        if self.case.effect == 0.0 and not self.case.carried and self.called.exceeds(ALPHA):
            yield self.called.beyond(ALPHA, f"{where}: called different")
        more, error = self.more_trials
        if not self.case.carried and more > MAX_EXTRA_SHARE + MAX_STANDARD_ERRORS * error:
            yield f"{where}, effect {self.case.effect:g} %: {100 * more:.1f} % more trials"


def cases(noises: list[str]) -> list[Case]:
    """Return all cases of these noises."""
    return [
        *(Case(noise, carried, 0.0) for noise in noises for carried in CARRIED),
        *(Case(noise, 0.0, effect) for noise in noises for effect in EFFECTS),
    ]


def _percent(share: Share) -> str:
    rate = share.count / share.total
    error = math.sqrt(rate * (1.0 - rate) / share.total)
    return f"{100 * rate:.1f} ± {100 * error:.1f}"


def show(rows: list[Row], console: Console) -> None:
    """Print the table; every number is in percent, with its Monte Carlo standard error."""
    table = Table(title=f"In percent; called different without a warning: at most {ALPHA:.0%}")
    for title in (
        *("noise", "carry-over", "effect", "called, washouts ruled out", "went on with washouts"),
        *("called", "without a warning", "more trials (bound 5, without carry-over)"),
    ):
        table.add_column(title, justify="left" if title == "noise" else "right")
    for row in rows:
        more, error = row.more_trials
        case = row.case
        table.add_row(
            case.noise,
            f"{case.carried:g}",
            f"{case.effect:g}",
            *map(_percent, (row.called_before, row.washed, row.called, row.unwarned)),
            f"{100 * more:+.1f} ± {100 * error:.1f}",
        )
    console.print(table)


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=400, help="campaigns of each case")
    parser.add_argument("--quick", action="store_true", help="60 campaigns of each case")
    parser.add_argument("--noise", action="append", choices=list(NOISES), help="only this noise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    count = 60 if arguments.quick else arguments.campaigns
    asked = {case.name: count for case in cases(arguments.noise or list(NOISES))}
    outcomes = in_pieces(asked, piece, seed=arguments.seed, workers=arguments.workers)
    rows = [Row(Case.of(name), outcomes[name]) for name in asked]
    show(rows, Console(width=160))
    broken = [sentence for row in rows for sentence in row.broken()]
    for sentence in broken:
        print(f"broken: {sentence}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
