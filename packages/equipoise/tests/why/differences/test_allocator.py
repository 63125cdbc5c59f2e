"""Who allocates for others, and who asks."""

from __future__ import annotations

import pytest

from equipoise.why.differences.allocations import is_or_calls_allocator
from equipoise.why.evidence.observer import Function


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("malloc", "libequipoise_recorder.so"),
        ("(unknown)", "libjemalloc.so.2"),
        ("mi_heap_malloc", "libmimalloc.so.2.0"),
        ("realloc", "libc.so.6"),
        ("_int_malloc", "libc.so.6"),
        ("__libc_calloc", "libc-2.36.so"),
        ("malloc_consolidate", "libc.so.6"),
        ("operator new(unsigned long)", "libstdc++.so.6.0.30"),
        ("operator delete[](void*)", "program"),
        ("std::__new_allocator<char>::allocate(unsigned long, void const*)", "program"),
        ("__rust_alloc", "program"),
        ("alloc::raw_vec::RawVec<T,A>::grow_one", "program"),
    ],
)
def test_functions_of_an_allocator_belong_to_it(name: str, module: str) -> None:
    assert is_or_calls_allocator(Function(name, module, "user"))


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("main", "program"),
        ("strdup", "libc.so.6"),
        ("malloc_table", "program"),
        ("freeze", "program"),
        ("std::vector<int>::push_back(int const&)", "program"),
        ("PyObject_Malloc", "libpython3.11.so.1.0"),
        ("_int_parse", "program"),
    ],
)
def test_callers_are_not_part_of_the_allocator(name: str, module: str) -> None:
    assert not is_or_calls_allocator(Function(name, module, "user"))
