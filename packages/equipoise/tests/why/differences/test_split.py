"""Wall time, split."""

from __future__ import annotations

import pytest

from equipoise.why.differences.compare import split


def test_what_no_thread_used_was_waited() -> None:
    assert split(2.0, 0.5, 0.25).waiting_s == pytest.approx(1.25)


def test_where_threads_ran_at_once_the_wait_is_unknown() -> None:
    parts = split(1.0, 1.5, 0.1)
    assert parts.waiting_s is None
    assert "at the same time" in parts.unseen[0]


def test_what_was_not_accounted_is_unknown() -> None:
    assert split(1.0, None, 0.1).waiting_s is None


def test_waiting_for_a_processor_is_no_waiting_for_others() -> None:
    parts = split(2.0, 0.5, 0.25, run_delay_s=0.25)
    assert parts.waiting_s == pytest.approx(1.0)
    assert parts.queueing_s == pytest.approx(0.25)


def test_a_delay_longer_than_all_waiting_is_cut_to_it() -> None:
    parts = split(1.0, 0.5, 0.25, run_delay_s=0.5)
    assert parts.waiting_s == 0.0
    assert parts.queueing_s == pytest.approx(0.25)


def test_a_delay_that_was_not_read_stays_in_the_waiting() -> None:
    assert split(1.0, 0.5, 0.25).queueing_s is None
