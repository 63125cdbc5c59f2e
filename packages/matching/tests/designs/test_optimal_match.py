"""Optimal matching: pairs against all assignments, scipy's assignment and a published table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from equipoise_matching import UnusableInput, optimal_match
from equipoise_matching.designs import distance as distance_module
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.matching.units import Floats
from packages.matching.tests.designs.plants import PLANTS


def total(design: Design) -> float:
    return float(design.details["Total distance"])


def treatment(treated: int, controls: int) -> list[int]:
    return [1] * treated + [0] * controls


def smallest_total(matrix: Floats, k: int) -> tuple[int, int, float]:
    """Return minus the pairs, minus the matched rows and the distance of the best assignment."""

    def choices(row: int) -> Iterator[tuple[int, ...]]:
        admissible = np.flatnonzero(np.isfinite(matrix[row])).tolist()
        for size in range(min(k, len(admissible)) + 1):
            yield from itertools.combinations(admissible, size)

    best = (0, 0, 0.0)
    for assignment in itertools.product(*(list(choices(row)) for row in range(len(matrix)))):
        used = [column for columns in assignment for column in columns]
        if len(set(used)) == len(used):
            distances = [matrix[row, column] for row, columns in enumerate(assignment)
                         for column in columns]  # fmt: skip
            covered = sum(bool(columns) for columns in assignment)
            best = min(best, (-len(used), -covered, float(sum(distances))))
    return best


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with a sparse graph even if there are few pairs."""
    monkeypatch.setattr(distance_module, "MAX_STORED_PAIRS", 0)
    monkeypatch.setattr(distance_module, "PAIRS_PER_ROW_OF_A_CELL", 0)


@pytest.mark.parametrize("seed", range(25))
def test_small_matchings_are_the_best_of_all_assignments(seed: int) -> None:
    random = np.random.default_rng(seed)
    k = 1 + seed % 2
    matrix = random.integers(0, 9, (3, 5 if k == 2 else 4)).astype(float)
    matrix[random.random(matrix.shape) < 0.3] = np.inf
    if not np.isfinite(matrix).any():
        pytest.skip("no pair is admissible for this seed")
    design = optimal_match(
        treatment(*matrix.shape), np.zeros((sum(matrix.shape), 1)), k=k, distances=matrix
    )
    pairs = design.pairs()
    answer = (-len(pairs), -len(np.unique(pairs[:, 0])), total(design))
    assert answer == pytest.approx(smallest_total(matrix, k))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("columns", [1, 2, 6])
def test_the_total_is_that_of_scipys_assignment(columns: int, k: int) -> None:
    random = np.random.default_rng(columns)
    # Treated rows are shifted, so that near controls are scarce.
    x = np.vstack([random.normal(0.8, 1, (120, columns)), random.normal(0, 1, (700, columns))])
    design = optimal_match(treatment(120, 700), x, k=k, metric="euclidean")
    matrix = np.repeat(cdist(x[:120], x[120:]), k, axis=0)
    assert total(design) == pytest.approx(matrix[linear_sum_assignment(matrix)].sum(), rel=1e-9)
    assert len(design.pairs()) == 120 * k


@pytest.mark.usefixtures("sparse")
@pytest.mark.parametrize("treated", [60, 150, 200])
def test_scarce_controls_are_matched_as_by_scipy(treated: int) -> None:
    random = np.random.default_rng(treated)
    x = np.concatenate([random.normal(2, 1, treated), random.normal(0, 1, 150)])
    design = optimal_match(treatment(treated, 150), x, metric="euclidean")
    matrix = np.abs(x[:treated, np.newaxis] - x[treated:])
    assert total(design) == pytest.approx(matrix[linear_sum_assignment(matrix)].sum(), rel=1e-9)
    assert len(design.pairs()) == min(treated, 150)


@pytest.mark.usefixtures("sparse")
@pytest.mark.parametrize("spread", [1e-12, 1e-9, 1e-6])
def test_scores_that_are_almost_equal_are_told_apart(spread: float) -> None:
    random = np.random.default_rng(1)
    x = 0.5 + spread * np.concatenate([random.normal(1, 1, 80), random.normal(0, 1, 300)])
    design = optimal_match(treatment(80, 300), x, metric="euclidean")
    matrix = np.abs(x[:80, np.newaxis] - x[80:])
    best = matrix[linear_sum_assignment(matrix)].sum()
    assert total(design) == pytest.approx(best, rel=1e-6)
    assert design.details["Lower bound"] <= best * (1 + 1e-9)


