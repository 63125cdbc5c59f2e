"""The gap and its split, from the resources of the campaign's own trials."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.why.differences.compare import trials_difference
from equipoise.why.evidence.sources import Runs
from packages.equipoise.tests.why.differences.example_evidence import trial, trials


def test_trials_are_paired_by_their_blocks() -> None:
    """The third block ran while the machine was slow, which does not change the difference."""
    difference = trials_difference(
        Runs(
            tuple(trial(block, 0, wall) for block, wall in ((1, 1.0), (3, 9.0), (2, 1.1))),
            tuple(trial(block, 1, wall) for block, wall in ((1, 1.5), (2, 1.7), (3, 9.6), (4, 99))),
        )
    )
    assert difference.wall_time.baseline == pytest.approx(11.1 / 3)
    assert difference.wall_time.extra == pytest.approx(1.7 / 3)
    low, high = difference.wall_time.extra_ci
    assert low is not None and high is not None and 0 < low < high < 1


def test_the_parts_add_up_to_the_gap() -> None:
    difference = trials_difference(
        Runs(
            tuple(trial(block, 0, 1.0, user_s=0.5, sys_s=0.3) for block in range(1, 4)),
            tuple(
                trial(block, 1, 2.0 + block, user_s=0.6, sys_s=0.4 + block) for block in range(1, 4)
            ),
        )
    )
    assert sum(part.extra for part in difference.time_parts.values()) == pytest.approx(
        difference.wall_time.extra
    )


def test_typical_block_decides_which_condition_is_slower() -> None:
    """One candidate in five has an accident, which turns the mean."""
    difference = trials_difference(trials([1.0, 1.0, 1.0, 1.0, 9.0], [1.5, 1.4, 1.5, 1.6, 1.5]))
    assert difference.slower == "candidate"
    assert difference.wall_time.extra < 0


def test_several_threads_at_once_leave_the_waiting_unknown() -> None:
    difference = trials_difference(
        Runs(
            (trial(1, 0, 1.0, user_s=0.9, sys_s=0.0), trial(2, 0, 1.0, user_s=0.9, sys_s=0.0)),
            (trial(1, 1, 2.0, user_s=3.5, sys_s=0.1), trial(2, 1, 2.0, user_s=3.5, sys_s=0.1)),
        )
    )
    assert set(difference.time_parts) == {"user_s", "system_s"}
    assert difference.unseen["times of the trials"] == (
        "waiting time is unknown, because several threads or processes ran at the same time",
    )


def test_unknown_account_has_a_reason() -> None:
    unknown = trial(1, 0, 1.0, user_s=1.0, sys_s=0.0, minor_faults=5)
    accounting = replace(
        unknown.accounting, max_rss_bytes=None, unknown={"max_rss_bytes": "the kernel hides it"}
    )
    difference = trials_difference(
        Runs(
            (replace(unknown, accounting=accounting),),
            (trial(1, 1, 2.0, user_s=2.0, sys_s=0.0, minor_faults=9, max_rss_bytes=4096),),
        )
    )
    assert difference.resources["minor_faults"].extra == 4
    assert "max_rss_bytes" not in difference.resources
    assert difference.unseen["resources"] == ("max_rss_bytes: the kernel hides it",)


def test_a_trial_that_was_stopped_counts_with_its_time_and_a_remark() -> None:
    pairs = trials([1.0, 1.1], [5.0, 60.0])
    stopped = replace(pairs.candidate[1], failure_kind="timed out")
    difference = trials_difference(Runs(pairs.baseline, (pairs.candidate[0], stopped)))
    assert difference.wall_time.candidate == 32.5
    assert "1 of 4 trials" in difference.unseen["trials"][0]


def test_trials_of_the_warm_up_are_no_part_of_it() -> None:
    pairs = trials([1.0, 1.0], [2.0, 2.5])
    warm_up = replace(pairs.baseline[0], phase="warmup")
    difference = trials_difference(Runs((warm_up, pairs.baseline[1]), pairs.candidate))
    assert difference.wall_time.extra == 1.5
