"""Iterations are classified by trial and condition, and compared if both have a steady state."""

from __future__ import annotations

import msgspec.structs
import numpy as np
import pytest

from equipoise.analysis.iterations import classify_iterations, steady_comparisons
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import complete_blocks
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument, SteadyComparison
from packages.equipoise.tests.iterated import FloatArray, Series, record_of, restless, short, steady
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.stats.simulated import at_most


def result_of(record: RunRecord) -> ResultDocument:
    """The result document, after a check against its schema."""
    return validated(analyse_campaign(record))


def only(document: ResultDocument) -> SteadyComparison:
    """The only comparison in the steady state."""
    (comparison,) = document.steady_state
    return comparison


def test_each_trial_and_each_condition_is_classed() -> None:
    document = result_of(record_of(steady(1.0), steady(1.0, warm_up=0)))
    warming, flat = (condition.iterations["request_s"] for condition in document.conditions)
    assert (warming.kind, flat.kind) == ("warm-up", "flat")
    assert warming.has_steady_state and flat.has_steady_state
    assert warming.summary == "warm-up in all 20 trials, steady from iteration 11 on (median)"
    first = warming.trials[0]
    assert (first.block, first.kind, first.steady_from) == (1, "warm-up", 10)
    assert [(stretch.begin, stretch.end) for stretch in first.stretches] == [(0, 10), (10, 40)]
    assert [stretch.mean for stretch in first.stretches] == pytest.approx([3.0, 1.0], rel=0.05)
    assert first.steady_mean == pytest.approx(1.0, rel=0.05)


def test_the_steady_states_are_compared_without_the_warm_up() -> None:
    # The candidate takes 5 % longer per iteration, and warms up in half the time.
    document = result_of(record_of(steady(1.0, warm_up=20), steady(1.05, warm_up=10)))
    assert document.comparisons[0].verdict == "faster"
    found = only(document)
    assert found.comparison is not None
    assert found.comparison.verdict == "slower"
    assert found.comparison.blocks == 20
    assert found.comparison.ratio == pytest.approx(1.05, abs=0.02)
    assert found.summary.startswith("In the steady state: request_s of b is 5.")


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (restless, "b: it has no steady state (no steady state in all 20 trials)"),
        (short, "b: 20 of its 20 trials reported fewer than 20 iterations"),
        (lambda generator, block: np.array([]), "b reported no iterations of this metric"),
        (lambda generator, block: -np.ones(40), "b: its iterations have values below 0, which"),
    ],
)
def test_without_a_steady_state_there_is_a_sentence_and_no_number(
    candidate: Series, reason: str
) -> None:
    found = only(result_of(record_of(steady(1.0), candidate)))
    assert found.comparison is None
    assert found.summary.startswith(
        f"b against a: no comparison of request_s in the steady state: {reason}"
    )


def test_too_few_iterations_are_said_to_be_too_few() -> None:
    document = result_of(record_of(short, short))
    shape = document.conditions[0].iterations["request_s"]
    assert (shape.kind, shape.trials, shape.unclassified_trials) == (None, (), 20)
    assert shape.summary == "not classed: no trial has 20 iterations"
    assert document.steady_state == ()


def test_a_trial_without_a_steady_state_is_compared_and_not_left_out() -> None:
    def disturbed(generator: np.random.Generator, block: int) -> FloatArray:
        return restless(generator, block) if block <= 3 else steady(1.0)(generator, block)

    document = result_of(record_of(steady(1.0), disturbed))
    shape = document.conditions[1].iterations["request_s"]
    assert shape.summary == (
        "warm-up in 17 of 20 trials, steady from iteration 11 on (median); no steady state in 3"
    )
    assert [trial.steady_mean for trial in shape.trials[:3]] == [None] * 3
    compared = only(document).comparison
    assert compared is not None
    assert compared.blocks == 20


def test_a_trial_that_timed_out_counts_as_slowest() -> None:
    record = record_of(steady(1.0), steady(1.0))
    trials = tuple(
        msgspec.structs.replace(
            trial, failure_kind="timed out", failure="timed out after 1 s", exit=None
        )
        if trial.condition == 1 and trial.block <= 15
        else trial
        for trial in record.trials
    )
    compared = only(analyse_campaign(msgspec.structs.replace(record, trials=trials))).comparison
    assert compared is not None
    assert (compared.verdict, compared.ratio) == ("slower", None)


def test_less_is_slower_for_a_metric_that_is_better_when_higher() -> None:
    document = result_of(record_of(steady(100.0), steady(80.0), better="higher"))
    shape = document.conditions[0].iterations["request_s"]
    # 300 requests per second at first, then 100.
    assert shape.kind == "slowdown"
    assert shape.trials[0].steady_mean == pytest.approx(100.0, rel=0.05)
    compared = only(document).comparison
    assert compared is not None
    assert compared.verdict == "slower"
    assert compared.ratio == pytest.approx(1.25, rel=0.03)


def test_a_missing_comparison_counts_as_one_without_evidence() -> None:
    single = only(result_of(record_of(steady(1.0), steady(1.1)))).comparison
    both = result_of(record_of(steady(1.0), steady(1.1), restless))
    given, withheld = both.steady_state
    assert single is not None and given.comparison is not None
    assert withheld.comparison is None
    assert (single.significance_level, given.comparison.significance_level) == (0.05, 0.025)


def test_a_control_is_pooled_in_the_steady_state_too_and_must_have_one() -> None:
    def with_control(*conditions: Series) -> SteadyComparison:
        record = record_of(*conditions)
        plan = msgspec.structs.replace(record.plan, control=2)
        return only(result_of(msgspec.structs.replace(record, plan=plan)))

    compared = with_control(steady(1.0), steady(1.1), steady(1.0)).comparison
    assert compared is not None
    assert (compared.verdict, compared.baseline) == ("slower", "a")
    without = with_control(steady(1.0), steady(1.1), restless)
    assert "c: it has no steady state" in without.summary


def test_iterations_are_sorted_in_whatever_order_they_were_reported() -> None:
    record = record_of(steady(1.0), steady(1.0))
    backwards = tuple(
        msgspec.structs.replace(trial, samples=trial.samples[::-1]) for trial in record.trials
    )
    assert analyse_campaign(msgspec.structs.replace(record, trials=backwards)) == analyse_campaign(
        record
    )


def test_equal_conditions_are_called_different_in_at_most_alpha() -> None:
    """Warm-ups of any length; trials differ, and some have no steady state."""

    def random_series(generator: np.random.Generator, block: int) -> FloatArray:
        level = float(np.exp(0.05 * generator.standard_t(3.0)))
        series = level * np.exp(0.02 * generator.normal(size=24))
        series[: generator.integers(0, 12)] *= 1.5
        if generator.random() < 0.1:
            series[-5:] *= 1.3
        return series

    simulations, given, wrong = 100, 0, 0
    for seed in range(simulations):
        record = record_of(random_series, random_series, blocks=15, seed=seed)
        blocks = complete_blocks(record.draws, record.trials)
        analysed = {
            place: [trial for trial in record.trials if trial.condition == place]
            for place in (0, 1)
        }
        (found,) = steady_comparisons(record.plan, blocks, classify_iterations(analysed))
        if (compared := found.comparison) is not None:
            low, high = compared.ratio_ci
            given += 1
            wrong += (low is not None and low > 1.0) or (high is not None and high < 1.0)
    assert given > simulations / 2
    assert wrong <= at_most(simulations, 0.05)
