"""From causes that evidence suggests to the campaign that tests them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.design.site import Site
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan, Stopping
from equipoise.why.experiment.effect import plan_that_takes_effect
from equipoise.why.experiment.plan import MOST_ATTEMPTS, OpenGap, plan_of_interventions
from equipoise.why.interventions.catalogue import offered, proposed
from equipoise.why.interventions.intervention import Case, Intervention

ONLY = "--only"
"""The option that names those of the catalogue."""


@dataclass(frozen=True, slots=True)
class Trying:
    """What is to be tried, and how long."""

    stopping: Stopping
    alpha: float
    seed: int
    own: tuple[Intervention, ...] = ()
    """The user's own."""
    only: tuple[str, ...] = ()
    """The names of those of the catalogue; all that fit a cause if there are none."""


def check_names(gap: OpenGap, trying: Trying, site: Site) -> None:
    """Refuse what no evidence could make right; the gap's causes need not be known yet.

    Raises
    ------
    UnusableInput
        A name is of no intervention, or of two.
    """
    if not (trying.only or trying.own):
        # What is offered is looked up on this host, which a ledger may only visit.
        return
    known = _known(gap, site)
    for name in trying.only:
        if name not in known:
            raise UnusableInput(
                f"{ONLY} {name}: there is no such intervention for these two",
                hint=f"there are {', '.join(known)}",
            )
    taken = set(trying.only or known)
    for one in trying.own:
        if one.name in taken:
            raise UnusableInput(
                f"two interventions are called {one.name}", hint="give one of them another name"
            )
        taken.add(one.name)


def planned_experiment(gap: OpenGap, trying: Trying, site: Site) -> Plan:
    """The plan of the campaign that tests what was found.

    Raises
    ------
    NothingToTry
        No intervention can test it here.
    UnusableInput
        A name is of no intervention, or of two.
    """
    check_names(gap, trying, site)
    interventions = _chosen(gap, trying, site)
    most = max(MOST_ATTEMPTS, len(trying.only))

    def make(left: Sequence[Intervention]) -> Plan:
        return plan_of_interventions(
            gap,
            left,
            stopping=trying.stopping,
            alpha=trying.alpha,
            seed=trying.seed,
            most=most,
        )

    return plan_that_takes_effect(make, interventions)


def _chosen(gap: OpenGap, trying: Trying, site: Site) -> tuple[Intervention, ...]:
    """Those that are to be tried, the most urgent first, the user's own last."""
    if trying.only:
        known = _known(gap, site)
        asked = (replace(known[name], asked_by=(ONLY, name)) for name in dict.fromkeys(trying.only))
        return (*asked, *trying.own)
    output = gap.record.plan.measure.output
    return (*proposed(gap.causes, gap.pair, site, output=output), *trying.own)


def _known(gap: OpenGap, site: Site) -> dict[str, Intervention]:
    """Every intervention for these two by its name; evidence makes no other names."""
    case = Case(gap.pair, site, gap.causes, gap.record.plan.measure.output)
    return {one.name: one for one in offered(case)}
