"""The plan of `compare --what-varies`: sources of chance of one command, held one at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec.structs import replace

from equipoise.design.chance import (
    FILE_ORDER,
    FILE_ORDER_LIBRARY,
    PRELOAD_VARIABLE,
    STUDY,
    Source,
    holding_one_at_a_time,
    not_tried,
    sources_here,
)
from equipoise.design.limits import WHAT_VARIES_BLOCKS
from equipoise.measure.environment import mapped_libraries
from equipoise.measure.environment.host import Host
from equipoise.measure.environment.system import addresses_are_random
from equipoise.measure.installation import native_programs
from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.stats.spread import LEAST_BLOCKS


def hold_sources_of_chance(plan: Plan) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """Return the plan that holds each source of chance of its one condition.

    The warnings name the sources that cannot be held on this host.

    Raises
    ------
    UnusableInput
        There is more than one command, a control, or too few blocks.
    """
    if len(plan.conditions) != 1:
        raise UnusableInput(
            f"--what-varies examines one command, not {len(plan.conditions)}",
            hint="leave out --control and all commands but one",
        )
    blocks = plan.stopping.blocks or WHAT_VARIES_BLOCKS
    if blocks < LEAST_BLOCKS:
        raise UnusableInput(
            f"--what-varies with {blocks} blocks can tell nothing",
            hint=f"give at least --blocks {LEAST_BLOCKS}",
        )
    environment = own_environment()
    sources, warnings = sources_here(
        environment,
        tuple(sorted(os.sched_getaffinity(0))),
        random_addresses=addresses_are_random(Host()),
    )
    order = _file_order(plan, environment)
    if isinstance(order, CampaignWarning):
        warnings = (*warnings, order)
    else:
        sources = (*sources, order)
    conditions = holding_one_at_a_time(plan.conditions[0], sources)
    # Nothing is compared, so the number of blocks depends on no measured time.
    stopping = replace(plan.stopping, blocks=blocks)
    return (
        replace(plan, study=STUDY, conditions=conditions, chosen_contrasts=(), stopping=stopping),
        warnings,
    )


def _file_order(plan: Plan, environment: Mapping[str, str]) -> Source | CampaignWarning:
    """Return the order of files as a source, or why its library cannot hold it."""
    condition = plan.conditions[0]
    library = native_programs() / FILE_ORDER_LIBRARY
    if not library.is_file():
        return not_tried(FILE_ORDER, f"{library} is missing", "make build")
    surroundings = {**environment, **condition.environment}
    preloaded = f"{library} {surroundings.get(PRELOAD_VARIABLE, '')}".strip()
    source = Source(FILE_ORDER, {PRELOAD_VARIABLE: preloaded})
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
