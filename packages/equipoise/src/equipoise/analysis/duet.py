"""Describes trials that ran at once: their CPUs and their pilot."""

from __future__ import annotations

from equipoise.analysis.wording import cpus_clause
from equipoise.campaign.pilot import PilotResult, pilot_results
from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord
from equipoise.model.result import DuetPilot, DuetResult


def duet_of(record: RunRecord) -> DuetResult | None:
    """Return how the trials of a campaign ran at once; ``None`` if they ran in turns."""
    plan = record.plan
    cpu_sets = plan.measure.cpu_sets
    if not cpu_sets:
        return None
    pilots = tuple(_pilot(plan, result) for result in pilot_results(plan, record.trials))
    sentence = f"the trials of a block ran at once on {cpus_clause(cpu_sets)}"
    if len(pilots) == 1:
        sentence += _gain_clause(pilots[0])
    return DuetResult(cpu_sets, pilots, sentence)


def _pilot(plan: Plan, result: PilotResult) -> DuetPilot:
    baseline, candidate = plan.names_of(result.contrast)
    slowdown, gain = result.slowdown, result.gain
    return DuetPilot(
        baseline,
        candidate,
        result.pairs,
        None if slowdown is None else slowdown.factor,
        None if slowdown is None else slowdown.low,
        None if gain is None else gain.factor,
        (None, None) if gain is None else gain.interval,
    )


def _gain_clause(pilot: DuetPilot) -> str:
    """Return a clause about the seconds that this saves, if the pilot knows them."""
    low, high = pilot.gain_ci
    if low is None or high is None or pilot.gain is None:
        return ""
    if low <= 1.0 <= high:
        return "; its pilot cannot tell whether that is sharper than in turns"
    return (
        f"; by its pilot, turns would need {pilot.gain:.2g} times the seconds "
        f"({low:.2g} to {high:.2g})"
    )
