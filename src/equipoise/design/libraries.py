"""Libraries that can replace others: allocators by a preload, BLAS by a search path.

An allocator replaces that of the C library. glibc's own settings are tunables (ld.so(8),
"Tunables"): from a size on, a block comes from the kernel by mmap and goes back to the kernel when
it is freed. To set one of them stops that size from rising by itself, as it does by default
(reference: systems.md §3).

All BLAS libraries provide the same soname, each in a folder of its own, so ``LD_LIBRARY_PATH``
chooses (reference: Debian's alternatives of libblas.so.3). Whether it did is seen in the process,
which must map a library from that folder.
"""

from __future__ import annotations

import platform
from pathlib import Path

from msgspec import Struct, field

TUNABLES_VARIABLE = "GLIBC_TUNABLES"


class Allocator(Struct, frozen=True):
    """An allocator that is preloaded."""

    name: str
    library: str
    """File name."""
    summary: str
    package: str | None = None
    """Debian package; ``None`` for our own library."""


PRELOADED = (
    Allocator(
        "dlmalloc",
        "libequipoise_dlmalloc.so",
        "Doug Lea's malloc, the port in crates/interpose/dlmalloc",
    ),
    Allocator("jemalloc", "libjemalloc.so.2", "FreeBSD's", "libjemalloc2"),
    Allocator("mimalloc", "libmimalloc.so.2", "Microsoft's", "libmimalloc2.0"),
    Allocator(
        "tcmalloc", "libtcmalloc_minimal.so.4", "Google's, of gperftools", "libtcmalloc-minimal4"
    ),
)

NEVER_GIVEN_BACK = {
    "glibc.malloc.mmap_max": "0",
    "glibc.malloc.trim_threshold": str(2**63 - 1),
}
"""Tunables: no block by mmap, and none given back from the top of the heap."""


def tunables_text(tunables: dict[str, str]) -> str:
    """Return tunables as the text of ``GLIBC_TUNABLES``."""
    return ":".join(f"{name}={value}" for name, value in tunables.items())


def tunables_of(text: str) -> dict[str, str]:
    """Return the tunables in a text of ``GLIBC_TUNABLES``; like glibc, skip what is no setting."""
    pairs = (setting.partition("=") for setting in text.split(":"))
    return {name: value for name, equals, value in pairs if name and equals}


LIBRARY_FOLDERS = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
SONAME = "libblas.so.3"


_AVX2 = ("avx2", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")


class CoreType(Struct, frozen=True):
    """A kind of processor that a library can be set to."""

    value: str
    """Value of the library's ``core_variable``."""
    reported_name: str
    """Name that the library prints for its choice."""
    instructions: tuple[str, ...]
    """Instructions that the CPU needs, by the names of ``/proc/cpuinfo``; without them a program
    that uses the library ends with SIGILL."""


class Blas(Struct, frozen=True):
    """A BLAS library, and the variable that sets its kind of processor."""

    name: str
    package: str
    """Debian package."""
    folder: Path
    """Folder of its ``libblas.so.3``."""
    summary: str
    core_variable: str | None = None
    core_types: dict[str, CoreType] = field(default_factory=dict)
    """Core types by the name of a processor."""

    def is_installed(self) -> bool:
        """Return whether its folder has the library."""
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
        # Numbers of BLIS 0.9, as BLIS_ARCH_DEBUG=1 names them.
        core_types={
            "haswell": CoreType("3", "haswell", _AVX2),
            "zen": CoreType("8", "zen", _AVX2),
            "zen2": CoreType("7", "zen2", _AVX2),
            "zen3": CoreType("6", "zen3", _AVX2),
            "skylakex": CoreType("0", "skx", _AVX512),
        },
    ),
)
"""Every BLAS library that is a level of a study."""
