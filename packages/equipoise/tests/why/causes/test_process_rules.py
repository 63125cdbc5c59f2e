"""Causes in processes, threads, and system calls of any kind."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from packages.equipoise.tests.why.causes.example_differences import (
    assert_first,
    calls,
    cause_ids,
    change,
    difference_with,
    first,
    found_by,
    function,
    wait,
)

FORKS = difference_with(
    processes=change(41, 41),
    calls={"clone": calls(40, 40, change(0.01, 0.6, 0.1))},
    waits={wait("kernel_wait4", "wait4"): change(0.01, 0.3, 0.1)},
)

MANY = difference_with(
    processes=change(1, 151),
    programs=change(1, 151),
    calls={"execve": calls(0, 150), "vfork": calls(0, 150)},
    waits={wait("kernel_wait4", "wait4"): change(0.0, 0.6, 0.1)},
    entry_points={"page_fault": change(0.0, 0.2, 0.1)},
    faults=None,
)

ALONE = difference_with(
    threads=change(2, 1),
    on_processor=change(2.0, 2.01, 0.05),
    functions={function("work"): change(2.0, 2.0, 0.05)},
)


def test_slower_forks_mean_a_large_process() -> None:
    assert_first(FORKS, "fork_of_large_process", syscall="clone")


def test_samples_inside_the_fork_are_preferred_to_its_own_seconds() -> None:
    sampled = replace(FORKS, entry_points={"clone": change(0.0, 0.5, 0.1)}, waits={})
    assert first(sampled).seconds == pytest.approx(0.5)


def test_more_forks_are_not_slower_forks() -> None:
    more = replace(FORKS, calls={"clone": calls(1, 150, change(0.01, 1.5, 0.1))})
    assert not found_by("fork_of_large_process", more)


def test_many_programs_are_named_by_execve() -> None:
    programs = {"baseline": 1, "candidate": 151}
    assert_first(MANY, "many_processes", syscall="execve", programs=programs)
    assert cause_ids(MANY) == ["many_processes"]


def test_processes_that_compute_are_not_tiny() -> None:
    busy = replace(
        MANY,
        processes=change(1, 3),
        on_processor=change(0.1, 1.1),
        functions={function("work"): change(0.1, 1.1, 0.1)},
    )
    assert not found_by("many_processes", busy)
    assert first(busy).cause == "more_time_in_function"


def test_the_same_work_on_one_thread() -> None:
    cause = assert_first(ALONE, "one_thread", threads={"baseline": 2, "candidate": 1})
    assert cause.share_of_gap == pytest.approx(0.99)


def test_more_work_on_one_thread_is_more_time_in_function() -> None:
    more = replace(
        ALONE,
        on_processor=change(1.0, 2.0, 0.1),
        functions={function("work"): change(1.0, 2.0, 0.1)},
    )
    assert cause_ids(more) == ["more_time_in_function"]


def test_missing_idle_thread_is_no_cause() -> None:
    idle = replace(ALONE, on_processor=change(0.9, 0.91, 0.05), functions={})
    assert not found_by("one_thread", idle)


def test_fewer_threads_that_sleep_are_named_by_the_sleep() -> None:
    sleeping = replace(ALONE, waits={wait("clock_nanosleep"): change(0.0, 0.95, 0.05)})
    assert cause_ids(sleeping) == ["sleeping"]


def test_any_call_that_is_made_more_often() -> None:
    asking = difference_with(
        entry_points={"getppid": change(0.1, 0.9, 0.1)}, calls={"getppid": calls(10, 90)}
    )
    assert_first(asking, "more_system_calls", syscall="getppid")


def test_without_a_profile_the_calls_own_seconds_count() -> None:
    blind = difference_with(calls={"getppid": calls(10, 90, change(0.1, 0.7, 0.1))})
    assert first(blind).seconds == pytest.approx(0.6)
    hidden = replace(blind, entry_points={"kernel": change(0.1, 0.9, 0.1)})
    assert first(hidden).seconds == pytest.approx(0.6)


def test_equally_many_slower_calls() -> None:
    slow = difference_with(
        entry_points={"ioctl": change(0.1, 0.9, 0.1)}, calls={"ioctl": calls(10, 10)}
    )
    assert first(slow).cause == "slower_system_calls"
    assert cause_ids(replace(slow, entry_points={"ioctl": change(0.1, 0.9, 1.0)})) == []
