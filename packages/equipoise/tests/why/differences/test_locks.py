"""Differences at locks: waits by place, the functions of locks, and their callers."""

from __future__ import annotations

import pytest

from equipoise.why.differences.changes import Difference
from equipoise.why.evidence.observer import Function, LockWaits
from equipoise.why.evidence.sources import Runs
from packages.equipoise.tests.why.differences.example_evidence import (
    calls,
    differs,
    sampled,
    system_calls,
)

UNNAMED = Function("(unknown)", "libc.so.6", "user")
"""An internal function of a C library without symbols."""
WORKING = sampled(
    {
        "main;count;pthread_mutex_lock@libc.so.6": 0.4,
        "main;count;pthread_mutex_lock@libc.so.6;(unknown)@libc.so.6": 0.1,
        "main;count;(unknown)@libc.so.6": 0.3,
        "main;count;(unknown)@libc.so.6;futex@kernel": 0.3,
        "main;count": 0.1,
    }
)
WAITING = sampled(
    {
        "main;count;pthread_mutex_lock@libc.so.6;(unknown)@libc.so.6;futex@kernel": 0.9,
        "main;read_all;pthread_mutex_lock@libc.so.6;(unknown)@libc.so.6;futex@kernel": 0.3,
        "main;(unknown)@libc.so.6;futex@kernel": 1.5,
        "main;sleep@libc.so.6;clock_nanosleep@kernel": 5.0,
    },
    "waits",
)
QUIET = sampled({"main;count": 0.1})


def contended(*waits: int) -> Difference:
    """A lock for which the slower condition waits this often, a run each, and the faster never."""
    runs = tuple(
        system_calls(calls("futex", 2 * count, 0.1), locks=(LockWaits("gate in a", count, 0.1),))
        for count in waits
    )
    return differs(system_calls=Runs((system_calls(),) * len(waits), runs))


def test_the_functions_of_a_lock_are_found_also_without_names() -> None:
    locking = differs(profile=Runs((QUIET, QUIET), (WORKING, WORKING))).locking
    assert {function.name for function in locking.functions} == {"pthread_mutex_lock", "(unknown)"}
    assert locking.lock_function == "pthread_mutex_lock"


def test_unnamed_code_that_is_mostly_outside_a_lock_is_not_part_of_it() -> None:
    copying = sampled(
        {"main;(unknown)@libc.so.6": 5.0, "main;count;pthread_mutex_lock@libc.so.6": 0.4}
    )
    locking = differs(profile=Runs((QUIET, QUIET), (copying, copying))).locking
    assert [function.name for function in locking.functions] == ["pthread_mutex_lock"]


def test_waiters_at_a_lock_are_functions_of_the_program_without_thread_joins() -> None:
    quiet = sampled({}, "waits")
    locking = differs(
        profile=Runs((QUIET, QUIET), (WORKING, WORKING)), waits=Runs((quiet,) * 2, (WAITING,) * 2)
    ).locking
    callers = {function.name: change.extra for function, change in locking.callers.items()}
    assert callers == {"count": pytest.approx(0.9), "read_all": pytest.approx(0.3)}


def test_without_locks_no_function_belongs_to_one() -> None:
    locking = differs(profile=Runs((QUIET, QUIET), (QUIET, QUIET))).locking
    assert (locking.functions, dict(locking.callers), locking.lock_function) == ((), {}, None)


def test_contention_that_differs_a_thousandfold_is_more_in_each_run() -> None:
    lock = contended(9, 9_723, 10_326).locks["gate in a"]
    assert not lock.waits.is_certain
    assert lock.more_in_each_run
    assert not contended(0, 9_723, 10_326).locks["gate in a"].more_in_each_run
