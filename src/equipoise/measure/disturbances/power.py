"""Power: what makes the speed of a CPU depend on more than its work."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.host_state import HostState
from equipoise.measure.environment import hardware
from equipoise.measure.environment.hardware import CPUS
from equipoise.model.host import Disturbance

SUPPLIES = "/sys/class/power_supply"


def battery(state: HostState) -> Iterator[Disturbance]:
    """Report a battery of the machine itself that is being discharged."""
    host = state.host
    for name in host.names(SUPPLIES) if host.has(SUPPLIES) else ():
        folder = f"{SUPPLIES}/{name}"
        scope = f"{folder}/scope"
        of_a_device = host.has(scope) and host.text(scope) == "Device"
        if host.text(f"{folder}/type") != "Battery" or of_a_device:
            continue
        if host.text(f"{folder}/status") == "Discharging":
            what = f"the machine runs on its battery ({name})"
            hint = f"plug it in; then cat {folder}/status says Charging or Full"
            yield Disturbance("battery", "disturbs", what, hint)


def governor(state: HostState) -> Iterator[Disturbance]:
    """Name each frequency governor that is not ``performance``."""
    others = [name for name in hardware.governors(state.host) if name != "performance"]
    if others:
        yield Disturbance(
            "governor",
            "weakens",
            f"the frequency governor is {', '.join(others)}: "
            "how fast a CPU runs depends on what ran before",
            f"echo performance | sudo tee {CPUS}/cpu*/cpufreq/scaling_governor",
        )


def turbo(state: HostState) -> Iterator[Disturbance]:
    """Report that turbo is on."""
    if not hardware.turbo(state.host):
        return
    intel = f"{CPUS}/intel_pstate/no_turbo"
    switch, value = (intel, 1) if state.host.has(intel) else (f"{CPUS}/cpufreq/boost", 0)
    what = "turbo is on: how fast a CPU runs depends on its temperature and its neighbours"
    hint = f"echo {value} | sudo tee {switch}"
    yield Disturbance("turbo", "weakens", what, hint)
