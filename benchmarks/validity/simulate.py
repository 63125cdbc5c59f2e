"""One simulated machine after the other, each met by Equipoise and by the other rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.validity.campaign import (
    Stop,
    covers_always,
    covers_probability,
    draw_orders,
    first_verdict,
    run,
    warns_of_carry_over,
)
from benchmarks.validity.machine import BASELINE, CANDIDATE, Machine, measure
from benchmarks.validity.pieces import in_pieces, source
from benchmarks.validity.rules import RULES
from benchmarks.validity.rules.rule import Decision, Rule
from benchmarks.validity.rules.tachometer import MAX_ROUNDS
from benchmarks.validity.scenarios import SCENARIOS, Scenario

RUNS = 2 * MAX_ROUNDS
"""The longest schedule of any tool."""

MIN_EFFECT = 1.0
"""Percent; the default of `equipoise compare`."""

COVERED_EFFECT = 3.0
EFFECTS = {1.0: 0.0, 3.0: MIN_EFFECT, 10.0: MIN_EFFECT}
"""True effects in percent, each with the smallest effect that matters while it is looked for.
An effect of exactly 1 % is a border case of "at least 1 %": it is looked for with 0."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one simulated machine; effects in percent, rules by name."""

    any_effect: Stop
    """No effect, smallest effect that matters 0."""
    default: Stop
    """No effect, smallest effect that matters 1 %."""
    covered: bool
    """The scenario's true effect lay in the interval after each of the 200 blocks."""
    probability_covered: bool | None
    warned: bool
    """Of carry-over, at the stop of ``default``."""
    found: dict[float, Stop]
    peers: dict[str, Decision]
    """No effect."""
    peers_found: dict[str, Decision]
    """An effect of 3 %."""


def simulate(
    scenarios: Sequence[Scenario],
    campaigns: int,
    *,
    seed: int,
    workers: int,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, list[Outcome]]:
    """Outcomes of scenarios from ``SCENARIOS``, as for ``in_pieces``."""
    counts = {scenario.name: campaigns for scenario in scenarios}
    return in_pieces(counts, simulate_piece, seed=seed, workers=workers, progress=progress)


def simulate_piece(name: str, start: int, stop: int, seed: int) -> list[Outcome]:
    """Campaigns ``start`` up to ``stop`` of one scenario."""
    scenario = next(one for one in SCENARIOS if one.name == name)
    return [simulate_one(scenario, seed, campaign) for campaign in range(start, stop)]


def simulate_one(scenario: Scenario, seed: int, campaign: int) -> Outcome:
    """One machine, and what Equipoise and the other rules say of it."""
    children = source(seed, scenario.name, campaign).spawn(3)
    noise, coin, shuffling = (np.random.default_rng(child) for child in children)
    machine = scenario.draw(noise, RUNS)
    orders = draw_orders(int(coin.integers(2**63)))

    blocks = run(machine, orders, 0.0)
    whole = blocks.paired()
    default = first_verdict(blocks, whole, MIN_EFFECT)
    truth = scenario.probability_slower

    found: dict[float, Stop] = {}
    for percent, min_effect in EFFECTS.items():
        effect = float(np.log1p(percent / 100.0))
        with_effect = run(machine, orders, effect)
        pairs = with_effect.paired()
        found[percent] = first_verdict(with_effect, pairs, min_effect)
    covered_effect = float(np.log1p(scenario.covered_percent / 100.0))
    covered = covers_always(run(machine, orders, covered_effect).paired(), covered_effect)

    peers: dict[str, Decision] = {}
    peers_found: dict[str, Decision] = {}
    for rule in RULES:
        schedule_source = shuffling.spawn(1)[0]
        peers[rule.name], peers_found[rule.name] = _ask(rule, machine, schedule_source)
    return Outcome(
        any_effect=first_verdict(blocks, whole, 0.0),
        default=default,
        covered=covered,
        probability_covered=None if truth is None else covers_probability(whole, truth),
        warned=warns_of_carry_over(blocks, default.blocks, MIN_EFFECT),
        found=found,
        peers=peers,
        peers_found=peers_found,
    )


def _ask(rule: Rule, machine: Machine, random: np.random.Generator) -> tuple[Decision, Decision]:
    """What a rule says of the machine without an effect, and with one of 3 %."""
    schedule = rule.schedule(random)
    decisions = []
    for effect in (0.0, float(np.log1p(COVERED_EFFECT / 100.0))):
        # No other tool has timeouts: `timeout 1.25 command` gives them the limit as the time.
        times = np.minimum(measure(machine, schedule, effect), machine.time_limit)
        decisions.append(rule.decide(times[schedule == BASELINE], times[schedule == CANDIDATE]))
    return decisions[0], decisions[1]
