"""Causes in which threads wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.differences.changes import Locking
from packages.equipoise.tests.why.causes.example_differences import (
    assert_first,
    calls,
    cause_ids,
    change,
    difference_with,
    file,
    first,
    found_by,
    function,
    lock,
    wait,
)

SLEEP = difference_with(
    waits={wait("clock_nanosleep", "clock_nanosleep"): change(0.0, 0.95, 0.1)},
    calls={"clock_nanosleep": calls(0, 60)},
)

LOCK = difference_with(
    threads=change(5, 5),
    waits={wait("futex", "(unknown)"): change(0.1, 2.0, 0.5)},
    calls={"futex": calls(2, 182)},
    locks={
        "gate in /usr/bin/program": lock(change(0, 90, 10), change(0.0, 1.5, 0.5)),
        "anonymous memory": lock(change(1, 1), change(1.0, 2.0, 0.1)),
    },
)


def test_sleep_is_named_by_its_call() -> None:
    counts = {"baseline": 0.0, "candidate": 60.0}
    assert_first(SLEEP, "sleeping", syscall="clock_nanosleep", calls=counts)


def test_polling_without_descriptors_is_sleep() -> None:
    polling = difference_with(waits={wait("poll", "poll"): change(0.0, 0.9, 0.1)})
    assert first(polling).cause == "sleeping"
    answered = replace(polling, files={"socket": file()})
    assert first(answered).cause == "waiting"


def test_uncertain_sleep_is_not_named() -> None:
    unsure = difference_with(waits={wait("clock_nanosleep"): change(0.0, 0.9, 1.0)})
    assert cause_ids(unsure) == []


def test_thread_that_sleeps_while_another_computes_is_no_cause() -> None:
    ticking = replace(
        SLEEP,
        threads=change(2, 2),
        on_processor=change(1.0, 1.98),
        functions={function("work"): change(1.0, 1.98, 0.1)},
    )
    assert cause_ids(ticking) == ["more_time_in_function"]


def test_one_thread_cannot_compute_and_sleep_at_once() -> None:
    both = replace(
        SLEEP,
        on_processor=change(1.0, 1.9),
        functions={function("work"): change(1.0, 1.9, 0.1)},
    )
    assert set(cause_ids(both)) == {"more_time_in_function", "sleeping"}


def test_a_contended_lock_is_named_and_explains_no_more_than_the_gap() -> None:
    cause = assert_first(LOCK, "lock_waits", lock="gate", module="/usr/bin/program")
    assert cause.seconds == pytest.approx(1.0)
    assert cause.share_of_gap == pytest.approx(1.0)


LOCK_FUNCTION = function("pthread_mutex_lock", "libc.so.6")
# Eight threads on two processors: the work at the lock alone is more than the gap.
BUSY_LOCK = difference_with(
    threads=change(9, 9),
    on_processor=change(0.0, 2.0, 0.5),
    entry_points={"futex": change(0.0, 0.9, 1.0)},
    functions={LOCK_FUNCTION: change(0.0, 0.9, 0.1), function("count"): change(0.0, 0.2, 0.1)},
    callers={function("count"): (function("worker"),)},
    calls={"futex": calls(2, 86_268)},
    locks={"gate in /usr/bin/program": lock(change(0, 31_000, 40_000), change(0.0, 1.5, 0.5))},
    locking=Locking((LOCK_FUNCTION,), {function("count"): change(0.0, 3.0)}, LOCK_FUNCTION.name),
)


def test_lock_with_more_work_than_the_gap_is_named_once() -> None:
    certain = replace(BUSY_LOCK.locks["gate in /usr/bin/program"], more_in_each_run=True)
    contended = replace(BUSY_LOCK, locks={"gate in /usr/bin/program": certain})
    cause = assert_first(contended, "lock_waits", function="count")
    assert cause.summary.startswith(
        "threads wait for a lock (futex): gate in program, 31,000 waits instead of 0, 86,268 futex "
        "calls instead of 2, 1.50 s of waiting over all threads, called by count() (100 %): 0.9 s"
    )
    # All of the work at the lock is the lock's: no second cause says it again.
    assert "pthread_mutex_lock" not in "".join(
        cause.summary for cause in suggested_causes(contended)[1:]
    )


def test_waits_of_only_some_runs_are_no_lock() -> None:
    assert not found_by("lock_waits", BUSY_LOCK)


def test_waiting_for_a_condition_variable_is_not_called_a_lock() -> None:
    meeting = replace(LOCK, locking=Locking(lock_function="pthread_cond_wait"))
    assert first(meeting).summary.startswith("threads wait for each other (futex): gate in program")


def test_lock_on_the_heap_is_described_as_such() -> None:
    heap = replace(LOCK, locks={"[heap]": lock(change(1, 90), change(0.0, 1.5, 0.5))})
    cause = first(heap)
    assert "a lock on the heap without a name" in cause.summary
    assert cause.evidence["lock"] is None


def test_waiting_for_a_thread_that_takes_longer_is_no_lock() -> None:
    joined = replace(LOCK, locks={"anonymous memory": lock(change(1, 1), change(1.0, 2.0, 0.1))})
    assert not found_by("lock_waits", joined)


def test_a_lock_in_memory_without_a_name_is_named_by_the_function() -> None:
    nameless = replace(
        LOCK,
        waits={wait("futex", "pop"): change(0.1, 2.0, 0.5)},
        locks={"anonymous memory": lock(change(1, 90), change(0.0, 1.5, 0.5))},
    )
    assert_first(nameless, "lock_waits", lock=None, function="pop")


def test_waiting_for_a_computing_child_is_no_cause() -> None:
    parent = difference_with(
        processes=change(2, 2),
        on_processor=change(1.0, 2.0),
        functions={function("work"): change(1.0, 2.0, 0.1)},
        waits={wait("kernel_wait4", "wait4"): change(1.0, 2.0, 0.1)},
    )
    assert cause_ids(parent) == ["more_time_in_function"]


def test_unexplained_waiting_is_described_by_its_entry_point() -> None:
    server = difference_with(waits={wait("recvfrom", "answer"): change(0.1, 0.9, 0.1)})
    assert_first(server, "waiting", syscall="recvfrom", function="answer")


def test_waiting_counts_once_although_two_threads_wait() -> None:
    pair = replace(
        SLEEP,
        threads=change(2, 2),
        waits={**SLEEP.waits, wait("futex", "join"): change(0.0, 0.95, 0.1)},
    )
    assert cause_ids(pair) == ["sleeping"]
