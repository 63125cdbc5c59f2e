"""Which functions belong to an allocator, and not to who asks it for memory."""

from __future__ import annotations

import re

from equipoise.why.differences.result import Function

_ALLOCATOR_FILE = re.compile(
    r"lib(equipoise_recorder|equipoise_dlmalloc|jemalloc|tcmalloc|mimalloc|scudo|tbbmalloc|snmalloc"
    r"|rpmalloc|hoard)[\w.-]*"
)
"""Shared libraries that hold nothing else."""

_C_LIBRARY = re.compile(r"(libc|ld-linux|ld-musl)[\w.-]*")

_FACE = frozenset(
    "malloc calloc realloc reallocarray free cfree memalign posix_memalign aligned_alloc valloc "
    "pvalloc malloc_usable_size".split()
)
"""malloc(3) and its like, by whichever allocator they are."""

_INSIDE_C_LIBRARY = re.compile(
    r"_int_\w+|sysmalloc\w*|systrim\w*|unlink_chunk\w*|tcache_\w+|malloc_\w+|arena_\w+|heap_\w+"
    r"|(__libc_|__GI___libc_|__GI___|__)(malloc|calloc|realloc|free|memalign)\w*"
)

_CPLUSPLUS_AND_RUST = (
    "operator new",
    "operator delete",
    "std::__new_allocator<",
    "std::allocator<",
    "std::allocator_traits<",
    "__gnu_cxx::new_allocator<",
    "__gnu_cxx::__alloc_traits<",
    "__rust_",
    "__rdl_",
    "alloc::alloc::",
    "<alloc::alloc::",
    "alloc::raw_vec::",
    "std::alloc::",
)
"""How the names begin of what the languages' own libraries put before it."""


def is_of_allocator(function: Function) -> bool:
    """Whether it allocates for others, by its file or its name."""
    if _ALLOCATOR_FILE.fullmatch(function.module) or function.name in _FACE:
        return True
    if function.name.startswith(_CPLUSPLUS_AND_RUST):
        return True
    inside = _C_LIBRARY.fullmatch(function.module) is not None
    return inside and _INSIDE_C_LIBRARY.fullmatch(function.name) is not None
