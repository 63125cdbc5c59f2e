"""The observations of two conditions, decoded, source by source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from equipoise.model.observation import Observation
from equipoise.why.evidence.allocations import Allocations
from equipoise.why.evidence.instructions import Instructions
from equipoise.why.evidence.sampled import Sampled
from equipoise.why.evidence.system_calls import SystemCalls

Run = TypeVar("Run")
Taken = TypeVar("Taken")


@dataclass(frozen=True, slots=True)
class Runs(Generic[Run]):
    """What was seen of the runs of each condition, in the order in which they were made."""

    baseline: tuple[Run, ...] = ()
    candidate: tuple[Run, ...] = ()

    @property
    def both(self) -> bool:
        """Whether there is something to compare."""
        return bool(self.baseline and self.candidate)

    def map(self, take: Callable[[Run], Taken]) -> Runs[Taken]:
        """One thing of each run, such as a number."""
        return Runs(tuple(map(take, self.baseline)), tuple(map(take, self.candidate)))


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that the sources saw."""

    system_calls: Runs[SystemCalls] = Runs()
    profile: Runs[Sampled] = Runs()
    page_faults: Runs[Sampled] = Runs()
    waits: Runs[Sampled] = Runs()
    allocations: Runs[Allocations] = Runs()
    instructions: Runs[Instructions] = Runs()
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By source: why a run gave nothing, each reason once."""


def gathered(observations: Sequence[Observation], baseline: int, candidate: int) -> Gathered:
    """Decode the observations of two conditions of a plan."""
    failures: dict[str, list[str]] = defaultdict(list)
    for one in observations:
        if one.failure is not None and one.failure not in failures[one.source]:
            failures[one.source].append(one.failure)

    def runs(source: str, kind: type[Run]) -> Runs[Run]:
        def of(condition: int) -> tuple[Run, ...]:
            return tuple(
                msgspec.json.decode(one.document, type=kind)
                for one in observations
                if one.source == source and one.condition == condition and one.document is not None
            )

        return Runs(of(baseline), of(candidate))

    return Gathered(
        system_calls=runs("system_calls", SystemCalls),
        profile=runs("profile", Sampled),
        page_faults=runs("page_faults", Sampled),
        waits=runs("waits", Sampled),
        allocations=runs("allocations", Allocations),
        instructions=runs("instructions", Instructions),
        failures={source: tuple(reasons) for source, reasons in failures.items()},
    )
