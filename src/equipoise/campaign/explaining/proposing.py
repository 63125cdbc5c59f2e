"""From causes that evidence suggests to the campaign that tests them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.campaign.explaining.effect import plan_that_takes_effect
from equipoise.campaign.explaining.plan import MOST_ATTEMPTS, OpenGap, plan_of_interventions
from equipoise.design.site import Site
from equipoise.explain.interventions.case import Case
from equipoise.explain.interventions.catalogue import offered, proposed
from equipoise.explain.interventions.intervention import Intervention
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan, Stopping


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


def planned_experiment(gap: OpenGap, trying: Trying, site: Site) -> Plan:
    """The plan of the campaign that tests what was found.

    Raises
    ------
    NothingToTry
        No intervention can test it here.
    UnusableInput
        A name is of no intervention, or of two.
    """
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
    output = gap.record.plan.measure.output
    fitting = proposed(gap.causes, gap.pair, site, output=output)
    if trying.only:
        every = offered(Case(gap.pair, site, gap.causes, output))
        known = {one.name: one for one in (*every, *fitting)}
        for name in trying.only:
            if name not in known:
                raise UnusableInput(
                    f"--only {name}: there is no such intervention for these two",
                    mend=f"there are {', '.join(known)}",
                )
        fitting = tuple(known[name] for name in dict.fromkeys(trying.only))
    every_one = (*fitting, *trying.own)
    names = [one.name for one in every_one]
    for name in names:
        if names.count(name) > 1:
            raise UnusableInput(
                f"two interventions are called {name}", mend="give one of them another name"
            )
    return every_one
