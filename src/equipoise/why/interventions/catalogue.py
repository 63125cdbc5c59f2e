"""Every intervention that is known, and those that test the causes that were found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from equipoise.design.site import Site
from equipoise.measure.environment.host import Host
from equipoise.model.plan import Output
from equipoise.model.why import Explanation
from equipoise.why.interventions import (
    addresses,
    allocators,
    blas,
    environment_size,
    glibc_policies,
    hash_seeds,
    huge_pages,
    keep_pages,
    no_sleep,
    page_cache,
    pinning,
    quick_sync,
    standard_output,
    stdio_buffers,
    threads,
)
from equipoise.why.interventions.case import Case, Pair
from equipoise.why.interventions.intervention import Intervention

Offered = Callable[[Case], tuple[Intervention, ...]]

FILES: tuple[Offered, ...] = (
    glibc_policies.offered,
    allocators.offered,
    keep_pages.offered,
    huge_pages.offered,
    quick_sync.offered,
    stdio_buffers.offered,
    standard_output.offered,
    no_sleep.offered,
    page_cache.offered,
    blas.offered,
    threads.offered,
    pinning.offered,
    hash_seeds.offered,
    environment_size.offered,
    addresses.offered,
    allocators.others_offered,
)
"""One line each; of those for the same cause the first is tried first."""


def offered(case: Case) -> tuple[Intervention, ...]:
    """All that are known, without those that change nothing in either condition.

    What cannot be tried here is among them, with its reason.
    """
    known = (one for file in FILES for one in file(case))
    return tuple(
        one for one in known if one.impossible_because is not None or changes(one, case.pair)
    )


def proposed(
    causes: Sequence[Explanation],
    pair: Pair,
    site: Site,
    *,
    output: Output | None = None,
    host: Host | None = None,
) -> tuple[Intervention, ...]:
    """Those that test a cause that was found, the first for the cause with the most seconds.

    Parameters
    ----------
    causes
        Open ones.
    pair
        The baseline and the candidate.
    output
        Where the plan sends standard output; to /dev/null by default.
    host
        Where huge pages and file systems are looked up; this one by default.
    """
    case = Case(pair, site, causes, output or Output(), host or Host())
    seconds: dict[str, float] = {}
    for one in causes:
        seconds[one.cause] = max(seconds.get(one.cause, 0.0), one.seconds or 0.0)
    fitting = [one for one in offered(case) if one.causes & seconds.keys()]
    # The sort is stable: of equals the order of the files stays.
    return tuple(sorted(fitting, key=lambda one: -_most(one, seconds)))


def changes(one: Intervention, pair: Pair) -> bool:
    """Whether it makes another condition of at least one of the two."""
    return any(one.alter(condition) != condition for condition in pair)


def _most(one: Intervention, seconds: dict[str, float]) -> float:
    return max(seconds[cause] for cause in one.causes & seconds.keys())
