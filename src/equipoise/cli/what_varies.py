"""``equipoise compare --what-varies``: from one command's plan to that of its sources of chance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from equipoise.design.chance import STUDY, holding_one_at_a_time, sources_here
from equipoise.measure.surroundings.host import Host
from equipoise.measure.surroundings.kernel import addresses_are_random
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import Notice
from equipoise.stats.spread import LEAST_BLOCKS


def what_varies(plan: Plan, environment: Mapping[str, str]) -> tuple[Plan, tuple[Notice, ...]]:
    """The plan that holds the sources of chance of its one condition, and which it cannot try.

    Raises
    ------
    UnusableInput
        There is more than one command, a control, or too few blocks.
    """
    if len(plan.conditions) != 1:
        raise UnusableInput(
            f"--what-varies looks at one command, not at {len(plan.conditions)}",
            mend="leave out --control and all commands but one",
        )
    if plan.stopping.blocks < LEAST_BLOCKS:
        raise UnusableInput(
            f"--what-varies with {plan.stopping.blocks} blocks can tell nothing",
            mend=f"give at least --blocks {LEAST_BLOCKS}",
        )
    sources, notices = sources_here(
        environment,
        tuple(sorted(os.sched_getaffinity(0))),
        random_addresses=addresses_are_random(Host()),
    )
    conditions = holding_one_at_a_time(plan.conditions[0], sources)
    # Nothing is compared: the number of blocks depends on no time.
    return replace(plan, study=STUDY, conditions=conditions, chosen_contrasts=()), notices
