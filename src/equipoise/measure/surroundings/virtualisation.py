"""Whether the host is a virtual machine or a container, and which machine it is."""

from __future__ import annotations

from equipoise.measure.surroundings import clocks
from equipoise.measure.surroundings.facts import NONE, Facts
from equipoise.measure.surroundings.host import Host, Unknown
from equipoise.measure.surroundings.processor import about

DMI = "/sys/class/dmi/id"
_BY_CLOCK = {"kvm-clock": "KVM", "hyperv_clocksource_tsc_page": "Hyper-V", "xen": "Xen"}
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def hypervisor(host: Host) -> str:
    """Its name, ``unnamed`` or ``none``.

    Raises
    ------
    Unknown
        Nothing tells: processors other than x86 have no flag for it.
    """
    if host.has("/sys/hypervisor/type"):
        return host.text("/sys/hypervisor/type")
    if "hypervisor" not in about(host, "flags").split():
        return NONE
    for source in _clock_sources(host):
        if source in _BY_CLOCK:
            return _BY_CLOCK[source]
    return "unnamed"


def _clock_sources(host: Host) -> list[str]:
    try:
        return host.text(f"{clocks.FOLDER}/available_clocksource").split()
    except Unknown:
        # It only names what the flag has shown.
        return []


def _container(host: Host) -> str:
    # Others leave no mark, so what is not found is not known to be absent.
    for mark in _CONTAINER_MARKS:
        if host.has(mark):
            return f"marked by {mark}"
    raise Unknown(f"neither {' nor '.join(_CONTAINER_MARKS)} is there")


FACTS: Facts = {
    "hypervisor": hypervisor,
    "machine_vendor": lambda host: host.text(f"{DMI}/sys_vendor"),
    "machine_product": lambda host: host.text(f"{DMI}/product_name"),
    "container": _container,
}
