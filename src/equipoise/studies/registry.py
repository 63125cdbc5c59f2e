"""The kinds of factors whose levels have names of their own: one file each, one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from equipoise.model.study import Level
from equipoise.studies.allocator_levels import ALLOCATORS
from equipoise.studies.blas_levels import BLAS

KINDS: Mapping[str, tuple[Level, ...]] = MappingProxyType({"allocator": ALLOCATORS, "blas": BLAS})
"""``kind = "allocator"`` in a factor takes its levels from here."""

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        library: level.package
        for levels in KINDS.values()
        for level in levels
        for library in level.preload
        if level.package is not None
    }
)
"""The Debian package of a library, by its file name."""
