"""Allocators that take the place of the C library's, and its own under other settings.

glibc's settings are tunables (ld.so(8), "Tunables"): from a size on a block comes from the kernel
by mmap and goes back to it when it is freed. To set one of them stops that size from rising by
itself, as it does by default (reference: systems.md §3).
"""

from __future__ import annotations

from dataclasses import dataclass

TUNABLES_VARIABLE = "GLIBC_TUNABLES"


@dataclass(frozen=True, slots=True)
class Allocator:
    """A library that is preloaded."""

    name: str
    library: str
    """Its file name."""
    summary: str
    package: str | None = None
    """The Debian package that has it; ``None`` for our own."""


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
"""No block by mmap, and none given back from the top of the heap."""


def tunables_text(tunables: dict[str, str]) -> str:
    """As ``GLIBC_TUNABLES`` holds them."""
    return ":".join(f"{name}={value}" for name, value in tunables.items())


def tunables_of(text: str) -> dict[str, str]:
    """What a value of ``GLIBC_TUNABLES`` sets; what is no setting is left out, as glibc does."""
    pairs = (setting.partition("=") for setting in text.split(":"))
    return {name: value for name, equals, value in pairs if name and equals}
