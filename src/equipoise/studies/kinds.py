"""The kinds of factors whose levels have names of their own: one file each, one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from equipoise.model.study import Level
from equipoise.studies.allocator_levels import ALLOCATORS
from equipoise.studies.blas_levels import BLAS, TUNED_BLAS


@dataclass(frozen=True, slots=True)
class Kind:
    """Levels that have names."""

    usual: tuple[Level, ...]
    """What a factor of this kind has if it names none."""
    others: tuple[Level, ...] = ()
    """What can be named beside them."""

    @property
    def choices(self) -> tuple[Level, ...]:
        """All that can be named."""
        return self.usual + self.others


KINDS: Mapping[str, Kind] = MappingProxyType(
    {"allocator": Kind(ALLOCATORS), "blas": Kind(BLAS, TUNED_BLAS)}
)
"""``kind = "allocator"`` in a factor takes its levels from here."""

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        library: level.package
        for kind in KINDS.values()
        for level in kind.choices
        for library in level.preload
        if level.package is not None
    }
)
"""The Debian package of a library, by its file name."""
