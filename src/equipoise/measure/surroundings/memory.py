"""Memory: how much there is, and in which pages it is handed out."""

from __future__ import annotations

import os
import re

from equipoise.measure.surroundings.facts import Facts
from equipoise.measure.surroundings.host import Host, Unknown

HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_CHOSEN = re.compile(r"\[(\w+)\]")


def meminfo(host: Host, key: str) -> int:
    """One line of /proc/meminfo, in bytes.

    Raises
    ------
    Unknown
        There is no such line.
    """
    value = host.value("/proc/meminfo", key)
    number = value.partition(" ")[0]
    if not number.isdigit():
        raise Unknown(f"/proc/meminfo: {value[:40]!r} is no number")
    return int(number) * 1024


def transparent_huge_pages(host: Host) -> str:
    """``always``, ``madvise`` or ``never``.

    Raises
    ------
    Unknown
        The kernel does not say.
    """
    text = host.text(HUGE_PAGES)
    found = _CHOSEN.search(text)
    if found is None:
        raise Unknown(f"{HUGE_PAGES}: no choice in {text[:40]!r}")
    return found[1]


FACTS: Facts = {
    "memory_bytes": lambda host: meminfo(host, "MemTotal"),
    "swap_bytes": lambda host: meminfo(host, "SwapTotal"),
    "page_bytes": lambda _: os.sysconf("SC_PAGE_SIZE"),
    "transparent_huge_pages": transparent_huge_pages,
}
