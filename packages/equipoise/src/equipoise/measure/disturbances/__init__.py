"""What disturbs measurements on this host, each with the command that ends it; nothing is changed.

Files, in reading order:

- ``host_state``: what a check may look at, and half a second of the host's activity.
- ``contention``: other processes, CPU time that we do not get, full memory and a full disk.
- ``settings``: power, variables that slow programs, addresses; the clock, missing counters.

A check is a function of a `HostState` that yields disturbances and raises ``Unknown`` if it cannot
tell. No check ever suggests switching mitigations of the processor's faults off: a faster
benchmark is not worth an open machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from equipoise.measure.disturbances import contention, settings
from equipoise.measure.disturbances.host_state import HostState, watch
from equipoise.measure.environment.system import Host, Unknown
from equipoise.model.host import SEVERITIES, Disturbance, Examination

__all__ = ["CHECKS", "HostState", "examine", "observe_host"]

CHECKS: Mapping[str, Callable[[HostState], Iterable[Disturbance]]] = {
    check.__name__: check
    for check in (
        contention.busy_processes,
        contention.cpu_quota,
        contention.steal,
        contention.full_memory,
        contention.swap,
        contention.load,
        settings.debug_variables,
        contention.full_temporary_folder,
        settings.coarse_clock,
        settings.battery,
        settings.governor,
        settings.turbo,
        contention.shared_cores,
        settings.huge_pages,
        settings.fixed_addresses,
        settings.counters,
        settings.unread_covariates,
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
