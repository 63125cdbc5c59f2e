"""``equipoise compare --what-varies``: from one command's plan to that of its sources of chance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from equipoise.design.chance import (
    FILE_ORDER,
    FILE_ORDER_LIBRARY,
    PRELOAD_VARIABLE,
    STUDY,
    Source,
    file_order,
    holding_one_at_a_time,
    not_tried,
    sources_here,
)
from equipoise.measure.environment import mapped_libraries
from equipoise.measure.environment.host import Host
from equipoise.measure.environment.system import addresses_are_random
from equipoise.measure.installation import native_programs
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.stats.spread import LEAST_BLOCKS


def what_varies(
    plan: Plan, environment: Mapping[str, str]
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """The plan that holds the sources of chance of its one condition, and which it cannot try.

    Raises
    ------
    UnusableInput
        There is more than one command, a control, or too few blocks.
    """
    if len(plan.conditions) != 1:
        raise UnusableInput(
            f"--what-varies looks at one command, not at {len(plan.conditions)}",
            hint="leave out --control and all commands but one",
        )
    if plan.stopping.blocks < LEAST_BLOCKS:
        raise UnusableInput(
            f"--what-varies with {plan.stopping.blocks} blocks can tell nothing",
            hint=f"give at least --blocks {LEAST_BLOCKS}",
        )
    sources, notices = sources_here(
        environment,
        tuple(sorted(os.sched_getaffinity(0))),
        random_addresses=addresses_are_random(Host()),
    )
    order = _file_order(plan, environment)
    if isinstance(order, CampaignWarning):
        notices = (*notices, order)
    else:
        sources = (*sources, order)
    conditions = holding_one_at_a_time(plan.conditions[0], sources)
    # Nothing is compared: the number of blocks depends on no time.
    return replace(plan, study=STUDY, conditions=conditions, chosen_contrasts=()), notices


def _file_order(plan: Plan, environment: Mapping[str, str]) -> Source | CampaignWarning:
    """The order of files as a source, or why it cannot be held: only a library can hold it."""
    condition = plan.conditions[0]
    library = native_programs() / FILE_ORDER_LIBRARY
    if not library.is_file():
        return not_tried(FILE_ORDER, f"{library} is missing", "make build")
    surroundings = {**environment, **condition.environment}
    source = file_order(str(library), surroundings.get(PRELOAD_VARIABLE, ""))
    mapped = mapped_libraries(
        condition.command, {**surroundings, **source.environment}, plan.measure.working_folder
    )
    if os.path.realpath(library) in (mapped.libraries or {}).values():
        return source
    reason = mapped.unknown_because or "; ".join(mapped.problems)
    return not_tried(
        FILE_ORDER,
        f"{FILE_ORDER_LIBRARY} cannot be preloaded into {condition.command[0]}: {reason}",
        "use a program that is linked dynamically to this host's C library",
    )
