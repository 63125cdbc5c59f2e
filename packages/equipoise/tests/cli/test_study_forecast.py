"""A long study has a forecast of its time, also where nobody sees a bar."""

from __future__ import annotations

import contextlib
import io

import msgspec.structs
import pytest

from equipoise.cli.progress import ProgressLines
from equipoise.model.plan import Contrast, Measure, Plan, Stopping
from packages.equipoise.tests.plans import plan_of

NAMES = [f"c{number}" for number in range(40)]


def study(budget_s: float) -> Plan:
    plan = plan_of(*NAMES, stopping=Stopping(budget_s=budget_s), measure=Measure("/", warmup=0))
    return msgspec.structs.replace(plan, chosen_contrasts=(Contrast(0, 1),))


def lines(plan: Plan, *, trial_s: float, author_block_s: float | None = None) -> list[str]:
    """Lines on stderr, not a terminal, of two blocks of equal trials."""
    with (
        contextlib.redirect_stderr(io.StringIO()) as text,
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
        watcher = ProgressLines(author_block_s)
        watcher.segment_started("run", plan, 8, 0)
        for _ in range(2 * len(NAMES)):
            watcher.trial_ended(trial_s, len(NAMES))
    assert out.getvalue() == ""
    return text.getvalue().splitlines()


def test_a_long_study_says_what_its_file_tells_and_then_what_it_finds() -> None:
    beforehand, during, at_its_end = lines(study(3600.0), trial_s=6.0, author_block_s=200.0)
    assert beforehand == (
        "equipoise: 40 conditions, about 3 min a block on the machine of the study's author: first "
        "verdicts after about 27 min, the end after at most 63 min"
    )
    assert during == (
        "equipoise: after 5 of 40 trials: a block takes about 4 min (4 min to 4 min); first "
        "verdicts after about 32 min, the end after at most 64 min"
    )
    assert at_its_end.startswith("equipoise: 40 conditions, 4 min a block: first verdicts")


def test_a_long_study_that_knows_nothing_says_until_when_and_that_more_will_be_said() -> None:
    first = lines(study(600.0), trial_s=6.0)[0]
    assert first == (
        "equipoise: 40 conditions, no new block after 10 min; the first block will show how long "
        "a block takes"
    )


def test_a_budget_that_is_too_short_for_any_verdict_is_reported_during_the_first_block() -> None:
    _, during, _ = lines(study(600.0), trial_s=6.0)
    assert "too long for the budget: add --budget 3840" in during


def test_a_short_study_and_a_comparison_say_nothing_in_a_pipe() -> None:
    assert lines(study(60.0), trial_s=0.1) == []
    comparison = plan_of(*NAMES, stopping=Stopping(budget_s=3600.0), measure=Measure("/", warmup=0))
    assert lines(comparison, trial_s=6.0) == []


def test_a_sitting_that_goes_on_tells_of_the_conditions_that_are_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watcher = ProgressLines(None)
    watcher.segment_started("run", study(3600.0), 8, 6)
    capsys.readouterr()
    for _ in range(10):
        watcher.trial_ended(60.0, 10)
    during, at_its_end = capsys.readouterr().err.splitlines()
    assert "after 5 of 10 trials: a block takes about 10 min" in during
    assert "first verdicts after about 20 min" in at_its_end
