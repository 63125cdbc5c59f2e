"""What an intervention is offered for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from equipoise.design.site import Site
from equipoise.measure.environment.host import Host
from equipoise.model.plan import Condition, Output
from equipoise.model.why import Explanation

Pair = tuple[Condition, Condition]
"""The baseline and the candidate."""


@dataclass(frozen=True, slots=True)
class Case:
    """A gap: its two conditions, where they run, and what may cause it."""

    pair: Pair
    site: Site
    causes: Sequence[Explanation] = ()
    output: Output = Output()
    """Where the plan sends the standard output of a condition that says nothing of it."""
    host: Host = field(default_factory=Host)

    def evidence(self, causes: frozenset[str], key: str) -> Iterator[str]:
        """What the evidence of these causes names: ``file``, ``lock``."""
        for one in self.causes:
            value = one.evidence.get(key)
            if one.cause in causes and isinstance(value, str):
                yield value