@pytest.mark.usefixtures("sparse")
def test_calipers_and_cells_in_a_sparse_graph_are_those_of_the_full_matrix() -> None:
    random = np.random.default_rng(5)
    x = random.normal(size=(400, 3))
    cells = random.integers(0, 3, 400)
    treat = np.arange(400) < 100
    caliper = {"x0": 0.5, "distance": 1.5}
    design = optimal_match(treat, x, caliper=caliper, exact=cells)
    points = x @ np.linalg.cholesky(np.linalg.inv(np.cov(x.T)))
    matrix = cdist(points[:100], points[100:])
    is_admissible = (matrix <= 1.5) & (cells[:100, np.newaxis] == cells[100:])
    is_admissible &= np.abs(x[:100, :1] - x[100:, 0]) <= 0.5 * x[:, 0].std()
    cost = np.where(is_admissible, matrix, 1e6)
    rows, columns = linear_sum_assignment(cost)
    kept = is_admissible[rows, columns]
    assert len(design.pairs()) == kept.sum() < 100
    assert total(design) == pytest.approx(matrix[rows[kept], columns[kept]].sum(), rel=1e-9)


def test_the_published_plants_are_matched_as_by_scipy() -> None:
    # Hansen and Klopfer (2006, table 1): seven new nuclear plants and nineteen others.
    for k in (1, 2):
        design = optimal_match(treatment(7, 19), np.zeros((26, 1)), k=k, distances=PLANTS)
        matrix = np.repeat(PLANTS, k, axis=0)
        assert total(design) == matrix[linear_sum_assignment(matrix)].sum()
        assert design.details["Gap"] < 1e-6


def test_the_lower_bound_proves_that_no_matching_is_better() -> None:
    x = np.random.default_rng(1).normal(size=(1500, 4))
    details = optimal_match(np.arange(1500) < 300, x).details
    assert 0 <= details["Gap"] <= 1e-7 * details["Total distance"]
    assert details["Lower bound"] + details["Gap"] == pytest.approx(details["Total distance"])
    assert details["Arcs"] < 300 * 1200 / 10


def test_mahalanobis_is_the_distance_by_the_covariance_of_all_rows() -> None:
    random = np.random.default_rng(2)
    x = random.normal(size=(60, 3)) @ random.normal(size=(3, 3))
    treat = np.arange(60) < 20
    inverse = np.linalg.inv(np.cov(x.T))
    distances = cdist(x[treat], x[~treat], "mahalanobis", VI=inverse)
    answers = [optimal_match(treat, x), optimal_match(treat, x, distances=distances)]
    assert answers[0].pairs().tolist() == answers[1].pairs().tolist()
    assert total(answers[0]) == pytest.approx(total(answers[1]), rel=1e-12)


def test_a_collinear_and_a_constant_column_change_nothing() -> None:
    x = np.random.default_rng(3).normal(size=(50, 2))
    treat = np.arange(50) < 15
    wide = np.column_stack([x, x.sum(axis=1), np.full(50, 7.0)])
    assert total(optimal_match(treat, wide)) == pytest.approx(total(optimal_match(treat, x)))


def test_weights_of_a_metric_count_on_standardised_columns() -> None:
    x = np.random.default_rng(3).normal(size=(50, 2)) * [1, 100]
    treat = np.arange(50) < 15
    standard = x / x.std(axis=0, ddof=1)
    weighted = optimal_match(treat, x, metric=[4.0, 1.0])
    scaled = optimal_match(treat, standard * [2, 1], metric="euclidean")
    assert total(weighted) == pytest.approx(total(scaled))


def test_a_treated_row_without_an_admissible_control_is_left_out() -> None:
    design = optimal_match([1, 1, 1, 0, 0, 0], [0.0, 5, 90, 1, 4, 8], metric="euclidean", caliper=3)
    assert design.strata is not None
    assert design.strata.tolist() == [0, 1, LEFT_OUT, 0, 1, LEFT_OUT]
    assert design.weights.tolist() == [1, 1, 0, 1, 1, 0]
    assert design.details["Treated without an admissible match"] == 1


def test_each_row_gets_a_first_match_before_another_gets_its_second() -> None:
    design = optimal_match([1, 1, 0, 0], [0.0, 10, 1, 2], k=2, metric="euclidean")
    assert design.pairs().tolist() == [[0, 2], [1, 3]]


def test_the_atc_matches_controls_to_treated_rows() -> None:
    x = np.random.default_rng(4).normal(size=(40, 2))
    treat = np.arange(40) < 25
    atc, mirrored = optimal_match(treat, x, estimand="ATC"), optimal_match(~treat, x)
    assert atc.weights.tolist() == mirrored.weights.tolist()
    assert atc.pairs()[:, ::-1].tolist() == sorted(mirrored.pairs().tolist(), key=lambda p: p[1])


