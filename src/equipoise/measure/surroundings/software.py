"""The software around a campaign that is neither kernel nor condition."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from equipoise.measure.surroundings.facts import Facts
from equipoise.measure.surroundings.host import Host, Unknown


def _own_version(_: Host) -> str:
    try:
        return version("equipoise")
    except PackageNotFoundError:
        raise Unknown("Equipoise runs from a folder that is not installed") from None


def _libc(_: Host) -> str:
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        found = None
    if not found:
        raise Unknown("the C library is not the GNU one and does not tell its version")
    return found


def _time_zone(_: Host) -> str:
    name = datetime.now().astimezone().tzname()
    if name is None:
        raise Unknown("the system names no time zone")
    return name


FACTS: Facts = {
    "equipoise": _own_version,
    "python": lambda _: platform.python_version(),
    "libc": _libc,
    "time_zone": _time_zone,
}
