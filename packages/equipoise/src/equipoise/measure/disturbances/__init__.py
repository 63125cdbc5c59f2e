"""Disturbances of measurements on this host, each with the command that ends it.

Files, in reading order:

- ``host_state``: the input of checks: a host and half a second of its activity.
- ``contention``: other processes, lost CPU time, full memory and a full disk.
- ``settings``: power, variables that slow programs, addresses; the clock, missing counters.

A check is a function that takes a `HostState` and yields disturbances. It changes nothing, and
raises ``Unknown`` if it cannot decide. No check suggests switching off the mitigations of processor
faults, because that would make the host insecure.
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
"""Checks by name, the most serious first."""


def observe_host() -> HostState:
    """Return the state of this host after half a second of observation."""
    host = Host()
    return HostState(host, watch(host), dict(os.environ), we_are_root=os.geteuid() == 0)


def examine(state: HostState) -> Examination:
    """Run all checks. The result lists each check that could not decide, with the reason."""
    disturbances: list[Disturbance] = []
    checked: list[str] = []
    unchecked: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            for disturbance in check(state):
                # A disturbance counts even if the check fails after it.
                disturbances.append(disturbance)
            checked.append(name)
        except Unknown as reason:
            unchecked[name] = str(reason)
    disturbances.sort(key=lambda disturbance: SEVERITIES.index(disturbance.severity))
    return Examination(tuple(disturbances), tuple(checked), unchecked)
