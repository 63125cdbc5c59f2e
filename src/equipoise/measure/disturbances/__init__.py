"""What disturbs measurements on this host, and the command that mends it; nothing is changed.

One file a check. None of them ever suggests to switch mitigations of the processor's faults
off: a faster benchmark is not worth an open machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from equipoise.measure.disturbances import (
    battery,
    busy_processes,
    coarse_clock,
    counters,
    cpu_quota,
    debug_variables,
    fixed_addresses,
    full_memory,
    full_temporary_folder,
    governor,
    huge_pages,
    load,
    shared_cores,
    steal,
    swap,
    turbo,
    unread_covariates,
)
from equipoise.measure.disturbances.scene import Check, Scene
from equipoise.measure.disturbances.window import watch
from equipoise.measure.surroundings.host import Host, Unknown
from equipoise.model.host import SEVERITIES, Disturbance, Examination

__all__ = ["CHECKS", "Scene", "examine", "look_around"]

CHECKS: Mapping[str, Check] = {
    "busy_processes": busy_processes.check,
    "cpu_quota": cpu_quota.check,
    "steal": steal.check,
    "full_memory": full_memory.check,
    "swap": swap.check,
    "load": load.check,
    "debug_variables": debug_variables.check,
    "full_temporary_folder": full_temporary_folder.check,
    "coarse_clock": coarse_clock.check,
    "battery": battery.check,
    "governor": governor.check,
    "turbo": turbo.check,
    "shared_cores": shared_cores.check,
    "huge_pages": huge_pages.check,
    "fixed_addresses": fixed_addresses.check,
    "counters": counters.check,
    "unread_covariates": unread_covariates.check,
}
"""The worst first; a new check is one new file and one line here."""


def look_around() -> Scene:
    """This host, watched for half a second."""
    host = Host()
    return Scene(host, watch(host), dict(os.environ), we_are_root=os.geteuid() == 0)


def examine(scene: Scene) -> Examination:
    """Run every check; one that cannot tell is named with its reason."""
    found: list[Disturbance] = []
    checked: list[str] = []
    unchecked: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            for disturbance in check(scene):
                # One by one: what was found counts even if the rest cannot be read.
                found.append(disturbance)
            checked.append(name)
        except Unknown as reason:
            unchecked[name] = str(reason)
    found.sort(key=lambda one: SEVERITIES.index(one.severity))
    return Examination(tuple(found), tuple(checked), unchecked)