def test_k_matches_share_the_weight_of_their_row() -> None:
    x = np.random.default_rng(4).normal(size=(40, 2))
    treat = np.arange(40) < 10
    design = optimal_match(treat, x, k=2)
    assert sorted(set(design.weights.tolist())) == pytest.approx([0, 1 / 2, 1])
    assert design.weights[~treat].sum() == pytest.approx(10)


def test_exact_columns_and_exact_values_give_the_same_pairs() -> None:
    random = np.random.default_rng(6)
    x = np.column_stack([random.normal(size=80), random.integers(0, 2, 80)])
    treat = np.arange(80) < 20
    by_name = optimal_match(treat, x, exact="x1")
    by_value = optimal_match(treat, x, exact=np.where(x[:, 1] == 1, "yes", "no"))
    pairs = by_name.pairs()
    assert (x[pairs[:, 0], 1] == x[pairs[:, 1], 1]).all()
    assert pairs.tolist() == by_value.pairs().tolist()


def test_many_equal_rows_are_matched_at_distance_0() -> None:
    x = np.tile(np.arange(6.0), 100)
    treat = np.repeat([1, 0], [200, 400])
    design = optimal_match(treat, x)
    assert total(design) == 0
    assert len(design.pairs()) == 200


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_are_matched_as_by_scipy(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    x = np.vstack([random.random((60, 3)) < 0.7, random.random((150, 3)) < 0.3]).astype(float)
    design = optimal_match(treatment(60, 150), x, k=k, metric=[3.0, 2.0, 1.0])
    standard = x / x.std(axis=0, ddof=1) * np.sqrt([3, 2, 1])
    matrix = np.repeat(cdist(standard[:60], standard[60:]), k, axis=0)
    pairs = design.pairs()
    assert total(design) == pytest.approx(matrix[linear_sum_assignment(matrix)].sum(), rel=1e-9)
    assert matrix[pairs[:, 0] * k, pairs[:, 1] - 60].sum() == pytest.approx(total(design))
    assert np.bincount(pairs[:, 0], minlength=60).tolist() == [k] * 60


@settings(max_examples=40, deadline=None)
@given(
    treat=st.lists(st.sampled_from([0, 1]), min_size=2, max_size=25).filter(
        lambda t: len({*t}) > 1
    ),
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 4),
    scale=st.sampled_from([1e-200, 1e-3, 1.0, 1e150]),
)
def test_any_matching_uses_each_control_once_and_is_certified(
    treat: list[int], seed: int, k: int, scale: float
) -> None:
    x = np.random.default_rng(seed).integers(0, 5, (len(treat), 2)) * scale
    if (x == x[0]).all():
        x[0] += scale
    design = optimal_match(treat, x, k=k, metric="euclidean")
    pairs = design.pairs()
    assert len(np.unique(pairs[:, 1])) == len(pairs) == min(k * sum(treat), treat.count(0))
    assert np.asarray(treat)[pairs].tolist() == [[1, 0]] * len(pairs)
    distances = np.sqrt(((x[pairs[:, 0]] / scale - x[pairs[:, 1]] / scale) ** 2).sum(axis=1))
    assert total(design) / scale == pytest.approx(distances.sum())
    assert design.details["Gap"] / scale <= 1e-5


BAD_CALLS: list[tuple[dict[str, Any], str, str]] = [
    ({"k": 0}, "k is 0", "whole number"),
    ({"estimand": "ATE"}, "estimand 'ATE'", "full_match"),
    ({"metric": "chebyshev"}, "metric 'chebyshev'", "mahalanobis"),
    ({"metric": [0.0, 0.0]}, "metric is 0", "above 0"),
    ({"caliper": -1}, "caliper of distance is -1", "at least 0"),
    ({"caliper": {"age": 1}}, "'age'", "x0, x1"),
    ({"caliper": 1e-9}, "no pair of rows is admissible", "widen"),
    ({"exact": "age"}, "'age'", "x0, x1"),
    ({"exact": np.arange(6)}, "no pair of rows is admissible", "exact"),
    ({"exact": [1, 2]}, "exact has 2 rows", "one row for each unit"),
    ({"distances": np.zeros((2, 2))}, "shape (2, 2)", "a row for each treated row"),
    ({"distances": np.full((3, 3), np.nan)}, "distances is missing or negative", "infinite"),
]


@pytest.mark.parametrize(("options", "what", "hint"), BAD_CALLS, ids=lambda value: str(value)[:40])
def test_unusable_options_end_in_one_line(options: dict[str, Any], what: str, hint: str) -> None:
    x = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(UnusableInput) as error:
        optimal_match([1, 1, 1, 0, 0, 0], x, **options)
    assert what in error.value.what
    assert error.value.hint is not None and hint in error.value.hint


def test_covariates_without_any_difference_are_refused() -> None:
    with pytest.raises(UnusableInput, match="have one value in all rows"):
        optimal_match([1, 0, 0], np.ones((3, 2)))
