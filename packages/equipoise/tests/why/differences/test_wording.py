"""Where the extra time is, in words that say only what is certain."""

from __future__ import annotations

from equipoise.model.record import Trial
from equipoise.why.differences.wording import extra_time_clauses
from equipoise.why.evidence.observer import SampledStacks
from equipoise.why.evidence.sources import Runs
from packages.equipoise.tests.why.differences.example_evidence import (
    allocations,
    calls,
    differs,
    sampled,
    size_class,
    system_calls,
    trial,
    trials,
)


def in_the_kernel() -> Runs[Trial]:
    """The candidate takes a second more, 0.96 of it in the kernel."""
    pairs = [(block, 0.001 * (block % 3)) for block in range(1, 8)]
    return Runs(
        tuple(trial(block, 0, 1.0, user_s=0.9 + noise, sys_s=0.0) for block, noise in pairs),
        tuple(
            trial(block, 1, 2.0 + noise, user_s=0.94, sys_s=0.96 + noise) for block, noise in pairs
        ),
    )


def test_a_policy_that_returns_each_block_to_the_kernel() -> None:
    few = system_calls(calls("mmap", 12, 0.001), calls("munmap", 12, 0.001), calls("read", 3, 0.1))
    many = system_calls(
        calls("mmap", 400_012, 0.40), calls("munmap", 400_012, 0.3), calls("read", 3, 0.1)
    )
    blocks = allocations(size_class(35_600, 98_000, (80_000, 17_000)), size_class(24, 2_000))
    difference = differs(
        in_the_kernel(),
        system_calls=Runs((few, few), (many, many)),
        page_faults=Runs(
            (sampled({}, "page_faults", total=180),) * 2,
            (sampled({}, "page_faults", total=3.6e6),) * 2,
        ),
        allocations=Runs((blocks, blocks), (blocks, blocks)),
    )
    assert extra_time_clauses(difference) == (
        "96 % of the extra time is system time; mmap and munmap rose from 12 to 400,012 calls, "
        "page faults from 180 to 3.6 million; 98 % of the allocations are of 35,600 bytes, and "
        "nine in ten of these live under 500 ns"
    )


def in_several_threads(user_s: float, sys_s: float, wall_s: float = 2.0) -> Runs[Trial]:
    """The baseline takes a second on one processor; the candidate this long."""
    noise = [0.001 * (block % 3) for block in range(1, 8)]
    return Runs(
        tuple(trial(at, 0, 1.0 + one, user_s=1.0, sys_s=0.0) for at, one in enumerate(noise)),
        tuple(
            trial(at, 1, wall_s + one, user_s=user_s + one, sys_s=sys_s + one)
            for at, one in enumerate(noise)
        ),
    )


def test_more_processor_time_than_passed_is_explained_and_not_a_share_above_100_percent() -> None:
    sentence = extra_time_clauses(differs(in_several_threads(1.8, 1.5)))
    assert sentence == (
        "system time grew by 1.50 s and user time by 801 ms, which is more than the 1.00 s that "
        "passed, because several threads or processes worked at once"
    )


def test_part_larger_than_the_gap_is_explained_by_a_smaller_part() -> None:
    sentence = extra_time_clauses(differs(in_several_threads(0.3, 1.6)))
    assert "which is more than the 1.00 s that passed" in sentence
    assert sentence.endswith("because another part of the time shrank")


def test_a_slower_function() -> None:
    walls = [1.0, 1.01, 1.02, 1.0, 1.01]
    profiles = Runs(
        (sampled({"main;work": 1.0}), sampled({"main;work": 1.01})),
        (sampled({"main;work": 2.0}), sampled({"main;work": 2.02})),
    )
    difference = differs(trials(walls, [1.0 + wall for wall in reversed(walls)]), profile=profiles)
    assert extra_time_clauses(difference) == (
        "100 % of the extra time is user time; work (program) takes 1.00 s more on a processor"
    )


def test_difference_as_large_as_between_runs_is_uncertain() -> None:
    one, other = system_calls(calls("futex", 5, 0.1)), system_calls(calls("futex", 900, 1.8))
    difference = differs(in_the_kernel(), system_calls=Runs((one, one), (one, other)))
    sentence = extra_time_clauses(difference)
    assert sentence == (
        "96 % of the extra time is system time; perhaps futex (850 ms more, but the "
        "observed runs do not prove it)"
    )


def test_a_gap_that_is_not_certain_is_not_split() -> None:
    difference = differs(trials([1.0, 2.0, 1.0], [1.1, 1.0, 3.0]))
    assert extra_time_clauses(difference).startswith(
        "whether the mean trial takes longer is uncertain"
    )


def test_with_one_run_each_only_the_split_is_certain() -> None:
    few, many = system_calls(calls("write", 1, 0.0)), system_calls(calls("write", 10**6, 0.9))
    difference = differs(in_the_kernel(), system_calls=Runs((few,), (many,)))
    sentence = extra_time_clauses(difference)
    assert "rose" not in sentence
    assert "the observed runs do not prove it" in sentence


def test_waits_are_named_with_the_waiting_function() -> None:
    def waited(work_s: float, sleep_s: float) -> SampledStacks:
        sleep = "main;nanosleep@libc.so.6;nanosleep@kernel"
        return sampled({"main;work;futex@kernel": work_s, sleep: sleep_s}, "waits")

    difference = differs(
        in_the_kernel(),
        waits=Runs((waited(0.0, 0.0), waited(0.0, 0.01)), (waited(0.5, 0.4), waited(0.51, 0.41))),
    )
    assert extra_time_clauses(difference) == (
        "96 % of the extra time is system time; waits of work (program) in futex take 505 ms more, "
        "waits in nanosleep take 400 ms more"
    )


def test_several_running_threads_make_the_waiting_time_unknown() -> None:
    blocks = range(1, 8)
    noisy = Runs(
        tuple(trial(block, 0, 1.0, user_s=1.9, sys_s=0.0) for block in blocks),
        tuple(
            trial(block, 1, 2.0 + 0.01 * block, user_s=1.4 + 0.3 * (block % 3), sys_s=0.7)
            for block in blocks
        ),
    )
    difference = differs(noisy)
    assert extra_time_clauses(difference) == (
        "neither user nor system time certainly grew, and waiting is not known"
    )
