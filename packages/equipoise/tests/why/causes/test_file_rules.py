"""Causes in how files, pipes and paths are used."""

from __future__ import annotations

from msgspec.structs import replace

from packages.equipoise.tests.why.causes.example_differences import (
    assert_first,
    calls,
    cause_ids,
    change,
    difference_with,
    file,
    found_by,
    wait,
)

LINES = difference_with(
    entry_points={"write": change(0.01, 0.9, 0.1)},
    calls={"write": calls(879, 150_000, typical_bytes=24)},
    files={
        "/tmp/lines": file(writes=change(0, 150_000), bytes_written=change(0, 3.6e6)),
        "(closed before it could be looked up)": file(
            writes=change(879, 0), bytes_written=change(3.6e6, 0)
        ),
    },
)

SYNCS = difference_with(
    entry_points={"fsync": change(0.0, 0.1, 0.05)},
    waits={wait("fsync", "fsync"): change(0.0, 0.8, 0.1)},
    calls={"fsync": calls(1, 301)},
    files={"/tmp/records": file(syncs=change(1, 301), seconds=change(0.01, 0.9))},
)

COLD = difference_with(
    entry_points={"read": change(0.1, 0.3, 0.1)},
    waits={wait("read", "read"): change(0.0, 0.7, 0.1)},
    calls={"read": calls(1026, 1026)},
    files={"/data/large": file(reads=change(1025, 1025), seconds=change(0.1, 0.9))},
    resources={"block_reads": change(0, 32_768)},
)

ABSENT = difference_with(
    entry_points={"newfstatat": change(0.1, 0.9, 0.1)},
    calls={"newfstatat": calls(20_002, 200_002, errors={"ENOENT": change(20_000, 200_000)})},
)

MESSAGES = difference_with(
    entry_points={"write": change(0.0, 0.5, 0.1), "read": change(0.0, 0.3, 0.1)},
    calls={"write": calls(16, 65_536), "read": calls(18, 14_000)},
    files={"pipe": file(writes=change(16, 65_536), reads=change(18, 14_000))},
)


def test_tiny_writes_are_named_with_their_file_and_size() -> None:
    assert_first(LINES, "tiny_writes", syscall="write", file="/tmp/lines", size_bytes=24)
    assert cause_ids(LINES) == ["tiny_writes"]


def test_more_lines_are_more_calls_and_not_tiny_ones() -> None:
    lines = file(writes=change(15_000, 150_000), bytes_written=change(0.36e6, 3.6e6))
    more = replace(LINES, files={"/tmp/lines": lines})
    assert not found_by("tiny_writes", more)
    assert_first(more, "more_system_calls")


def test_large_writes_are_not_tiny() -> None:
    lines = file(writes=change(879, 150_000), bytes_written=change(3.6e9, 3.6e9))
    assert not found_by("tiny_writes", replace(LINES, files={"/tmp/lines": lines}))


def test_unnamed_file_is_null_with_a_reason() -> None:
    unnamed = file(writes=change(879, 150_000), bytes_written=change(3.6e6, 3.6e6))
    nameless = replace(LINES, files={"(closed before it could be looked up)": unnamed})
    cause = assert_first(nameless, "tiny_writes", file=None)
    assert "closed" in cause.evidence["file_unknown_because"]


def test_tiny_reads_are_named_by_their_call() -> None:
    difference = difference_with(
        entry_points={"read": change(0.0, 0.9, 0.1)},
        calls={"read": calls(63, 250_001, typical_bytes=1)},
        files={"/data/text": file(reads=change(63, 250_001), bytes_read=change(250e3, 250e3))},
    )
    assert_first(difference, "tiny_reads", syscall="read", file="/data/text")


def test_syncs_include_the_work_and_the_waiting() -> None:
    cause = assert_first(SYNCS, "sync_per_record", syscall="fsync", file="/tmp/records")
    assert cause.seconds is not None
    assert 0.89 < cause.seconds < 0.91
    assert cause_ids(SYNCS) == ["sync_per_record"]


def test_equally_many_slower_syncs_are_waiting() -> None:
    longer = replace(SYNCS, calls={"fsync": calls(300, 300)})
    assert not found_by("sync_per_record", longer)
    assert_first(longer, "waiting")


def test_a_file_that_comes_from_the_disk_is_cold() -> None:
    read = {"baseline": 0.0, "candidate": 32_768 * 512.0}
    assert_first(COLD, "cold_file", file="/data/large", syscall="read", bytes_from_disk=read)


def test_mapped_cold_file_is_described_by_the_function_that_touches_it() -> None:
    mapped = replace(
        COLD,
        entry_points={"page_fault": change(0.1, 0.2, 0.05)},
        waits={wait("page_fault", "scan"): change(0.0, 0.7, 0.1)},
        calls={},
        files={},
        resources={"block_reads": change(0, 32_768), "major_faults": change(0, 1000)},
    )
    assert_first(mapped, "cold_file", function="scan", syscall=None)


def test_reads_that_wait_without_the_disk_are_not_cold() -> None:
    assert not found_by("cold_file", replace(COLD, resources={"block_reads": change(0, 0)}))


def test_blocks_read_without_waiting_are_no_cause() -> None:
    assert not found_by("cold_file", replace(COLD, waits={wait("fsync"): change(0.0, 0.7, 0.1)}))


def test_long_calls_replace_missing_waits() -> None:
    unseen = replace(COLD, waits={}, calls={"read": calls(1026, 1026, change(0.01, 0.8, 0.1))})
    assert_first(unseen, "cold_file")
    short = replace(unseen, calls={"read": calls(900_000, 900_000, change(0.1, 0.9, 0.1))})
    assert not found_by("cold_file", short)


def test_look_ups_report_the_number_of_failures() -> None:
    failures = {"baseline": 20_000, "candidate": 200_000}
    assert_first(ABSENT, "path_look_ups", syscall="newfstatat", not_found=failures)


def test_files_that_are_opened_are_not_searched() -> None:
    opened = difference_with(
        entry_points={"openat": change(0.1, 0.9, 0.1)}, calls={"openat": calls(20, 9000)}
    )
    assert not found_by("path_look_ups", opened)
    assert_first(opened, "more_system_calls")
    sought = replace(opened, calls={"openat": calls(20, 9000, errors={"ENOENT": change(0, 8900)})})
    assert_first(sought, "path_look_ups")


def test_messages_through_a_pipe_are_no_tiny_writes() -> None:
    assert_first(MESSAGES, "messages", file="pipe", syscall="write")
    assert cause_ids(MESSAGES) == ["messages"]


def test_reads_of_the_unnamed_end_of_a_pipe_are_messages() -> None:
    ended = file(reads=change(18, 11_612), bytes_read=change(990e3, 990e3))
    pipe = file(writes=change(16, 65_536))
    unnamed = {"pipe": pipe, "(closed before it could be looked up)": ended}
    of_both_ends = replace(MESSAGES, files=unnamed)
    assert not found_by("tiny_reads", of_both_ends)
    assert_first(of_both_ends, "messages", file="pipe", syscall="write")


def test_pipe_with_unchanged_use_is_no_cause() -> None:
    quiet = replace(MESSAGES, files={"pipe": file(writes=change(16, 16))})
    assert not found_by("messages", quiet)
