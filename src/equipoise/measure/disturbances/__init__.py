"""What disturbs measurements on this host, each with the command that ends it; nothing is changed.

Files, in reading order:

- ``host_state``: what a check may look at, and half a second of the host's activity.
- ``other_work``: other processes, the load, a CPU quota, stolen CPU time, shared cores.
- ``memory``: full memory, swap, huge pages, a full temporary folder.
- ``settings``: battery, frequency governor, turbo, variables that slow programs, fixed addresses.
- ``instruments``: a slow clock, missing performance counters and covariates.
- ``around``: the cheap ones of these checks, before and after a campaign.

A check is a function of a `HostState` that yields disturbances and raises ``Unknown`` if it cannot
tell. No check ever suggests switching mitigations of the processor's faults off: a faster
benchmark is not worth an open machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from equipoise.measure.disturbances import instruments, memory, other_work, settings
from equipoise.measure.disturbances.host_state import HostState, watch
from equipoise.measure.environment.host import Host, Unknown
from equipoise.model.host import SEVERITIES, Disturbance, Examination

__all__ = ["CHECKS", "HostState", "examine", "observe_host"]

CHECKS: Mapping[str, Callable[[HostState], Iterable[Disturbance]]] = {
    check.__name__: check
    for check in (
        other_work.busy_processes,
        other_work.cpu_quota,
        other_work.steal,
        memory.full_memory,
        memory.swap,
        other_work.load,
        settings.debug_variables,
        memory.full_temporary_folder,
        instruments.coarse_clock,
        settings.battery,
        settings.governor,
        settings.turbo,
        other_work.shared_cores,
        memory.huge_pages,
        settings.fixed_addresses,
        instruments.counters,
        instruments.unread_covariates,
    )
}
"""Checks by name, the worst first; a new check is one function and one line here."""


def observe_host() -> HostState:
    """Watch this host for half a second."""
    host = Host()
    return HostState(host, watch(host), dict(os.environ), we_are_root=os.geteuid() == 0)


def examine(state: HostState) -> Examination:
    """Run every check; name each that could not tell, with the reason."""
    disturbances: list[Disturbance] = []
    checked: list[str] = []
    unchecked: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            for disturbance in check(state):
                # One by one: an earlier disturbance counts even if the check then fails.
                disturbances.append(disturbance)
            checked.append(name)
        except Unknown as reason:
            unchecked[name] = str(reason)
    disturbances.sort(key=lambda disturbance: SEVERITIES.index(disturbance.severity))
    return Examination(tuple(disturbances), tuple(checked), unchecked)
