"""The allocators of `equipoise.design.allocators` as levels, and glibc's under other thresholds."""

from __future__ import annotations

from equipoise.design.allocators import (
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
