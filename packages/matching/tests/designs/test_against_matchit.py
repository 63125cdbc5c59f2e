"""Strata and weights of R's MatchIt 4.5.1 beside those of `cem` and `subclassify`, live."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching import cem, propensity_score, subclassify
from equipoise_matching.designs.stratum_pairs import whitened
from equipoise_matching.matching.options import Estimand
from packages.matching.tests.designs.matchit import (
    answers_of_matchit,
    partition,
    shares,
)
from packages.matching.tests.matching.nsw import lalonde

Floats = NDArray[np.float64]
ESTIMANDS: tuple[Estimand, ...] = ("ATT", "ATC", "ATE")
RACES = np.array(["black", "hispanic", "white", "other"])


def columns_of_rows(rows: int, seed: int) -> dict[str, Any]:
    """Return treatment and covariates: numbers, counts, two values and texts."""
    generator = np.random.default_rng([37, seed])
    age = np.round(generator.normal(35, 9, rows), 1)
    race = RACES[generator.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])]
    chance = 1 / (1 + np.exp(1 - (age - 35) / 12 - (race == "black")))
    return {
        "treat": (generator.random(rows) < chance).astype(int).tolist(),
        "age": age.tolist(),
        "income": np.round(np.exp(generator.normal(8, 1, rows)), 2).tolist(),
        "educ": generator.integers(5, 17, rows).tolist(),
        "married": generator.integers(0, 2, rows).tolist(),
        "race": race.tolist(),
    }


def covariates(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if name != "treat"}


CEM_OPTIONS: list[dict[str, Any]] = [
    {},
    {"cutpoints": {"age": [20, 30, 40, 50], "income": [1000, 5000], "educ": [8, 12]}},
    {"cutpoints": {"age": 4, "income": "scott", "educ": 3}},
    {"cutpoints": {"age": "fd", "income": 2, "educ": "sturges"}},
    {
        "cutpoints": {"age": 3, "income": 2, "educ": 2},
        "grouping": {"race": [["black", "hispanic"], ["white", "other"]]},
    },
    {"cutpoints": {"age": 3, "income": 2, "educ": 2}, "grouping": {"race": [["white", "other"]]}},
]


def test_strata_and_weights_of_cem_are_those_of_matchit(tmp_path: Path) -> None:
    questions, designs = [], []
    for seed, options in enumerate(CEM_OPTIONS):
        columns = columns_of_rows(600, seed)
        for estimand in ESTIMANDS:
            theirs = {"method": "cem", "estimand": estimand, **options}
            questions.append({"columns": columns, "options": theirs})
            designs.append(cem(columns["treat"], covariates(columns), estimand=estimand, **options))
    answers = answers_of_matchit(questions, tmp_path)
    for design, answer in zip(designs, answers, strict=True):
        assert design.strata is not None
        assert (design.strata >= 0).sum() > 20
        np.testing.assert_array_equal(partition(design.strata), partition(answer.strata))
        treated = design.units.treated
        np.testing.assert_allclose(
            shares(design.weights, treated), shares(answer.weights, treated), rtol=1e-8, atol=0
        )


def total_distance(coordinates: Floats, strata: NDArray[np.int64]) -> float:
    """Return the sum of the distances within pairs; the strata have two rows each."""
    rows = np.flatnonzero(strata >= 0)
    order = rows[np.argsort(strata[rows], kind="stable")]
    differences = coordinates[order[0::2]] - coordinates[order[1::2]]
    return float(np.sqrt((differences**2).sum(axis=1)).sum())


def test_pairs_within_strata_are_as_many_as_matchits_and_nearer_in_total(tmp_path: Path) -> None:
    questions, designs, coordinates = [], [], []
    cutpoints = {"age": 3, "income": 2, "educ": 2}
    for seed in range(3):
        columns = {**columns_of_rows(300, seed)}
        del columns["race"]
        theirs = {"method": "cem", "k2k": True, "cutpoints": cutpoints}
        questions.append({"columns": columns, "options": theirs})
        design = cem(columns["treat"], covariates(columns), cutpoints=cutpoints, k2k=True)
        designs.append(design)
        coordinates.append(whitened(design.units.matrix))
    answers = answers_of_matchit(questions, tmp_path)
    for design, answer, points in zip(designs, answers, coordinates, strict=True):
        assert design.strata is not None
        assert (design.strata >= 0).sum() == (answer.strata >= 0).sum()
        ours, theirs_total = (
            total_distance(points, strata) for strata in (design.strata, answer.strata)
        )
        assert ours <= theirs_total * (1 + 1e-9)


def test_subclasses_and_weights_are_those_of_matchit(tmp_path: Path) -> None:
    questions, designs = [], []
    for subclasses, estimand in itertools.product((2, 5, 8), ESTIMANDS):
        columns = columns_of_rows(700, subclasses)
        numbers = {name: columns[name] for name in ("age", "educ")}
        score = propensity_score(np.column_stack(list(numbers.values())), columns["treat"]).score
        theirs = {
            "method": "subclass",
            "estimand": estimand,
            "subclass": subclasses,
            "distance": score.tolist(),
        }
        questions.append({"columns": {**numbers, "treat": columns["treat"]}, "options": theirs})
        designs.append(
            subclassify(columns["treat"], numbers, subclasses=subclasses, estimand=estimand)
        )
    for design, answer in zip(designs, answers_of_matchit(questions, tmp_path), strict=True):
        assert design.strata is not None
        np.testing.assert_array_equal(partition(design.strata), partition(answer.strata))
        treated = design.units.treated
        np.testing.assert_allclose(
            shares(design.weights, treated), shares(answer.weights, treated), rtol=1e-8, atol=0
        )


def test_lalondes_experiment_has_matchits_strata(tmp_path: Path) -> None:
    names = ("age", "educ", "black", "hisp", "married", "nodegr", "re74", "re75")
    columns = {name: lalonde()[name].tolist() for name in ("treat", *names)}
    design = cem(columns["treat"], covariates(columns))
    question = {"columns": columns, "options": {"method": "cem"}}
    (answer,) = answers_of_matchit([question], tmp_path)
    assert design.strata is not None
    np.testing.assert_array_equal(partition(design.strata), partition(answer.strata))
