"""Full matching against all divisions of small data, and against a linear programme."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, vstack
from scipy.spatial.distance import cdist

from equipoise_matching import UnusableInput, full_match
from equipoise_matching.designs import distance as distance_module
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.full import stratum_ranges
from equipoise_matching.matching.units import Floats
from packages.matching.tests.designs.plants import PLANTS


def total(design: Design) -> float:
    return float(design.details["Total distance"])


def treatment(treated: int, controls: int) -> list[int]:
    return [1] * treated + [0] * controls


def matched(matrix: Floats, **options: Any) -> Design:
    n1, n2 = matrix.shape
    return full_match(treatment(n1, n2), np.zeros((n1 + n2, 1)), distances=matrix, **options)


def smallest_total(
    matrix: Floats, low: float = 0, high: float = math.inf, omitted: tuple[int, int] = (0, 0)
) -> float:
    """Return the smallest total distance of all sets of pairs that form strata; else infinity."""
    n1, n2 = matrix.shape
    chosen = (np.arange(2 ** (n1 * n2))[:, np.newaxis] >> np.arange(n1 * n2)) & 1
    sets = chosen.reshape(-1, n1, n2).astype(bool)
    controls, treated = sets.sum(axis=2), sets.sum(axis=1)
    # In a pair, one of both rows has no other pair.
    is_star = ~(sets & (controls[:, :, np.newaxis] > 1) & (treated[:, np.newaxis] > 1)).any((1, 2))
    is_star &= (controls == 0).sum(axis=1) <= omitted[0]
    is_star &= (treated == 0).sum(axis=1) <= omitted[1]
    # A control in t > 1 pairs is 1/t controls for each treated row.
    is_star &= (controls <= max(high, 1)).all(axis=1)
    is_star &= ((treated <= 1) | (1 / np.maximum(treated, 1) >= low)).all(axis=1)
    if low > 1:
        is_star &= ((controls == 0) | (controls >= low)).all(axis=1)
    if high < 1:
        is_star &= ((treated == 0) | (1 / np.maximum(treated, 1) <= high)).all(axis=1)
    sums = np.where(sets, matrix, 0.0).sum(axis=(1, 2))
    return float(sums[is_star].min(initial=np.inf))


LIMITS = [
    {},
    {"max_controls": 2},
    {"min_controls": 1},
    {"min_controls": 1 / 2},
    {"min_controls": 1 / 2, "max_controls": 2},
    {"min_controls": 1, "max_controls": 1},
    {"min_controls": 2},
    {"max_controls": 1},
    {"max_controls": 1 / 2},
    {"omit_fraction": 0.5},
    {"omit_fraction": -0.5},
    {"omit_fraction": 0.4, "max_controls": 2},
]


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 6), (1, 5), (5, 1)])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_small_full_matchings_are_the_best_of_all(
    limits: dict[str, float], shape: tuple[int, int]
) -> None:
    random = np.random.default_rng(shape[0] * 7 + len(limits))
    fraction = limits.get("omit_fraction", 0.0)
    options = {key: value for key, value in limits.items() if key != "omit_fraction"}
    omitted = (
        math.floor(max(-fraction, 0) * shape[0]),
        math.floor(max(fraction, 0) * shape[1]),
    )
    for _ in range(4):
        matrix = random.integers(0, 12, shape).astype(float)
        best = smallest_total(
            matrix, options.get("min_controls", 0), options.get("max_controls", math.inf), omitted
        )
        if math.isinf(best):
            with pytest.raises(UnusableInput, match="without a stratum"):
                matched(matrix, **limits)
        else:
            assert total(matched(matrix, **limits)) == best


def test_forbidden_pairs_are_not_formed() -> None:
    random = np.random.default_rng(11)
    for _ in range(10):
        matrix = random.integers(0, 12, (3, 4)).astype(float)
        matrix[random.random(matrix.shape) < 0.4] = np.inf
        has_partner = np.isfinite(matrix)
        matrix = matrix[has_partner.any(axis=1)][:, has_partner.any(axis=0)]
        if matrix.size:
            assert total(matched(matrix)) == smallest_total(np.where(matrix < np.inf, matrix, 1e9))


def by_linear_programme(matrix: Floats, limits: dict[str, Any]) -> float:
    """Return the smallest total distance with these degrees; its solution is in whole numbers."""
    n1, n2 = matrix.shape
    treated, controls = stratum_ranges(
        limits.get("min_controls", 0), limits.get("max_controls", math.inf)
    )
    cells = np.arange(n1 * n2)
    ones = np.ones(n1 * n2)
    sums = vstack([csr_array((ones, (cells // n2, cells))), csr_array((ones, (cells % n2, cells)))])
    low = np.repeat([treated[0], controls[0]], [n1, n2])
    high = np.repeat([treated[1], controls[1]], [n1, n2])
    answer = linprog(
        matrix.ravel(),
        A_ub=vstack([sums, -sums]),
        b_ub=np.concatenate([high, -low]),
        bounds=(0, 1),
    )
    return float(answer.fun)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("limits", [{}, {"max_controls": 3}, {"min_controls": 1 / 2}], ids=str)
def test_larger_full_matchings_have_the_total_of_a_linear_programme(
    limits: dict[str, Any], is_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_sparse:
        monkeypatch.setattr(distance_module, "MAX_STORED_PAIRS", 0)
        monkeypatch.setattr(distance_module, "PAIRS_PER_ROW_OF_A_CELL", 0)
    random = np.random.default_rng(3)
    x = np.vstack([random.normal(1, 1, (40, 3)), random.normal(0, 1, (90, 3))])
    design = full_match(treatment(40, 90), x, metric="euclidean", **limits)
    best = by_linear_programme(cdist(x[:40], x[40:]), limits)
    assert total(design) == pytest.approx(best, rel=1e-8)
    assert 0 <= design.details["Gap"] <= 1e-7 * best


def test_omitted_controls_are_as_in_a_mixed_integer_programme() -> None:
    n1, n2 = PLANTS.shape
    pairs, total_columns = n1 * n2, n1 * n2 + n2
    sums = np.zeros((n1 + n2 + 1, total_columns))
    for row in range(n1):
        sums[row, row * n2 : (row + 1) * n2] = 1
    for column in range(n2):
        sums[n1 + column, column:pairs:n2] = 1
        sums[n1 + column, pairs + column] = 1
    sums[-1, pairs:] = 1
    answer = milp(
        np.concatenate([PLANTS.ravel(), np.zeros(n2)]),
        constraints=LinearConstraint(sums, [1] * (n1 + n2) + [0], [np.inf] * (n1 + n2) + [9]),
        bounds=Bounds(0, 1),
        integrality=np.ones(total_columns),
    )
    design = matched(PLANTS, omit_fraction=9 / 19)
    assert total(design) == pytest.approx(answer.fun)
    assert design.details["Controls omitted"] <= 9


def test_a_full_match_of_the_plants_is_nearer_than_their_pairs() -> None:
    free, limited = matched(PLANTS), matched(PLANTS, min_controls=2, max_controls=3)
    assert total(free) < total(limited)
    assert total(free) == pytest.approx(by_linear_programme(PLANTS, {}))


def test_a_stratum_has_one_row_of_an_arm() -> None:
    x = np.random.default_rng(8).normal(size=(200, 2))
    treat = np.arange(200) < 90
    strata = full_match(treat, x).strata
    assert strata is not None and strata.min() == 0
    sizes = np.array([np.bincount(strata[treat]), np.bincount(strata[~treat])])
    assert sizes.min(axis=0).tolist() == [1] * sizes.shape[1]


def test_equal_rows_keep_strata_of_one_row_of_an_arm() -> None:
    x = np.tile(np.arange(3.0), 20)
    treat = np.arange(60) < 30
    design = full_match(treat, x)
    assert total(design) == 0
    assert design.strata is not None
    sizes = [np.bincount(design.strata[treat]), np.bincount(design.strata[~treat])]
    assert np.minimum(*sizes).max() == 1
    assert len(design.pairs()) >= 30


@pytest.mark.parametrize(
    ("estimand", "weights"),
    [
        ("ATT", [1, 1, 1, 0.5, 0.5, 2]),
        ("ATC", [2, 0.5, 0.5, 1, 1, 1]),
        # Half of the rows in each stratum; 1 of 3 treated rows in the first, 2 in the second.
        ("ATE", [1.5, 0.75, 0.75, 0.75, 0.75, 1.5]),
    ],
)
def test_the_weights_are_those_of_the_estimand(estimand: Any, weights: list[float]) -> None:
    treat, x = [1, 1, 1, 0, 0, 0], [0.0, 10, 11, 1, 2, 10]
    design = full_match(treat, x, metric="euclidean", estimand=estimand)
    assert design.strata is not None and design.strata.tolist() == [0, 1, 1, 0, 0, 1]
    assert design.weights.tolist() == pytest.approx(weights)


def test_rows_without_a_partner_are_left_out_and_counted() -> None:
    design = full_match([1, 1, 0, 0, 0], [0.0, 50, 1, 2, 90], metric="euclidean", caliper=5)
    assert design.strata is not None
    assert design.strata.tolist() == [0, LEFT_OUT, 0, 0, LEFT_OUT]
    assert design.details["Treated without an admissible match"] == 1
    assert design.details["Controls without an admissible match"] == 1


def test_exact_cells_are_matched_within() -> None:
    random = np.random.default_rng(9)
    x, cells = random.normal(size=(300, 2)), random.integers(0, 5, 300)
    treat = random.random(300) < 0.4
    design = full_match(treat, x, exact=cells)
    parts = [full_match(treat[cells == c], x[cells == c], metric="euclidean") for c in range(5)]
    pairs = design.pairs()
    assert (cells[pairs[:, 0]] == cells[pairs[:, 1]]).all()
    whole = full_match(treat, x, exact=cells, metric="euclidean")
    assert total(whole) == pytest.approx(sum(map(total, parts)), rel=1e-9)


def test_the_fractions_of_hansen_are_degrees_of_both_arms() -> None:
    assert stratum_ranges(1 / 3, 4) == ((1, 4), (1, 3))
    assert stratum_ranges(2, 5) == ((2, 5), (1, 1))
    assert stratum_ranges(1 / 4, 1 / 2) == ((1, 1), (2, 4))


BAD_CALLS: list[tuple[dict[str, Any], str, str]] = [
    ({"estimand": "all"}, "estimand 'all'", "ATE"),
    ({"min_controls": 0.4}, "min_controls is 0.4", "1/2"),
    ({"max_controls": 0}, "max_controls is 0", "1/2"),
    ({"max_controls": "two"}, "max_controls is 'two'", "1/2"),
    ({"min_controls": 3, "max_controls": 2}, "max_controls 2", "at least min_controls"),
    ({"omit_fraction": 1}, "omit_fraction is 1", "between"),
    ({"omit_fraction": 0.2, "max_controls": 0.5}, "cannot leave out controls", "max_controls"),
    ({"omit_fraction": -0.2, "min_controls": 2}, "cannot leave out treated", "min_controls"),
    ({"max_controls": 1}, "leave 2 of the controls without a stratum", "raise max_controls"),
    ({"min_controls": 3}, "of the treated without a stratum", "lower min_controls"),
    ({"caliper": 1e-9}, "no pair of rows is admissible", "widen"),
]


@pytest.mark.parametrize(("options", "what", "hint"), BAD_CALLS, ids=lambda value: str(value)[:40])
def test_unusable_options_end_in_one_line(options: dict[str, Any], what: str, hint: str) -> None:
    x = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(UnusableInput) as error:
        full_match([1, 1, 1, 0, 0, 0, 0, 0], x, **options)
    assert what in error.value.what
    assert error.value.hint is not None and hint in error.value.hint
