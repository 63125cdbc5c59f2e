"""Observing both conditions of a gap: which runs are missing, and keeping each that is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol

from equipoise.campaign.verification import check_that_each_took_effect, mapped_by_condition
from equipoise.measure.trials import own_environment
from equipoise.model.observation import Observation
from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord
from equipoise.why.evidence.collect import (
    Hire,
    Wanted,
    draw_runs,
    gather,
    native_starter,
    usual_repetitions,
)
from equipoise.why.evidence.sources import BY_DEFAULT
from equipoise.why.evidence.store import of_pair
from equipoise.why.gap import Gap


class Notebook(Protocol):
    """The part of the ledger that observing writes to."""

    def record_observation(self, run_id: str, observation: Observation) -> None:
        """Commit an observation."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be observed."""

    sources: tuple[str, ...] = BY_DEFAULT
    repetitions: int | None = None
    """Of each source and condition; ``None`` for as many as is usual for runs that take so long."""
    again: bool = False
    """Whether what is known is observed once more."""


def runs_to_make(record: RunRecord, gap: Gap, asked: Asked) -> tuple[Wanted, ...]:
    """The runs that are missing, in the order that the campaign's own coin draws.

    Each gathering has an order of its own: it is drawn from how much was observed before, too.
    """
    baseline, candidate = gap.contrast.baseline, gap.contrast.candidate
    return draw_runs(
        baseline,
        candidate,
        asked.sources,
        asked.repetitions or usual_repetitions(gap.longest_s),
        record.plan.seed + len(record.observations),
        () if asked.again else of_pair(record.observations, baseline, candidate),
    )


def observe(
    record: RunRecord,
    gap: Gap,
    runs: Sequence[Wanted],
    notebook: Notebook,
    *,
    told: Callable[[int], None] = lambda _: None,
    hire: Hire = native_starter,
) -> None:
    """Make these runs; each observation is committed before the next run starts.

    Parameters
    ----------
    told
        Told after each run how many were made.

    Raises
    ------
    UnusableInput
        A condition does not take effect any more.
    ConditionFailed
        A hook failed; what was observed before is kept.
    EquipoiseError
        The launcher cannot be started or has died.
    """
    _check_both_take_effect(record.plan, gap)
    with closing(gather(record.plan, runs, longest_s=gap.longest_s, hire=hire)) as observations:
        for made, observation in enumerate(observations, start=1):
            notebook.record_observation(record.id, observation)
            told(made)


def _check_both_take_effect(plan: Plan, gap: Gap) -> None:
    """As before the first block: what was installed then may be gone now."""
    both = (gap.contrast.baseline, gap.contrast.candidate)
    pair = replace(plan, conditions=tuple(plan.conditions[one] for one in both))
    environment = own_environment()
    mapped = mapped_by_condition(pair, environment)
    check_that_each_took_effect(pair, mapped, environment)
