"""Fitness against a plain reference, and by hand."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from equipoise_matching.matching.fitness import CandidateMatches, fitness_problem, match_fitness
from equipoise_matching.matching.match import match
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching import fitness_reference as reference
from packages.matching.tests.matching.fitness_reference import Floats


def data(rows: int, seed: int = 1, discrete: bool = True) -> dict[str, Any]:
    """Return units with a column of few values, one of two, and two continuous or rounded ones."""
    random = np.random.default_rng(seed)
    treat = np.array([0, 1, *random.integers(0, 2, rows - 2)])
    x = np.column_stack(
        [
            random.integers(0, 5, rows),
            random.integers(0, 2, rows),
            random.normal(size=rows) + 0.5 * treat,
            random.exponential(size=rows),
        ]
    )
    if discrete:
        x = np.round(x)
    return {"treat": treat, "X": x, "balance": np.column_stack([x, x[:, 2] * x[:, 3]])}


def candidates(columns: int = 4, count: int = 3, seed: int = 7) -> Floats:
    return np.random.default_rng(seed).uniform(0, 1000, (count, columns))


WAYS: dict[str, dict[str, Any]] = {
    "ATT": {},
    "ATC": {"estimand": "ATC"},
    "ATE": {"estimand": "ATE"},
    "m": {"m": 3},
    "m, ATE": {"m": 2, "estimand": "ATE"},
    "caliper": {"caliper": 0.4},
    "caliper, ATE": {"caliper": 0.5, "estimand": "ATE"},
    "caliper, m": {"caliper": 0.9, "m": 2},
    "restrict": {"restrict": [(0, 1, -1.0), (2, 5, 0.0), (3, 7, 1e-3)], "estimand": "ATE"},
    "tolerance": {"distance_tolerance": 40.0},
    "weights": {"weights": True},
    "weights, ATE, m": {"weights": True, "estimand": "ATE", "m": 2},
}


@pytest.mark.parametrize("rows", [50, 320], ids=["exact tests", "asymptotic tests"])
@pytest.mark.parametrize("discrete", [True, False], ids=["ties", "continuous"])
@pytest.mark.parametrize("way", WAYS)
def test_p_values_are_those_of_the_reference(way: str, discrete: bool, rows: int) -> None:
    units, options = data(rows, discrete=discrete), dict(WAYS[way])
    if options.pop("weights", False):
        options["weights"] = np.random.default_rng(3).uniform(0.3, 2.5, rows)
    criteria = match_fitness(**units, w=candidates(), **options)
    for row, w in zip(criteria, candidates(), strict=True):
        matched = reference.pairs(units["treat"], units["X"], w, **options)
        expected = np.sort(reference.p_values(units["treat"], units["balance"], matched))
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12)


def test_without_replacement_each_unit_takes_a_control_that_is_left() -> None:
    units = data(160, discrete=False)
    criteria = match_fitness(**units, w=candidates(), replace=False)
    for row, w in zip(criteria, candidates(), strict=True):
        matched = reference.pairs(units["treat"], units["X"], w, replace=False)
        expected = np.sort(reference.p_values(units["treat"], units["balance"], matched))
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12)


def test_exact_columns_are_a_caliper_of_nothing() -> None:
    units = data(120)
    exact = match_fitness(**units, exact=[True, True, False, False])
    limit = match_fitness(**units, caliper=[0.0, 0.0, np.inf, np.inf])
    np.testing.assert_array_equal(exact, limit)
    assert not np.array_equal(exact, match_fitness(**units))


@pytest.mark.parametrize("option", [{"ties": False}, {"replace": False}])
def test_random_ties_depend_on_the_seed_alone(option: dict[str, Any]) -> None:
    units = data(150)
    first, same, other = (
        match_fitness(**units, w=candidates(), seed=seed, threads=threads, **option)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_fitness_judges_the_pairs_that_match_makes() -> None:
    units = data(90)
    w = candidates(count=1)[0]
    options: dict[str, Any] = {"estimand": "ATE", "m": 2, "caliper": 1.5}
    ours = fitness_problem(**units, **options).matches(w)
    theirs = match(None, units["treat"], units["X"], metric=w, **options)
    np.testing.assert_array_equal(ours.treated_index, theirs.treated_index)
    np.testing.assert_array_equal(ours.control_index, theirs.control_index)
    np.testing.assert_array_equal(ours.weights, theirs.weights)


def test_unpaired_tests_are_those_of_welch() -> None:
    units = data(260, discrete=False)
    w = candidates(count=1)[0]
    matched = reference.pairs(units["treat"], units["X"], w)
    expected = reference.p_values(units["treat"], units["balance"], matched, paired=False)
    criteria = match_fitness(**units, w=w, paired=False)
    np.testing.assert_allclose(criteria, np.sort(expected), rtol=1e-9)


def test_only_t_tests_without_ks() -> None:
    units = data(80)
    w = np.ones(4)
    matched = reference.pairs(units["treat"], units["X"], w)
    expected = reference.p_values(units["treat"], units["balance"], matched)[:5]
    np.testing.assert_allclose(match_fitness(**units, ks=False), np.sort(expected), rtol=1e-9)


@pytest.mark.parametrize("loss", [2, min])
def test_a_loss_of_the_smallest_leaves_the_smallest(loss: Any) -> None:
    units = data(80)
    criteria = match_fitness(**units, w=candidates(), loss=loss)
    np.testing.assert_array_equal(criteria, match_fitness(**units, w=candidates())[:, :1])


def test_a_loss_function_gets_t_tests_first() -> None:
    units = data(60)
    matched = reference.pairs(units["treat"], units["X"], np.ones(4))
    expected = reference.p_values(units["treat"], units["balance"], matched)
    criteria = match_fitness(**units, loss=lambda values: values)
    np.testing.assert_allclose(criteria, expected, rtol=1e-9)


WITHIN = {"qqmean": np.mean, "qqmedian": np.median, "qqmax": np.max}
NAMES = ("qqmean.mean", "qqmean.max", "qqmedian.median", "qqmedian.max", "qqmax.mean", "qqmax.max")


@pytest.mark.parametrize("fitness", NAMES)
@pytest.mark.parametrize("estimand", ["ATT", "ATE"])
def test_distances_of_distributions_are_those_of_the_reference(fitness: str, estimand: Any) -> None:
    units = data(130)
    within, across = fitness.split(".")
    criteria = match_fitness(**units, w=candidates(), fitness=fitness, estimand=estimand)
    for row, w in zip(criteria, candidates(), strict=True):
        matched = reference.pairs(units["treat"], units["X"], w, estimand=estimand)
        apart = reference.distances(units["treat"], units["balance"], matched, WITHIN[within])
        expected: Any = {
            "mean": [apart.mean()],
            "median": [np.median(apart)],
            "max": np.sort(apart)[::-1],
        }[across]
        np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-15)


def test_the_bootstrap_depends_on_the_seed_and_not_on_the_threads() -> None:
    units = data(100)
    once, twice, other = (
        match_fitness(**units, w=candidates(), boot=60, seed=seed, threads=threads)
        for seed, threads in ((5, 1), (5, 2), (6, 1))
    )
    np.testing.assert_array_equal(once, twice)
    assert not np.array_equal(once, other)


@pytest.mark.parametrize("way", WAYS)
def test_threads_and_other_candidates_change_nothing(way: str) -> None:
    units, options = data(110), dict(WAYS[way])
    if options.pop("weights", False):
        options["weights"] = np.random.default_rng(3).uniform(0.3, 2.5, 110)
    many = candidates(count=23)
    expected = match_fitness(**units, w=many, threads=1, **options)
    np.testing.assert_array_equal(expected, match_fitness(**units, w=many, threads=2, **options))
    # A guess from one candidate must not show in the next.
    turned = match_fitness(**units, w=many[::-1], threads=1, **options)[::-1]
    np.testing.assert_array_equal(expected, turned)
    np.testing.assert_array_equal(expected[11], match_fitness(**units, w=many[11], **options))


@pytest.mark.parametrize("way", WAYS)
def test_all_instructions_of_the_processor_give_the_same_fitness(way: str) -> None:
    options = dict(WAYS[way])
    if options.pop("weights", False):
        options["weights"] = np.random.default_rng(3).uniform(0.3, 2.5, 700)
    problem = fitness_problem(**data(700, discrete=False), **options)
    best = problem.evaluate(candidates(count=6))
    for instructions in ("portable", "avx2", "avx512"):
        chosen_options = replace(problem.match_problem.options, instructions=instructions)
        chosen = replace(
            problem, match_problem=replace(problem.match_problem, options=chosen_options)
        )
        try:
            chosen.evaluate(candidates(count=6))
        except ValueError as error:
            assert instructions in str(error)
            continue
        np.testing.assert_array_equal(chosen.evaluate(candidates(count=6)), best)


def test_a_pickled_problem_gives_the_same_fitness() -> None:
    problem = fitness_problem(**data(70), estimand="ATE", caliper=1.0)
    expected = problem.evaluate(candidates())
    unpickled = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(unpickled.evaluate(candidates()), expected)


def test_common_support_leaves_rows_out_of_everything() -> None:
    units = data(90, discrete=False)
    arms = [units["X"][units["treat"] == arm, 0] for arm in (0, 1)]
    units["X"][:5, 0] += 20 * units["treat"][:5]
    arms = [units["X"][units["treat"] == arm, 0] for arm in (0, 1)]
    low, high = max(arm.min() for arm in arms), min(arm.max() for arm in arms)
    in_support = (units["X"][:, 0] >= low) & (units["X"][:, 0] <= high)
    assert 0 < in_support.sum() < 90
    part = {name: values[in_support] for name, values in units.items()}
    np.testing.assert_array_equal(
        match_fitness(**units, common_support=True), match_fitness(**part)
    )
    problem = fitness_problem(**units, common_support=True)
    np.testing.assert_array_equal(problem.match_problem.rows, np.flatnonzero(in_support))


def test_a_column_of_weight_zero_changes_nothing() -> None:
    units = data(80)
    without = match_fitness(units["treat"], units["X"][:, :3], units["balance"], w=[3.0, 2.0, 1.0])
    np.testing.assert_allclose(match_fitness(**units, w=[3.0, 2.0, 1.0, 0.0]), without, rtol=1e-12)


def test_without_any_weight_everybody_is_matched_with_everybody() -> None:
    units = data(60)
    criteria = match_fitness(**units, w=np.zeros(4))
    matched = reference.pairs(units["treat"], units["X"], np.zeros(4))
    assert len(matched) == (units["treat"] == 1).sum() * (units["treat"] == 0).sum()
    expected = np.sort(reference.p_values(units["treat"], units["balance"], matched))
    np.testing.assert_allclose(criteria, expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1e9, 1e20])
def test_the_scale_of_the_weights_decides_only_ties(scale: float) -> None:
    units: dict[str, Any] = {**data(100, discrete=False), "distance_tolerance": 0.0}
    criteria = match_fitness(**units, w=candidates() * scale)
    np.testing.assert_allclose(criteria, match_fitness(**units, w=candidates()), rtol=1e-9)


def test_more_ties_than_are_held_at_once_are_counted_all() -> None:
    random = np.random.default_rng(11)
    treat = np.repeat([1, 0], 1100)
    x = random.normal(size=2200) + 0.02 * treat
    arms = x[:1100], x[1100:]
    mean = arms[0].mean() - arms[1].mean()
    # Everybody with everybody: the squares are those of both arms.
    variance = (arms[0].var() + arms[1].var()) / 1100
    expected = 2 * student.sf(abs(mean) / np.sqrt(variance), 1099)
    criteria = match_fitness(treat, x, w=[0.0], ks=False)
    assert criteria.tolist() == pytest.approx([expected], rel=1e-10)


def test_a_fitness_function_sees_the_pairs_and_the_covariates() -> None:
    units = data(70)

    def largest_difference(matches: CandidateMatches, balance: Floats) -> float:
        apart = balance[matches.treated_index] - balance[matches.control_index]
        return float(np.abs(matches.weights @ apart).max())

    criteria = match_fitness(**units, w=candidates(), fitness=largest_difference, estimand="ATE")
    for row, w in zip(criteria, candidates(), strict=True):
        matched = reference.pairs(units["treat"], units["X"], w, estimand="ATE")
        total = np.zeros(5)
        for i, j, weight in matched:
            sign = 1 if units["treat"][i] == 1 else -1
            total += weight * sign * (units["balance"][i] - units["balance"][j])
        assert row[0] == pytest.approx(np.abs(total).max(), rel=1e-9)


def fails(matches: CandidateMatches, balance: Floats) -> float:
    raise KeyError("nothing")


def changes(matches: CandidateMatches, balance: Floats) -> list[float]:
    return [1.0] * len(matches.weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fitness": "qqmedian.mean"}, "there is no fitness 'qqmedian.mean'"),
        ({"loss": 3}, "there is no loss 3"),
        ({"loss": 2, "fitness": "qqmax.max"}, "loss is for fitness='pvals'"),
        ({"boot": -1}, "boot is -1"),
        ({"boot": "many"}, "boot is many"),
        ({"w": [1.0, 2.0]}, r"w has shape \(2,\) and X has 4 columns"),
        ({"w": [1.0, -1.0, 1.0, 1.0]}, "w has the weight -1 for column 'x2' in candidate 0"),
        ({"w": [1.0, 1.0, np.nan, 1.0]}, "w has the weight nan for column 'x3'"),
        ({"balance": np.ones((3, 2))}, "balance has 3 rows and X has 40"),
        (
            {"fitness": fails},
            r"fitness raised KeyError: 'nothing', for the weights w = \[1, 1, 1, 1\]",
        ),
        ({"fitness": lambda matches, balance: np.nan}, r"fitness returned \[nan\] for w = \[1, 1"),
        ({"loss": lambda values: [0.0, np.nan]}, r"loss returned \[ 0. nan\] for w = \[1, 1"),
        ({"fitness": changes, "w": [[1, 1, 1, 1], [0, 0, 0, 0]]}, "values for w ="),
    ],
)
def test_unusable_input_is_named(options: dict[str, Any], message: str) -> None:
    units = {**data(40), **options}
    with pytest.raises(UnusableInput, match=message):
        match_fitness(**units)


def test_progress_reports_every_candidate() -> None:
    reports: list[tuple[int, int]] = []
    problem = fitness_problem(**data(40), threads=1)
    problem.evaluate(candidates(count=9), lambda done, of: reports.append((done, of)))
    assert reports[-1] == (9, 9)
