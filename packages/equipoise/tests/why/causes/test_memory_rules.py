"""Causes in how memory is got, touched and given back."""

from __future__ import annotations

from msgspec.structs import replace

from packages.equipoise.tests.why.causes.example_differences import (
    allocations,
    assert_first,
    blocks,
    calls,
    cause_ids,
    change,
    difference_with,
    faults,
    first,
    found_by,
    function,
)

CHURN = difference_with(
    entry_points={
        "page_fault": change(0.0, 0.6, 0.1),
        "munmap": change(0.0, 0.2, 0.1),
        "mmap": change(0.0, 0.1, 0.1),
    },
    calls={"munmap": calls(1, 8001), "mmap": calls(8, 8008)},
    faults=faults(60, 72_060),
    allocations=allocations(blocks(35_600, 8000, 8000), blocks(64, 9000, 9000)),
)

GIVEN_BACK = difference_with(
    entry_points={"page_fault": change(0.0, 0.7, 0.1), "madvise": change(0.0, 0.2, 0.1)},
    calls={"madvise": calls(0, 1500, typical_bytes=262_144)},
    faults=faults(100, 96_000, by="fill"),
)

SMALL_PAGES = difference_with(
    entry_points={"page_fault": change(0.1, 0.9, 0.1)},
    calls={"mmap": calls(9, 9), "madvise": calls(1, 1)},
    faults=faults(118, 32_800, by="fill"),
    resources={"max_rss_bytes": change(135e6, 135e6)},
)


def test_blocks_returned_at_every_free_are_described_by_their_size() -> None:
    names = {"syscall": "munmap", "function": "asker"}
    counts = {"baseline": 1.0, "candidate": 8001.0}
    assert_first(CHURN, "blocks_returned_at_free", size_bytes=35_600, calls=counts, **names)
    # The page faults of these blocks count once.
    assert cause_ids(CHURN) == ["blocks_returned_at_free"]


def test_the_heap_that_shrinks_at_every_free_is_the_same_cause() -> None:
    shrinking = replace(
        CHURN, entry_points={"brk": change(0.0, 0.5, 0.1)}, calls={"brk": calls(3, 16_003)}
    )
    assert first(shrinking).evidence["syscall"] == "brk"


def test_mappings_of_the_program_itself_are_no_blocks() -> None:
    direct = replace(CHURN, allocations=allocations(blocks(64, 9000, 9000)))
    assert not found_by("blocks_returned_at_free", direct)
    assert "more_system_calls" in cause_ids(direct)


def test_far_fewer_calls_than_blocks_are_not_every_free() -> None:
    rarely = replace(CHURN, calls={"munmap": calls(1, 801)})
    assert not found_by("blocks_returned_at_free", rarely)


def test_advice_that_causes_page_faults_names_the_touching_function() -> None:
    assert_first(GIVEN_BACK, "memory_given_back", syscall="madvise", function="fill")
    assert cause_ids(GIVEN_BACK) == ["memory_given_back"]


def test_advice_without_page_faults_is_more_system_calls() -> None:
    quiet = replace(GIVEN_BACK, faults=faults(100, 100))
    assert not found_by("memory_given_back", quiet)
    assert first(quiet).cause == "more_system_calls"


def test_the_same_memory_in_small_pages() -> None:
    assert_first(SMALL_PAGES, "huge_pages_off", function="fill")


def test_more_memory_is_not_smaller_pages() -> None:
    more = replace(SMALL_PAGES, resources={"max_rss_bytes": change(1e6, 135e6)})
    assert not found_by("huge_pages_off", more)
    assert first(more).cause == "page_faults"


def test_memory_that_is_mapped_again_is_not_smaller_pages() -> None:
    remapped = replace(SMALL_PAGES, calls={"mmap": calls(9, 900)})
    assert not found_by("huge_pages_off", remapped)


def test_page_faults_of_unnamed_code_belong_to_its_caller() -> None:
    unknown = function("(unknown)", "libc.so.6", "unknown")
    fill = function("fill")
    difference = replace(
        SMALL_PAGES,
        resources={},
        faults=replace(faults(118, 32_800), by_function={unknown: change(0, 32_000)}),
        callers={unknown: (fill, function("main"), function("_start"))},
    )
    assert first(difference).evidence["function"] == "fill"


def test_more_blocks_are_a_cause_where_the_allocator_takes_the_time() -> None:
    busy = difference_with(
        functions={function("malloc", "libc.so.6"): change(0.1, 0.7, 0.1)},
        allocations=allocations(blocks(48, 1000, 1_000_000)),
    )
    assert_first(busy, "more_allocations", size_bytes=48)
    idle = replace(busy, functions={function("work"): change(0.1, 0.7, 0.1)})
    assert cause_ids(idle) == ["more_time_in_function"]
