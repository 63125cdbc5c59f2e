"""Allocators as levels, by name (reference: systems.md §3).

glibc's are its own allocator under other thresholds: from that size on a block comes from the
kernel by mmap and goes back to it when it is freed. To set one of them stops the threshold from
rising by itself, as it does by default. The others are libraries that are preloaded.
"""

from __future__ import annotations

from equipoise.model.study import Level


def _glibc(name: str, tunables: str, summary: str) -> Level:
    settings = ":".join(f"glibc.malloc.{one}" for one in tunables.split())
    return Level(name, environment={"GLIBC_TUNABLES": settings}, summary=summary)


ALLOCATORS = (
    Level("glibc", summary="the C library's own, as it is"),
    # The threshold alone does nothing for what comes from the top of the heap.
    _glibc("glibc_15k", "mmap_threshold=15360 top_pad=0", "as Mac OS X did: from 15 KB on"),
    _glibc("glibc_128k", "mmap_threshold=131072", "Doug Lea's old default: from 128 KB on"),
    _glibc("glibc_256k", "mmap_threshold=262144", "Doug Lea's later default: from 256 KB on"),
    _glibc(
        "glibc_never",
        "mmap_max=0 trim_threshold=9223372036854775807",
        "no block by mmap, nothing given back",
    ),
    Level(
        "dlmalloc",
        preload=("libequipoise_dlmalloc.so",),
        summary="Doug Lea's malloc, the port in crates/preload",
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
