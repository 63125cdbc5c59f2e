"""What the campaigns of one scenario add up to, and whether the claims hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.validity.campaign import ALPHA, CALLS, Stop
from benchmarks.validity.rules import RULES
from benchmarks.validity.scenarios import Scenario
from benchmarks.validity.shares import Share
from benchmarks.validity.simulate import Outcome
from equipoise.model.result import Verdict

VERDICTS: tuple[Verdict, ...] = ("faster", "slower", "mixed", "equivalent", "undecided")


@dataclass(frozen=True, slots=True)
class Length:
    """Median and 90th percentile; infinite where so many campaigns reached no end."""

    median: float
    ninetieth: float

    @classmethod
    def of(cls, stops: Sequence[Stop]) -> Length:
        """Blocks to the verdict; an undecided campaign has none."""
        blocks = [math.inf if stop.verdict == "undecided" else float(stop.blocks) for stop in stops]
        median, ninetieth = np.quantile(blocks, [0.5, 0.9], method="higher")
        return cls(float(median), float(ninetieth))


@dataclass(frozen=True, slots=True)
class Found:
    """How an effect that is there was judged: of all campaigns."""

    slower: Share
    mixed: Share
    length: Length


@dataclass(frozen=True, slots=True)
class PeerSummary:
    """What the rule of one other tool did."""

    called: Share
    """Different, without an effect."""
    called_faster: Share
    called_slower: Share
    found: Share
    """Called slower, with an effect of 3 %."""
    median_runs: float
    """Until then or until it gave up."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of one scenario."""

    scenario: Scenario
    campaigns: int
    any_effect: Share
    """Called different without an effect, smallest effect that matters 0."""
    default: Share
    """The same with 1 %."""
    missed: Share
    """The interval left out the true effect after some block."""
    probability_missed: Share | None
    warned: Share
    verdicts: dict[Verdict, Share]
    """Without an effect, smallest effect that matters 1 %."""
    length: Length
    """Of those."""
    found: dict[float, Found]
    peers: dict[str, PeerSummary]


def summarise(scenario: Scenario, outcomes: Sequence[Outcome]) -> Summary:
    """Adds up the campaigns of one scenario."""
    probability = [
        one.probability_covered for one in outcomes if one.probability_covered is not None
    ]
    return Summary(
        scenario=scenario,
        campaigns=len(outcomes),
        any_effect=Share.of(one.any_effect.verdict in CALLS for one in outcomes),
        default=Share.of(one.default.verdict in CALLS for one in outcomes),
        missed=Share.of(not one.covered for one in outcomes),
        probability_missed=Share.of(not covered for covered in probability)
        if probability
        else None,
        warned=Share.of(one.warned for one in outcomes),
        verdicts={
            verdict: Share.of(one.default.verdict == verdict for one in outcomes)
            for verdict in VERDICTS
        },
        length=Length.of([one.default for one in outcomes]),
        found={
            percent: _found([one.found[percent] for one in outcomes])
            for percent in outcomes[0].found
        },
        peers={rule.name: _peer(rule.name, outcomes) for rule in RULES},
    )


def broken_claims(summary: Summary) -> list[str]:
    """What Equipoise claims and this shows to be wrong, in words; none is as it should be."""
    scenario = summary.scenario
    claims = [
        (scenario.claims_error_rate, summary.any_effect, "false alarms, any effect"),
        (scenario.claims_error_rate, summary.default, "false alarms, 1 % or more"),
        (
            scenario.claims_coverage,
            summary.missed,
            f"misses of a true {scenario.covered_percent:g} %",
        ),
        (not scenario.is_equivalent, summary.verdicts["equivalent"], "false `equivalent`"),
        (True, summary.probability_missed, "misses of P(slower)"),
    ]
    return [
        f"{scenario.name}: {share.beyond(ALPHA, what)}"
        for claimed, share, what in claims
        if claimed and share is not None and share.exceeds(ALPHA)
    ]


def _found(stops: Sequence[Stop]) -> Found:
    return Found(
        slower=Share.of(stop.verdict == "slower" for stop in stops),
        mixed=Share.of(stop.verdict == "mixed" for stop in stops),
        length=Length.of(stops),
    )


def _peer(name: str, outcomes: Sequence[Outcome]) -> PeerSummary:
    without = [one.peers[name].call for one in outcomes]
    return PeerSummary(
        called=Share.of(call is not None for call in without),
        called_faster=Share.of(call == "faster" for call in without),
        called_slower=Share.of(call == "slower" for call in without),
        found=Share.of(one.peers_found[name].call == "slower" for one in outcomes),
        median_runs=float(np.median([one.peers_found[name].runs for one in outcomes])),
    )
