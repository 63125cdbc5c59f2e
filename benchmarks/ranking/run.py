"""What a ranking saves, and how often it is wrong.

Three tables, of simulated campaigns with known true times::

    python -m benchmarks.ranking.run
    python -m benchmarks.ranking.run --table names --blocks 20

- ``trials``: the trials that a campaign saves which leaves out the conditions that are decided and
  cannot be the fastest.
- ``names``: how often one condition is named as the fastest, and how often this name is wrong.
- ``ties``: how often one of several equal conditions leaves the contenders.

The exit status is 1 if a bound is broken: a count that a rate of alpha exceeds in one of a thousand
such tables.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.ranking import ranked_groups
from equipoise.campaign.blocks import complete_blocks
from equipoise.model.plan import Stopping
from equipoise.stats.ranking import contenders_of
from packages.equipoise.tests.campaign.test_ranking import Simulated, plan_with, simulated
from packages.equipoise.tests.stats.simulated import at_most

SAVING = {
    "three 10 % slower, one equal": (1.0, 1.1, 1.1, 1.1, 1.0),
    "four 10 % slower": (1.0, 1.1, 1.1, 1.1, 1.1),
    "one 10 % faster, three equal": (1.0, 0.9, 1.0, 1.0, 1.0),
    "all equal": (1.0, 1.0, 1.0, 1.0, 1.0),
}
"""True times of the conditions; the baseline is the first."""
NAMING = {
    "0.5 % ahead of three": (1.005, 1.0, 1.005, 1.005),
    "baseline 0.5 % ahead of three": (1.0, 1.005, 1.005, 1.005),
    "0.5 % ahead of three, one 10 % slower": (1.005, 1.0, 1.005, 1.005, 1.1),
}
TIED = {
    "five equal": (1.0, 1.0, 1.0, 1.0, 1.0),
    "four equal, one 10 % slower": (1.0, 1.0, 1.0, 1.0, 1.1),
}
SPREADS = (0.01, 0.02)
MIN_EFFECTS = (1.0, 0.0)
"""Percent: the default, and none, with which a name is given more often."""
MAX_BLOCKS = 300
LOOKS = (10, 20, 40, 70)
"""Blocks after which the contenders are also computed, beside the stop."""
ALPHA = 0.05


class Names(Struct, frozen=True):
    """The contenders of one campaign, at some of its looks and at its stop."""

    fastest: frozenset[int]
    """Conditions than which none is faster."""
    contenders: tuple[frozenset[int], ...]
    leader: int

    @property
    def named(self) -> bool:
        """Whether the campaign stopped with one contender."""
        return len(self.contenders[-1]) == 1

    @property
    def wrong(self) -> bool:
        """Whether any look had one contender that is not the fastest."""
        return any(len(one) == 1 and not one & self.fastest for one in self.contenders)

    @property
    def missing(self) -> frozenset[int]:
        """The fastest conditions that were no contenders at a look."""
        return frozenset(one for one in self.fastest for look in self.contenders if one not in look)


def contenders(campaign: Simulated, blocks: int) -> frozenset[int]:
    """Return the contenders after the first blocks of a campaign."""
    draws = [draw for draw in campaign.draws if draw.block <= blocks]
    trials = [trial for trial in campaign.trials if trial.block <= blocks]
    judgement = campaign.plan.judgement
    (group,) = ranked_groups(campaign.plan, complete_blocks(draws, trials))
    return frozenset(contenders_of(group, judgement.min_effect, judgement.alpha))


def names_of(
    ratios: Sequence[float], seed: int, sd: float, min_effect: float, blocks: int
) -> Names:
    """Run a campaign to its stop and return its contenders."""
    plan = plan_with(tuple(ratios), seed, min_effect=min_effect)
    campaign = simulated(plan, tuple(ratios), sd, blocks)
    stop = len(campaign.draws)
    letters = [condition.name for condition in campaign.plan.conditions]
    leader = campaign.ranking.leader
    return Names(
        frozenset(place for place, ratio in enumerate(ratios) if ratio == min(ratios)),
        tuple(contenders(campaign, look) for look in (*LOOKS, stop) if look <= stop),
        -1 if leader is None else letters.index(leader),
    )


def percent(count: int, campaigns: int) -> str:
    """Return a rate in percent with its Monte Carlo error: ``4.0 ± 1.4``."""
    # A count of 0 or of all has an error, too: that of one more or one less.
    inner = min(max(count, 1), campaigns - 1) / campaigns
    error = math.sqrt(inner * (1.0 - inner) / campaigns)
    return f"{100 * count / campaigns:.1f} ± {100 * error:.1f}"


def trials_table(campaigns: int, _blocks: int) -> Iterator[str]:
    """Print mean trials with and without leaving; yield no claim, since none is bounded."""
    print(f"\nmean trials of {campaigns} campaigns; noise of 1 %, 1 % matters")
    for name, ratios in SAVING.items():
        counts: list[list[int]] = []
        for seed in range(campaigns):
            plan = plan_with(ratios, seed)
            plans = (
                replace(plan, stopping=Stopping(min_seconds=0.0, leave_out_decided=leaves))
                for leaves in (False, True)
            )
            counts.append([len(simulated(one, ratios, 0.01, MAX_BLOCKS).trials) for one in plans])
        trials = np.array(counts)
        without, leaving = trials.mean(axis=0)
        saved = 100.0 * (1.0 - leaving / without)
        error = 100.0 * np.std(trials[:, 1] / trials[:, 0], ddof=1) / np.sqrt(campaigns)
        print(f"{name:38} {without:7.0f} {leaving:7.0f}  {saved:3.0f} % fewer (± {error:.1f})")
    yield from ()


def names_table(campaigns: int, blocks: int) -> Iterator[str]:
    """Print how often one name is given and wrong; yield each broken bound."""
    most = at_most(campaigns, ALPHA)
    print(
        f"\n% of {campaigns} campaigns of at most {blocks} blocks, with Monte Carlo "
        f"error; one name may be wrong, and the fastest left out, at any look, in {100 * ALPHA:g} %"
        f"\n{'true times':38} sd %  matters %    one name    it is wrong   fastest out   "
        "other leads"
    )
    for name, ratios in NAMING.items():
        for sd in SPREADS:
            for min_effect in MIN_EFFECTS:
                ran = [names_of(ratios, seed, sd, min_effect, blocks) for seed in range(campaigns)]
                wrong = sum(one.wrong for one in ran)
                missing = sum(bool(one.missing) for one in ran)
                counts = (
                    sum(one.named for one in ran),
                    wrong,
                    missing,
                    sum(one.leader not in one.fastest for one in ran),
                )
                cells = "".join(f"{percent(count, campaigns):>14}" for count in counts)
                print(f"{name:38} {100 * sd:4g}  {min_effect:9g}{cells}", flush=True)
                case = f"{name}, sd {100 * sd:g} %, {min_effect:g} % matters"
                if wrong > most:
                    yield f"{case}: one name was wrong in {wrong} of {campaigns} campaigns"
                if missing > most:
                    yield f"{case}: the fastest was left out in {missing} of {campaigns} campaigns"


def ties_table(campaigns: int, blocks: int) -> Iterator[str]:
    """Print how often equal conditions leave the contenders; yield each broken bound."""
    most = at_most(campaigns, ALPHA)
    print(
        f"\n% of {campaigns} campaigns of at most {blocks} blocks, with Monte Carlo "
        f"error; each of the fastest may be left out in {100 * ALPHA:g} %, any of them more often"
        f"\n{'true times':38} sd %  matters %   most of one        any of them   wrong name"
    )
    for name, ratios in TIED.items():
        ran = [names_of(ratios, seed, 0.02, 0.0, blocks) for seed in range(campaigns)]
        out = [sum(place in one.missing for one in ran) for place in range(len(ratios))]
        wrong = sum(one.wrong for one in ran)
        counts = (max(out), sum(bool(one.missing) for one in ran), wrong)
        cells = "".join(f"{percent(count, campaigns):>14}" for count in counts)
        print(f"{name:38} {2:4g}  {0:9g}{cells}", flush=True)
        if max(out) > most:
            yield f"{name}: one condition was left out in {max(out)} of {campaigns} campaigns"
        if wrong > most:
            yield f"{name}: one name was wrong in {wrong} of {campaigns} campaigns"


TABLES = {"trials": trials_table, "names": names_table, "ties": ties_table}


def main() -> int:
    """Print the tables; the exit status is 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=100, help="most blocks of names and ties")
    parser.add_argument("--table", choices=TABLES, help="print this table alone")
    options = parser.parse_args()
    chosen = [options.table] if options.table else list(TABLES)
    broken = [
        claim for table in chosen for claim in TABLES[table](options.campaigns, options.blocks)
    ]
    for claim in broken:
        print(f"broken bound: {claim}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
