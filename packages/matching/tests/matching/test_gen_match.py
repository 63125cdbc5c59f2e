"""The search for weights: its result, its reports and its refusals."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pandas
import pytest

from equipoise_matching import match
from equipoise_matching.matching.fitness import match_fitness
from equipoise_matching.matching.gen_match import GenMatchResult, gen_match
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.judges import always_raises, mean_gap, sorted_values
from packages.matching.tests.matching.nsw import NAMES, lalonde

EXPERIMENT = 1794.343
"""Dollars: the difference of means in the experiment."""
QUICK: dict[str, Any] = {"population": 24, "generations": 4, "hard_generation_limit": True}
PEOPLE = pandas.DataFrame(lalonde())
X = PEOPLE[list(NAMES)]


@cache
def usual() -> GenMatchResult:
    """The quick search of the seed 5."""
    return gen_match(PEOPLE["treat"], X, seed=5, **QUICK)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_published_example_is_balanced_and_comes_near_the_experiment(seed: int) -> None:
    """Sekhon 2011, section 4: squares and products are balanced too."""
    balance = X.assign(
        age_squared=PEOPLE["age"] ** 2,
        educ_squared=PEOPLE["educ"] ** 2,
        re74_squared=PEOPLE["re74"] ** 2,
        re75_squared=PEOPLE["re75"] ** 2,
        re74_re75=PEOPLE["re74"] * PEOPLE["re75"],
        age_nodegr=PEOPLE["age"] * PEOPLE["nodegr"],
        educ_re74=PEOPLE["educ"] * PEOPLE["re74"],
        educ_re75=PEOPLE["educ"] * PEOPLE["re75"],
    )
    result = gen_match(PEOPLE["treat"], X, balance, population=200, seed=seed)
    smallest = result.balance().smallest_after
    assert smallest is not None
    assert smallest.value > 0.2
    assert result.fitness[0] == pytest.approx(smallest.value, rel=1e-9)
    effect = match(PEOPLE["re78"], PEOPLE["treat"], X, metric=result.to_metric())
    assert effect.estimate is not None
    assert effect.se is not None
    assert abs(effect.estimate - EXPERIMENT) < 0.5 * effect.se


def test_the_weights_are_no_worse_than_the_start_and_agree_with_match_fitness() -> None:
    result = usual()
    start = match_fitness(PEOPLE["treat"], X, None, np.ones(X.shape[1]))
    assert tuple(result.fitness) >= tuple(start)
    fitness = match_fitness(PEOPLE["treat"], X, None, result.weights)
    assert result.fitness.tobytes() == fitness.tobytes()


def test_each_generation_is_no_worse_than_the_one_before() -> None:
    result = usual()
    values = [tuple(generation.value) for generation in result.history]
    assert values == sorted(values)
    assert values[-1] == tuple(result.fitness)
    assert [generation.number for generation in result.history] == list(range(len(values)))


def test_the_matches_are_those_of_match_by_the_weights() -> None:
    result = gen_match(PEOPLE["treat"], X, estimand="ATE", m=2, seed=5, **QUICK)
    expected = match(None, PEOPLE["treat"], X, estimand="ATE", m=2, metric=result.to_metric())
    assert result.matches.treated_index.tolist() == expected.treated_index.tolist()
    assert result.matches.control_index.tolist() == expected.control_index.tolist()


def test_a_seed_gives_one_answer_and_the_result_has_the_drawn_seed() -> None:
    first = gen_match(PEOPLE["treat"], X, **QUICK)
    repeated = gen_match(PEOPLE["treat"], X, seed=first.seed, **QUICK)
    other = gen_match(PEOPLE["treat"], X, seed=first.seed ^ 1, **QUICK)
    assert first.weights.tobytes() == repeated.weights.tobytes()
    assert first.weights.tobytes() != other.weights.tobytes()


@pytest.mark.parametrize("measure", ["qqmean.mean", "qqmean.max", "qqmax.max", mean_gap])
def test_distances_are_made_small(measure: Any) -> None:
    result = gen_match(PEOPLE["treat"], X, fitness=measure, seed=5, **QUICK)
    start = match_fitness(PEOPLE["treat"], X, None, np.ones(X.shape[1]), fitness=measure)
    assert tuple(result.fitness) <= tuple(start)
    assert result.fitness[0] < start[0]


def test_a_loss_function_of_the_caller_is_maximized() -> None:
    by_function = gen_match(PEOPLE["treat"], X, loss=sorted_values, seed=5, **QUICK)
    built_in = gen_match(PEOPLE["treat"], X, loss=1, seed=5, **QUICK)
    assert by_function.weights.tobytes() == built_in.weights.tobytes()
    assert by_function.fitness.tobytes() == built_in.fitness.tobytes()


def test_whole_weights_lie_in_their_domains() -> None:
    domains = np.array([[2.0, 9.0]] * X.shape[1])
    result = gen_match(PEOPLE["treat"], X, integer=True, domains=domains, seed=5, **QUICK)
    assert (result.weights == np.round(result.weights)).all()
    assert ((result.weights >= 2) & (result.weights <= 9)).all()


def test_a_better_start_is_not_lost() -> None:
    good = gen_match(PEOPLE["treat"], X, seed=5, population=100, generations=8)
    result = gen_match(PEOPLE["treat"], X, starting_values=good.weights, seed=6, **QUICK)
    assert tuple(result.fitness) >= tuple(good.fitness)


def test_balance_is_judged_among_common_rows_only() -> None:
    result = gen_match(PEOPLE["treat"], X, common_support=True, seed=5, **QUICK)
    smallest = result.balance().smallest_after
    assert smallest is not None
    assert result.matches.n < result.matches.rows
    assert result.fitness[0] == pytest.approx(smallest.value, rel=1e-9)


def test_progress_reports_each_generation_and_the_limit() -> None:
    reports: list[tuple[int, int]] = []
    result = gen_match(
        PEOPLE["treat"],
        X,
        seed=5,
        progress=lambda generation, limit: reports.append((generation.number, limit)),
        **QUICK,
    )
    assert [number for number, _ in reports] == list(range(result.generations + 1))
    assert {limit for _, limit in reports} == {QUICK["generations"]}


def test_the_summary_names_the_weights_and_the_worst_balance() -> None:
    result = usual()
    summary = result.summary()
    for name in NAMES:
        assert name in summary
    assert f"{result.fitness[0]:.5g}" in summary
    assert "Smallest p-value" in summary


def test_the_plot_ends_with_the_balance_of_the_weights() -> None:
    result = usual()
    after = result.balance().after
    assert after is not None
    worst = max(abs(column.sdiff) for column in after)
    described = result.plot().to_dict()["description"]
    assert f"{worst:.1f} %" in described.rpartition("before matching")[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domains": [[0, 1]]}, r"domains have shape \(1, 2\) and X has 2 columns"),
        ({"domains": [[0, 1], [5, 2]]}, r"domains, column 'b': .* between 5 and 2"),
        ({"domains": [[-1, 1], [0, 2]]}, r"domains, column 'a': .* between -1 and 1"),
        ({"domains": [[0, np.inf], [0, 2]]}, r"domains, column 'a'"),
        ({"starting_values": [1, 2000]}, r"starting value 1: parameter 2 is 2000, outside"),
        ({"starting_values": [1, 2, 3]}, r"starting_values have shape"),
        ({"population": 1}, r"population is 1"),
        ({"generations": 0}, r"generations is 0"),
        ({"wait_generations": -1}, r"wait_generations is -1"),
        ({"seed": -1}, r"seed"),
        ({"fitness": "best"}, r"there is no fitness 'best'"),
        ({"loss": 3}, r"there is no loss 3"),
        ({"fitness": always_raises}, r"fitness raised ZeroDivisionError.* for the weights w = \["),
        ({"balance": np.ones((3, 1))}, r"balance has 3 rows and X has 8"),
        ({"executor": 4}, r"executor is int, which has no submit"),
        ({"exact": True}, r"no unit has a valid match"),
    ],
)
def test_unusable_input_is_named(options: dict[str, Any], message: str) -> None:
    x = pandas.DataFrame({"a": np.arange(8.0), "b": [2, 7, 1, 8, 2, 8, 1, 8]})
    with pytest.raises(UnusableInput, match=message):
        gen_match(np.array([1, 0, 1, 0, 0, 1, 0, 0]), x, **{**QUICK, **options})


def test_the_package_gives_the_function_and_not_its_file() -> None:
    """In a fresh interpreter: an import from the package, as the documentation shows it."""
    script = "from equipoise_matching import gen_match; print(callable(gen_match))"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "True"
