"""Differences in evidence that was made by hand with known answers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.why.differences.changes import Wait
from equipoise.why.differences.compare import split_wall_time
from equipoise.why.evidence.instructions import Instructions
from equipoise.why.evidence.observer import Function
from equipoise.why.evidence.sources import Runs
from packages.equipoise.tests.why.differences.example_evidence import (
    WALLS,
    allocations,
    calls,
    differs,
    sampled,
    size_class,
    sizes,
    system_calls,
    trial,
)

MAIN = Function("main", "program", "user")
WORK = Function("work", "program", "user")


def test_without_sources_the_gap_remains() -> None:
    difference = differs()
    assert difference.slower == "candidate"
    assert difference.wall_time.extra == pytest.approx(1.0)
    assert difference.time_parts["user_s"].extra == pytest.approx(1.0)
    assert difference.time_parts["waiting_s"].extra == 0.0
    assert (
        difference.on_processor,
        difference.faults,
        difference.allocations,
        difference.processes,
    ) == (None,) * 4
    assert not (
        difference.entry_points or difference.calls or difference.waits or difference.unseen
    )


def test_slower_baseline_has_positive_extra_seconds() -> None:
    profiles = Runs((sampled({"main": 2.0}),) * 2, (sampled({"main": 1.5}),) * 2)
    difference = differs(Runs(WALLS.candidate, WALLS.baseline), profile=profiles)
    assert difference.slower == "baseline"
    assert difference.wall_time.extra == pytest.approx(1.0)
    low, high = difference.wall_time.extra_ci
    assert low is not None and high is not None and 0 < low < 1.0 < high
    work = difference.functions[MAIN]
    assert (work.baseline, work.candidate, work.extra) == (2.0, 1.5, 0.5)
    assert (work.slower, work.faster) == (2.0, 1.5)


def test_a_campaign_without_a_pair_cannot_be_explained() -> None:
    lonely = Runs((trial(1, 0, 1.0),), (trial(2, 1, 1.0),))
    with pytest.raises(UnusableInput, match="no block"):
        differs(lonely)


def test_time_on_a_processor_goes_to_entry_points_and_functions() -> None:
    baseline = sampled({"main;work": 1.0, "main": 0.2})
    candidate = sampled(
        {"main;work": 1.0, "main": 0.2, "main;work;munmap@kernel": 0.6, "exit@kernel": 0.1}
    )
    profiles = Runs((baseline, baseline), (candidate, candidate))
    difference = differs(profile=profiles)
    assert difference.on_processor is not None
    assert difference.on_processor.extra == pytest.approx(0.7)
    assert {
        entry_point: change.extra for entry_point, change in difference.entry_points.items()
    } == {
        "munmap": 0.6,
        "exit": 0.1,
    }
    assert difference.functions[WORK].extra == difference.functions[MAIN].extra == 0.0
    assert difference.inclusive[MAIN].candidate == pytest.approx(1.8)
    assert difference.inclusive[WORK].extra == pytest.approx(0.6)


def test_caller_is_above_the_function_in_its_stacks() -> None:
    faster = sampled({"main;work": 0.1})
    slower = sampled({"main;count;work": 0.9, "main;count;lock@libc.so.6": 2.0})
    difference = differs(profile=Runs((faster, faster), (slower, slower)))
    # What takes more time and is beside it is not: the lock has more seconds than the work.
    assert [caller.name for caller in difference.callers[WORK]] == ["count", "main"]


def test_recursive_function_is_not_its_own_caller() -> None:
    faster, slower = sampled({"main;work": 0.1}), sampled({"main;work;work;work": 1.0})
    difference = differs(profile=Runs((faster, faster), (slower, slower)))
    assert [caller.name for caller in difference.callers[WORK]] == ["main"]


def test_recursive_function_counts_once_per_stack() -> None:
    profiles = Runs((sampled({"main;work;work;work": 1.0}),), (sampled({"main;work": 1.0}),))
    difference = differs(profile=profiles)
    assert difference.inclusive[WORK].baseline == 1.0


def test_most_increased_function_comes_first() -> None:
    baseline = sampled({"less": 3.0, "more": 1.0, "most": 1.0})
    candidate = sampled({"less": 1.0, "more": 2.0, "most": 4.0})
    difference = differs(profile=Runs((baseline,), (candidate,)))
    assert [function.name for function in difference.functions] == ["most", "more", "less"]


def test_system_time_is_used_if_the_kernel_cannot_be_sampled() -> None:
    remark = "the kernel's own time and stacks: run as root"
    profiles = Runs(
        (sampled({"main": 1.0}, unseen=(remark,)),), (sampled({"main": 1.0}, unseen=(remark,)),)
    )
    pairs = Runs(
        (trial(1, 0, 1.2, user_s=1.0, sys_s=0.1), trial(2, 0, 1.2, user_s=1.0, sys_s=0.2)),
        (trial(1, 1, 2.2, user_s=1.0, sys_s=1.1), trial(2, 1, 2.2, user_s=1.0, sys_s=1.1)),
    )
    difference = differs(pairs, profile=profiles)
    assert list(difference.entry_points) == ["kernel"]
    assert difference.entry_points["kernel"] == difference.time_parts["system_s"]
    assert remark in difference.unseen["profile"]
    assert any("stands for it" in words for words in difference.unseen["profile"])


def test_a_profile_that_disagrees_with_the_accounts_has_a_remark_and_is_not_scaled() -> None:
    profiles = Runs((sampled({"main": 0.3}),), (sampled({"main": 2.1}),))
    difference = differs(profile=profiles)
    assert difference.functions[MAIN].baseline == 0.3
    assert difference.unseen["profile"] == (
        "the profile of the baseline has 0.3 s on a processor, 0.27 times the 1.1 s that its "
        "trials used",
    )


def test_ties_keep_the_order_of_the_input() -> None:
    """So that the same ledger gives the same bytes in every process."""
    names = [f"step_{number}" for number in range(40)]
    profile = sampled({";".join(names): 1.0})
    difference = differs(profile=Runs((profile,), (profile,)))
    assert [function.name for function in difference.inclusive] == names


def test_waits_are_split_by_entry_point_and_function() -> None:
    waits = Runs(
        (sampled({}, "waits"),),
        (sampled({"main;work;futex@kernel": 0.5, "main": 0.1}, "waits"),),
    )
    difference = differs(waits=waits)
    assert {wait: change.extra for wait, change in difference.waits.items()} == {
        Wait("futex", WORK): 0.5,
        Wait("kernel", MAIN): 0.1,
    }


def test_faults_are_counted_and_split_by_function() -> None:
    faults = Runs(
        (sampled({"main;page_fault@kernel": 100.0}, "page_faults", total=180.0),),
        (sampled({"main;work;page_fault@kernel": 9e5}, "page_faults", total=1e6),),
    )
    difference = differs(page_faults=faults).faults
    assert difference is not None
    assert (difference.count.baseline, difference.count.candidate) == (180.0, 1e6)
    assert [function.name for function in difference.by_function] == ["work", "main"]


def test_system_calls_are_compared_name_by_name() -> None:
    fewer = system_calls(calls("mmap", 12, 0.001), calls("stat", 1, 1e-6))
    many = system_calls(
        calls("mmap", 400_012, 0.9, sizes=sizes(_36864=400_000, _4096=12)),
        calls("openat", 3, 1e-5, errors={"ENOENT": 2}),
        threads=3,
    )
    difference = differs(system_calls=Runs((fewer, fewer), (many, many)))
    assert list(difference.calls) == ["mmap", "openat", "stat"]
    mmap = difference.calls["mmap"]
    assert mmap.count.extra_ci == (400_000.0, 400_000.0)
    assert mmap.seconds.extra_ci == (None, None)
    assert mmap.typical_bytes == 36864
    assert difference.calls["openat"].errors["ENOENT"].candidate == 2
    assert difference.calls["stat"].count.extra == -1
    assert difference.threads is not None and difference.threads.extra == 2


def test_runs_that_lost_records_are_left_out_where_a_complete_one_is_there() -> None:
    few, many = system_calls(calls("read", 7, 0.001)), system_calls(calls("read", 400_000, 0.9))
    lossy = system_calls(calls("read", 15_000, 0.03), lost_records=385_000)
    some = differs(system_calls=Runs((few, few), (many, lossy, many))).calls["read"]
    assert (some.count.candidate, some.count.is_certain) == (400_000, True)
    all_lossy = differs(system_calls=Runs((few, few), (lossy, lossy))).calls["read"]
    assert all_lossy.count.candidate == 15_000


def test_allocations_are_split_by_size_class_and_requester() -> None:
    by = {"main;work;malloc@libc.so.6;35600 bytes@size": 3.5e9, "main;parse;16 bytes@size": 1e3}
    short = size_class(35_600, 100_000, (60_000, 35_000, 4_000))
    baseline = allocations(size_class(24, 500))
    candidate = allocations(size_class(24, 500), short, by=by)
    difference = differs(allocations=Runs((baseline,), (candidate,))).allocations
    assert difference is not None
    large, small = difference.classes
    assert (large.typical_bytes, large.count.extra) == (35_600, 100_000)
    assert large.usual_lifetime_s == 0.5e-6
    assert small.usual_lifetime_s is None
    assert [function.name for function in difference.by_function] == ["work", "parse"]


def test_run_without_records_has_unknown_allocations() -> None:
    nothing = replace(allocations(), processes=0)
    runs = Runs((nothing,), (allocations(size_class(24, 500)),))
    difference = differs(allocations=runs)
    assert difference.allocations is None


def test_instructions_are_compared_by_function() -> None:
    runs = Runs((Instructions(10, {"f": 10}, ()),), (Instructions(35, {"f": 10, "g": 25}, ()),))
    difference = differs(instructions=runs)
    assert {name: change.extra for name, change in difference.instructions.items()} == {
        "g": 25,
        "f": 0,
    }


def test_each_remark_about_what_sources_missed_appears_once() -> None:
    profiles = Runs(
        (sampled({"main": 1.1}, unseen=("3 records that came too fast to be read",)),),
        (sampled({"main": 2.1}, unseen=("17 records that came too fast to be read",)),),
    )
    failures = {"waits": ("perf_event_open: forbidden",)}
    difference = differs(profile=profiles, failures=failures).unseen
    assert difference == {
        "waits": ("perf_event_open: forbidden",),
        "profile": ("3 records that came too fast to be read",),
    }


@pytest.mark.parametrize("has_it", ["baseline", "candidate"])
def test_a_size_class_of_one_condition_may_have_only_freed_blocks(has_it: str) -> None:
    """A block that another process of the pair allocated is freed here: no allocation, one end."""
    freed = (allocations(size_class(64, 0, (1,)), by={"main": 1.0}),) * 2
    other = (allocations(size_class(35_600, 3), by={"main": 1.0}),) * 2
    runs = Runs(freed, other) if has_it == "baseline" else Runs(other, freed)
    change = differs(allocations=runs).allocations
    assert change is not None
    classes = {size_class.min_bytes: size_class for size_class in change.classes}
    assert classes[16].typical_bytes == 64
    assert (classes[16].count.extra, classes[16].usual_lifetime_s) == (0.0, None)


@pytest.mark.parametrize(
    ("times", "run_delay_s", "waiting_s", "queueing_s"),
    [
        pytest.param((2.0, 0.5, 0.25), None, 1.25, None, id="time that no thread used"),
        pytest.param((1.0, None, 0.1), None, None, None, id="a missing account"),
        pytest.param((2.0, 0.5, 0.25), 0.25, 1.0, 0.25, id="waiting for a processor"),
        pytest.param((1.0, 0.5, 0.25), 0.5, 0.0, 0.25, id="a delay above the waiting"),
    ],
)
def test_wall_time_is_split_into_work_waiting_and_queueing(
    times: tuple[float, float | None, float],
    run_delay_s: float | None,
    waiting_s: float | None,
    queueing_s: float | None,
) -> None:
    parts = split_wall_time(*times, run_delay_s=run_delay_s)
    assert (parts.waiting_s, parts.queueing_s) == (waiting_s, queueing_s)


def test_parallel_threads_make_the_wait_unknown() -> None:
    parts = split_wall_time(1.0, 1.5, 0.1)
    assert parts.waiting_s is None
    assert "at the same time" in parts.unseen[0]
