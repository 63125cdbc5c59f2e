"""The fitness of candidates is that of R's GenMatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.fitness import fitness_problem, match_fitness
from packages.matching.tests.matching.golden import answers
from packages.matching.tests.matching.nsw import lalonde

GOLDEN = answers("lalonde")


def columns() -> dict[str, Any]:
    """Return treatment, covariates and the covariates to balance, as in R."""
    data = lalonde()
    balance = [
        np.prod([data[part] for part in name.split("*")], axis=0) for name in GOLDEN["balance"]
    ]
    return {
        "treat": data["treat"],
        "X": np.column_stack([data[name] for name in GOLDEN["x"]]),
        "balance": np.column_stack(balance),
    }


@pytest.mark.parametrize("case", GOLDEN["fitness"], ids=range(len(GOLDEN["fitness"])))
def test_fitness_and_number_of_pairs_are_those_of_r(case: dict[str, Any]) -> None:
    units = columns()
    criteria = match_fitness(**units, w=case["par"], estimand="ATE")
    np.testing.assert_allclose(criteria, case["fitness"], rtol=0, atol=1e-10)
    matches = fitness_problem(**units, estimand="ATE").matches(case["par"])
    assert len(matches.weights) == case["pairs"]


def test_one_call_judges_a_whole_population() -> None:
    units = columns()
    population = [case["par"] for case in GOLDEN["fitness"]]
    criteria = match_fitness(**units, w=population, estimand="ATE", threads=1)
    assert criteria.shape == (8, 22)
    for row, weights in zip(criteria, population, strict=True):
        np.testing.assert_array_equal(row, match_fitness(**units, w=weights, estimand="ATE"))
    twice = match_fitness(**units, w=population * 5, estimand="ATE", threads=2)
    np.testing.assert_array_equal(twice, np.tile(criteria, (5, 1)))


@pytest.mark.parametrize("copies", [2, 4])
def test_copies_of_all_rows_link_the_same_people(copies: int) -> None:
    units: dict[str, Any] = {
        name: np.concatenate([values] * copies) for name, values in columns().items()
    }
    case = GOLDEN["fitness"][1]
    problem = fitness_problem(**units, estimand="ATE")
    assert len(problem.matches(case["par"]).weights) == case["pairs"] * copies**2
