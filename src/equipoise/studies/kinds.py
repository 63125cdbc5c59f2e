"""Factors whose levels have names of their own: allocators and BLAS libraries."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from equipoise.design.libraries import (
    BLAS_LIBRARIES,
    NEVER_GIVEN_BACK,
    PRELOADED,
    TUNABLES_VARIABLE,
    tunables_text,
)
from equipoise.model.study import Level


def _glibc(name: str, tunables: dict[str, str], summary: str) -> Level:
    return Level(name, environment={TUNABLES_VARIABLE: tunables_text(tunables)}, summary=summary)


def _from(size: int, **others: int) -> dict[str, str]:
    settings = {"mmap_threshold": size, **others}
    return {f"glibc.malloc.{name}": str(value) for name, value in settings.items()}


ALLOCATORS = (
    Level("glibc", summary="the C library's own, as it is"),
    # The threshold alone does nothing for what comes from the top of the heap.
    _glibc("glibc_15k", _from(15360, top_pad=0), "as Mac OS X did: from 15 KB on"),
    _glibc("glibc_128k", _from(131072), "Doug Lea's old default: from 128 KB on"),
    _glibc("glibc_256k", _from(262144), "Doug Lea's later default: from 256 KB on"),
    _glibc("glibc_never", NEVER_GIVEN_BACK, "no block by mmap, nothing given back"),
    *(
        Level(one.name, preload=(one.library,), package=one.package, summary=one.summary)
        for one in PRELOADED
    ),
)

BLAS = tuple(
    Level(
        library.name,
        library_path=(str(library.folder),),
        package=library.package,
        summary=library.summary,
    )
    for library in BLAS_LIBRARIES
)
"""BLAS libraries that detect the CPU themselves."""

TUNED_BLAS = tuple(
    Level(
        f"{library.name}_{name}",
        environment={library.core_variable: core.value},
        library_path=(str(library.folder),),
        instructions=core.instructions,
        tuned_for=(core.reported_name,),
        package=library.package,
        summary=f"{library.name}, told that the CPU is of the type {core.reported_name}",
    )
    for library in BLAS_LIBRARIES
    if library.core_variable is not None
    for name, core in library.core_types.items()
)
"""BLAS libraries whose core type is set: ``openblas_skylakex``."""


class Kind(Struct, frozen=True):
    """Levels that have names."""

    usual: tuple[Level, ...]
    """Levels of a factor of this kind that names none."""
    others: tuple[Level, ...] = ()
    """Levels that can be named beside them."""

    @property
    def choices(self) -> tuple[Level, ...]:
        """All that can be named."""
        return self.usual + self.others


KINDS: Mapping[str, Kind] = {"allocator": Kind(ALLOCATORS), "blas": Kind(BLAS, TUNED_BLAS)}
"""``kind = "allocator"`` in a factor takes its levels from here."""

PACKAGES: Mapping[str, str] = {
    library: level.package
    for kind in KINDS.values()
    for level in kind.choices
    for library in level.preload
    if level.package is not None
}
"""The Debian package of a library, by its file name."""
