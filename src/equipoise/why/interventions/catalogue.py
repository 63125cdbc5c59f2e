"""All interventions, and those that test the causes that were found."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.design.site import Site
from equipoise.model.plan import Output
from equipoise.model.why import Explanation
from equipoise.why.interventions import blas, files, memory, runtime
from equipoise.why.interventions.intervention import Case, Intervention, Pair


def every_intervention(case: Case) -> tuple[Intervention, ...]:
    """Return all interventions; of those for the same cause the first is tried first."""
    return (
        *memory.offered(case),
        *files.offered(case),
        *blas.offered(case),
        *runtime.offered(case),
        *memory.other_allocators(case),
    )


def offered(case: Case) -> tuple[Intervention, ...]:
    """Return all interventions, without those that change nothing in either condition.

    What cannot be tried here is among them, with its reason.
    """
    return tuple(
        intervention
        for intervention in every_intervention(case)
        if intervention.impossible_because is not None
        or any(intervention.alter(condition) != condition for condition in case.pair)
    )


def proposed(
    causes: Sequence[Explanation],
    pair: Pair,
    site: Site,
    *,
    output: Output | None = None,
) -> tuple[Intervention, ...]:
    """Return the interventions that test an open cause, those for the most seconds first.

    The plan sends standard output to ``output``, to /dev/null by default.
    """
    case = Case(pair, site, causes, output or Output())
    seconds: dict[str, float] = {}
    for cause in causes:
        seconds[cause.cause] = max(seconds.get(cause.cause, 0.0), cause.seconds or 0.0)
    fitting = [one for one in offered(case) if one.causes & seconds.keys()]
    # The sort is stable: equals keep the order of the catalogue.
    return tuple(
        sorted(fitting, key=lambda one: -max(seconds[c] for c in one.causes & seconds.keys()))
    )
