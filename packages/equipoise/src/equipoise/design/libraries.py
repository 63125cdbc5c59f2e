"""Replaceable libraries as levels of factors: memory allocators, and BLAS libraries.

Allocators: a library in ``LD_PRELOAD`` replaces the allocator of the C library. The allocator of
the C library has settings, the tunables (ld.so(8), "Tunables"). A request for more bytes than the
tunable ``mmap_threshold`` gets new memory from the kernel. This memory returns to the kernel when
it is freed (docs/reference/study.md#allocators).

BLAS: each library has its own folder, and all libraries have the same file name. So
``LD_LIBRARY_PATH`` chooses a library.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from equipoise.model.plan import TUNABLES_VARIABLE
from equipoise.model.study import Level

PRELOADS = (
    Level(
        "dlmalloc",
        preload=("libequipoise_dlmalloc.so",),
        summary="Doug Lea's malloc, the port in packages/studies/crates/dlmalloc",
    ),
    Level("jemalloc", preload=("libjemalloc.so.2",), package="libjemalloc2", summary="FreeBSD's"),
    Level(
        "mimalloc", preload=("libmimalloc.so.2",), package="libmimalloc2.0", summary="Microsoft's"
    ),
    Level(
        "tcmalloc",
        preload=("libtcmalloc_minimal.so.4",),
        package="libtcmalloc-minimal4",
        summary="Google's, of gperftools",
    ),
)
"""Allocators that are preloaded; Equipoise's own library has no Debian package."""
KEEP_FREED_MEMORY = {
    "glibc.malloc.mmap_max": "0",
    "glibc.malloc.trim_threshold": str(2**63 - 1),
}
"""Tunables with which the process keeps all freed memory."""


def tunables_text(tunables: dict[str, str]) -> str:
    """Return tunables as a value of ``GLIBC_TUNABLES``."""
    return ":".join(f"{name}={value}" for name, value in tunables.items())


def tunables_of(text: str) -> dict[str, str]:
    """Return the valid tunables in a value of ``GLIBC_TUNABLES``; glibc ignores the others."""
    settings = (setting.partition("=") for setting in text.split(":"))
    return {name: value for name, equals, value in settings if name and equals}


def _glibc_level(name: str, tunables: dict[str, str], summary: str) -> Level:
    return Level(name, environment={TUNABLES_VARIABLE: tunables_text(tunables)}, summary=summary)


def _tunables(mmap_threshold: int, **other_tunables: int) -> dict[str, str]:
    settings = {"mmap_threshold": mmap_threshold, **other_tunables}
    return {f"glibc.malloc.{name}": str(value) for name, value in settings.items()}


ALLOCATORS = (
    Level("glibc", summary="the C library's own, unchanged"),
    # Without top_pad=0, requests above the threshold could use free memory of the heap.
    _glibc_level("glibc_15k", _tunables(15360, top_pad=0), "as Mac OS X did: from 15 KB on"),
    _glibc_level("glibc_128k", _tunables(131072), "Doug Lea's old default: from 128 KB on"),
    _glibc_level("glibc_256k", _tunables(262144), "Doug Lea's later default: from 256 KB on"),
    _glibc_level("glibc_never", KEEP_FREED_MEMORY, "no block by mmap, nothing given back"),
    *PRELOADS,
)
"""Allocators that can be levels of a study."""

LIBRARY_FOLDERS = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
"""Folder in which Debian has a folder for each BLAS library."""
SONAME = "libblas.so.3"
"""File name that all BLAS libraries have."""
_AVX2 = ("avx2", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")


class CoreType(Struct, frozen=True):
    """A type of processor for which a BLAS library can be tuned."""

    value: str
    """Value of the library's ``core_variable`` for this type."""
    reported_name: str
    """Name that the library prints for this type."""
    instructions: tuple[str, ...]
    """Instructions that the library needs, by their names in ``/proc/cpuinfo``."""


class Blas(Struct, frozen=True):
    """A BLAS library, and the environment variable that chooses a type of processor."""

    name: str
    package: str
    """Debian package."""
    folder: Path
    """Folder with its ``libblas.so.3``."""
    summary: str
    core_variable: str | None = None
    """Environment variable that chooses the type of processor."""
    core_types: dict[str, CoreType] = field(default_factory=dict)
    """Types of processors, by name of the processor."""

    def is_installed(self) -> bool:
        """Return whether the library is in its folder."""
        return (self.folder / SONAME).exists()


BLAS_LIBRARIES = (
    Blas("reference", "libblas3", LIBRARY_FOLDERS / "blas", "netlib's, in Fortran, untuned"),
    Blas("atlas", "libatlas3-base", LIBRARY_FOLDERS / "atlas", "tuned when it was built, generic"),
    Blas(
        "openblas",
        "libopenblas0-pthread",
        LIBRARY_FOLDERS / "openblas-pthread",
        "the heir of Goto's BLAS",
        core_variable="OPENBLAS_CORETYPE",
        core_types={
            "haswell": CoreType("Haswell", "Haswell", _AVX2),
            "zen": CoreType("Zen", "Zen", _AVX2),
            "skylakex": CoreType("SkylakeX", "SkylakeX", _AVX512),
        },
    ),
    Blas(
        "blis",
        "libblis4-pthread",
        LIBRARY_FOLDERS / "blis-pthread",
        "a framework of few kernels, from Texas",
        core_variable="BLIS_ARCH_TYPE",
        # BLIS 0.9 prints these numbers with BLIS_ARCH_DEBUG=1.
        core_types={
            "haswell": CoreType("3", "haswell", _AVX2),
            "zen": CoreType("8", "zen", _AVX2),
            "zen2": CoreType("7", "zen2", _AVX2),
            "zen3": CoreType("6", "zen3", _AVX2),
            "skylakex": CoreType("0", "skx", _AVX512),
        },
    ),
)
"""BLAS libraries that can be levels of a study."""
BLAS = tuple(
    Level(
        library.name,
        library_path=(str(library.folder),),
        package=library.package,
        summary=library.summary,
    )
    for library in BLAS_LIBRARIES
)
"""Levels in which BLAS libraries choose the type of processor themselves."""
TUNED_BLAS = tuple(
    Level(
        f"{library.name}_{name}",
        environment={library.core_variable: core.value},
        library_path=(str(library.folder),),
        instructions=core.instructions,
        tuned_for=(core.reported_name,),
        package=library.package,
        summary=f"{library.name}, set for a CPU of the type {core.reported_name}",
    )
    for library in BLAS_LIBRARIES
    if library.core_variable is not None
    for name, core in library.core_types.items()
)
"""Levels with a BLAS library and a fixed type of processor, such as ``openblas_skylakex``."""


class FactorKind(Struct, frozen=True):
    """Predefined levels of one kind of factor."""

    default_levels: tuple[Level, ...]
    """Levels of a factor that does not name its levels."""
    other_levels: tuple[Level, ...] = ()
    """Further levels that a factor can name."""

    @property
    def all_levels(self) -> tuple[Level, ...]:
        """All levels that a factor of this kind can name."""
        return self.default_levels + self.other_levels


KINDS: Mapping[str, FactorKind] = {
    "allocator": FactorKind(ALLOCATORS),
    "blas": FactorKind(BLAS, TUNED_BLAS),
}
"""Kinds of factors by name; a study chooses one with ``kind = "allocator"``."""
PACKAGES: Mapping[str, str] = {
    library: level.package
    for kind in KINDS.values()
    for level in kind.all_levels
    for library in level.preload
    if level.package is not None
}
"""Debian package of each library, by file name of the library."""
