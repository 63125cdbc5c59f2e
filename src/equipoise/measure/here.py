"""What design has to know of this host."""

from __future__ import annotations

import os

from equipoise.design.site import Site
from equipoise.measure.installed import installed_library
from equipoise.measure.native import native_programs
from equipoise.measure.surroundings.host import Host
from equipoise.measure.surroundings.processor import instructions


def site_here() -> Site:
    """This host, as trials that we start find it."""
    return Site(native_programs(), _find_library, instructions(Host()))


def _find_library(name: str) -> str | None:
    return installed_library(name, native_programs(), os.environ)
