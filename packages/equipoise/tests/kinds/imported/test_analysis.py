"""An imported run is compared by ordinary intervals, and its sentences claim no more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.campaign.blocks import complete_blocks
from equipoise.kinds.imported.analysis import imported_result, order_warnings
from equipoise.kinds.imported.terms import ImportedResult, ImportSource, Order
from equipoise.model.plan import Judgement, Plan
from equipoise.model.record import Accounting, Draw, Sample, Trial
from equipoise.model.result import SampleComparison
from packages.equipoise.tests.plans import plan_of

METRIC = "time_s"


def a_plan(*names: str, order: Order = "mixed", metric: str = METRIC) -> Plan:
    """The plan of an imported run."""
    plan = plan_of(*names, judgement=Judgement(primary_metric=metric))
    return replace(plan, terms=ImportSource("csv", None, ("rows.csv",), order))


def result_of(plan: Plan, *blocks: dict[int, list[float | None]]) -> ImportedResult:
    """The result of these values: for each block the values of each condition."""
    draws, trials = [], []
    for number, block in enumerate(blocks, start=1):
        order = tuple(condition for condition, values in block.items() for _ in values)
        draws.append(Draw("measured", number, order, 0))
        values = [(condition, value) for condition, own in block.items() for value in own]
        for position, (condition, value) in enumerate(values):
            metric = plan.judgement.primary_metric
            samples = () if value is None else (Sample(metric, value),)
            trials.append(
                Trial("measured", number, position, condition, 1.7e9, Accounting(), samples=samples)
            )
    result = imported_result(plan, complete_blocks(draws, trials))
    assert result is not None
    return result


def only_comparison(result: ImportedResult) -> SampleComparison:
    """Return the only comparison."""
    (comparison,) = result.comparisons
    return comparison


def test_an_import_without_comparisons_has_no_warning() -> None:
    alone = replace(a_plan("a", "b"), chosen_contrasts=())
    assert order_warnings(imported_result(alone, {})) == ()


def test_a_difference_is_reported_with_its_caveat() -> None:
    comparison = only_comparison(
        result_of(a_plan("a", "b"), {0: [1.0, 1.01, 0.99], 1: [1.2, 1.21, 1.19]})
    )
    assert comparison.summary.startswith(
        "time_s of b is 20.0 % higher than that of a in these trials; other changes"
    )
    assert (comparison.method, comparison.baseline_trials, comparison.candidate_trials) == (
        "Welch",
        3,
        3,
    )


def test_an_interval_around_one_allows_no_difference() -> None:
    comparison = only_comparison(
        result_of(a_plan("a", "b"), {0: [1.0, 1.1, 0.9], 1: [1.0, 1.2, 0.9]})
    )
    assert "but the interval also allows for no difference" in comparison.summary


def test_a_metric_that_is_not_a_time_is_reported_as_a_factor() -> None:
    plan = a_plan("a", "b", metric="value")
    comparison = only_comparison(result_of(plan, {0: [1.0, 1.1], 1: [3.0, 3.3]}))
    assert "is 3 times that of a" in comparison.summary


def test_only_blocks_with_each_condition_once_are_pairs() -> None:
    plan = a_plan("a", "b", order="in blocks")
    pairs: list[dict[int, list[float | None]]] = [
        {0: [1.0 + place], 1: [1.1 * (1.0 + place) + 0.01 * place]} for place in range(4)
    ]
    comparison = only_comparison(result_of(plan, *pairs, {0: [9.0]}, {0: [9.0, 9.0], 1: [1.0]}))
    assert (comparison.method, comparison.baseline_trials) == ("paired", 4)
    assert comparison.ratio == pytest.approx(1.1, rel=0.01)


def test_a_condition_without_values_has_no_ratio() -> None:
    comparison = only_comparison(result_of(a_plan("a", "b"), {0: [1.0, 1.1], 1: [None, None]}))
    assert comparison.summary == "b against a: no ratio of time_s, because no value is known."
    assert comparison.ratio_ci == (None, None)


def test_the_summary_counts_the_intervals_that_miss_by_chance() -> None:
    values: dict[int, list[float | None]] = {
        place: [1.0 + place, 1.1 + place] for place in range(5)
    }
    result = result_of(a_plan("a", "b", "c", "d", "e"), values)
    assert "by chance about 0.2 of 4 miss" in result.summary
    assert "by chance" not in result_of(a_plan("a", "b"), {0: [1, 2], 1: [2, 3]}).summary


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("one after the other", "every change of the host between them"),
        ("mixed", "no coin of Equipoise drew the order"),
        ("in blocks", "the order within the blocks is not known to be random"),
    ],
)
def test_each_order_of_trials_has_its_warning(order: Order, words: str) -> None:
    (warning,) = order_warnings(result_of(a_plan("a", "b", order=order), {0: [1.0], 1: [2.0]}))
    assert words in warning.summary
    assert order_warnings(result_of(a_plan("a", order=order), {0: [1.0]})) == ()
