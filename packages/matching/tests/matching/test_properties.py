"""Properties of every match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise_matching import _native
from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.matching.options import MatchOptions
from equipoise_matching.matching.units import units_of

Floats = NDArray[np.float64]
Data = tuple[Floats, Floats, Floats]


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Outcome, treatment and covariates: continuous or with many ties."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, columns = draw(st.integers(8, 150)), draw(st.integers(1, 5))
    x = generator.normal(size=(rows, columns))
    if draw(st.booleans()):
        x = np.round(x * draw(st.sampled_from([0.5, 1.0, 3.0])))
    treat = (generator.random(rows) < 0.4).astype(np.float64)
    treat[:2], treat[2:4] = 1, 0
    return x.sum(axis=1) + treat + generator.normal(size=rows), treat, x


estimands = st.sampled_from(["ATT", "ATC", "ATE"])
metrics = st.sampled_from(["inverse_variance", "mahalanobis"])


def pairs(result: MatchResult, renamed: Any = None) -> set[tuple[int, int]]:
    name = np.arange(result.rows) if renamed is None else renamed
    return set(
        zip(name[result.treated_index].tolist(), name[result.control_index].tolist(), strict=True)
    )


def assert_same_numbers(first: MatchResult, second: MatchResult) -> None:
    assert first.estimate == pytest.approx(second.estimate, rel=1e-7, abs=1e-9)
    assert first.se == pytest.approx(second.se, rel=1e-6, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(data(), estimands, metrics, st.integers(1, 4))
def test_the_order_of_rows_does_not_matter(
    sample: Data, estimand: Any, metric: str, m: int
) -> None:
    y, treat, x = sample
    order = np.random.default_rng(1).permutation(len(y))
    plain = match(y, treat, x, estimand=estimand, metric=metric, m=m)
    shuffled = match(y[order], treat[order], x[order], estimand=estimand, metric=metric, m=m)
    assert pairs(shuffled, order) == pairs(plain)
    assert_same_numbers(shuffled, plain)


@settings(deadline=None, max_examples=60)
@given(data(), estimands, metrics, st.sampled_from([1e-12, 0.37, 1e12]))
def test_neither_the_order_nor_the_scale_of_columns_matters(
    sample: Data, estimand: Any, metric: str, scale: float
) -> None:
    y, treat, x = sample
    changed = x[:, ::-1].copy()
    changed[:, 0] *= scale
    plain = match(y, treat, x, estimand=estimand, metric=metric)
    other = match(y, treat, changed, estimand=estimand, metric=metric)
    assert pairs(other) == pairs(plain)
    assert_same_numbers(other, plain)


def pairs_by(
    method: Any, threads: int, sample: Data, weights: Any = None, **more: Any
) -> tuple[Any, ...]:
    units = units_of(*sample, weights)
    options = MatchOptions(
        **{
            "estimand": "ATE",
            "matches": 2,
            "metric": "inverse_variance",
            "caliper": None,
            "restrictions": [],
            "replace": True,
            "ties": True,
            "tolerance": 1e-5,
            "r_compatible": False,
            "threads": threads,
            "seed": 5,
            "search": method,
        }
        | more
    )
    matcher = _native.Matcher(units, options)
    assert method == "chosen" or matcher.uses_tree == (method == "tree")
    result = matcher.pairs(None)
    variances = matcher.variances(result, 2.0).tobytes()
    return result.query.tolist(), result.matched.tolist(), result.weights.tolist(), variances


@settings(deadline=None, max_examples=100)
@given(
    data(),
    st.sampled_from(
        [
            {},
            {"ties": False},
            {"ties": False, "replace": False},
            {"metric": "mahalanobis"},
            {"estimand": "ATC", "matches": 1},
            {"restrictions": [(0, 2, -1.0), (1, 3, 0.0)]},
        ]
    ),
    st.booleans(),
    st.booleans(),
)
def test_a_tree_and_brute_force_find_the_same_with_any_number_of_threads(
    sample: Data, more: dict[str, Any], fenced: bool, weighted: bool
) -> None:
    if fenced:
        caliper = np.full((1, sample[2].shape[1]), np.inf)
        caliper[0, 0] = 0.7
        more = more | {"caliper": caliper}
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(sample[0])) if weighted else None
    expected = pairs_by("brute_force", 1, sample, weights, **more)
    assert pairs_by("tree", 1, sample, weights, **more) == expected
    assert pairs_by("tree", 3, sample, weights, **more) == expected
    assert pairs_by("brute_force", 2, sample, weights, **more) == expected


def available(instructions: str, sample: Data) -> bool:
    try:
        pairs_by("chosen", 1, sample, instructions=instructions)
    except ValueError as error:
        assert instructions in str(error)
        return False
    return True


@pytest.mark.parametrize("rows", [70, 1500])
@pytest.mark.parametrize("method", ["brute_force", "tree"])
@pytest.mark.parametrize("more", [{}, {"replace": False, "ties": False}, {"matches": 5}])
def test_all_instructions_of_the_processor_find_the_same_pairs(
    rows: int, method: str, more: dict[str, Any]
) -> None:
    generator = np.random.default_rng(rows)
    x = generator.normal(size=(rows, 7))
    treat = (generator.random(rows) < 0.4).astype(np.float64)
    sample = x.sum(axis=1), treat, x
    *expected, expected_variances = pairs_by(method, 1, sample, instructions="portable", **more)
    for instructions in ("avx2", "avx512"):
        if available(instructions, sample):
            *result, variances = pairs_by(method, 1, sample, instructions=instructions, **more)
            assert result == expected
            np.testing.assert_allclose(
                np.frombuffer(variances), np.frombuffer(expected_variances), rtol=1e-12
            )


@pytest.mark.parametrize("more", [{}, {"matches": 4}, {"replace": False, "ties": False}])
@pytest.mark.parametrize("columns", [1, 3, 10])
def test_a_tree_and_brute_force_find_the_same_among_thousands(
    columns: int, more: dict[str, Any]
) -> None:
    generator = np.random.default_rng(columns)
    x = generator.normal(size=(3000, columns))
    treat = (generator.random(3000) < 0.3).astype(np.float64)
    sample = x.sum(axis=1), treat, x
    expected = pairs_by("brute_force", 1, sample, **more)
    assert pairs_by("tree", 2, sample, **more) == expected
    assert pairs_by("chosen", 2, sample, **more) == expected


def test_an_unknown_instruction_set_is_refused() -> None:
    sample = np.arange(4.0), np.array([1.0, 1, 0, 0]), np.eye(4)
    with pytest.raises(ValueError, match="abacus"):
        pairs_by("chosen", 1, sample, instructions="abacus")


@settings(deadline=None, max_examples=40)
@given(data(), estimands, st.integers(2, 3))
def test_duplicates_count_with_their_multiplicity(sample: Data, estimand: Any, copies: int) -> None:
    y, treat, x = sample
    # N / (N - 1) is part of the scale: what just ties at one N may not do so at another.
    options: dict[str, Any] = {
        "estimand": estimand,
        "metric": np.ones(x.shape[1]),
        "distance_tolerance": 0.0,
    }
    many = match(np.tile(y, copies), np.tile(treat, copies), np.tile(x, (copies, 1)), **options)
    once = match(y, treat, x, **options)
    assert pairs(many, np.tile(np.arange(len(y)), copies)) == pairs(once)
    assert len(many.weights) == copies**2 * len(once.weights)
    assert many.estimate == pytest.approx(once.estimate, rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(data(), metrics, st.integers(1, 3))
def test_the_effect_on_the_treated_mirrors_that_on_the_controls(
    sample: Data, metric: str, m: int
) -> None:
    y, treat, x = sample
    m = min(m, int(treat.sum()), int((1 - treat).sum()))
    treated = match(y, treat, x, estimand="ATT", metric=metric, m=m)
    mirrored = match(y, 1 - treat, x, estimand="ATC", metric=metric, m=m)
    assert treated.estimate == pytest.approx(-(mirrored.estimate or 0.0), abs=1e-12)
    assert treated.se == pytest.approx(mirrored.se)
    assert list(treated.treated_index) == list(mirrored.control_index)


@settings(deadline=None, max_examples=40)
@given(data(), estimands)
def test_an_earlier_match_can_be_reused_for_another_outcome(sample: Data, estimand: Any) -> None:
    y, treat, x = sample
    earlier = match(None, treat, x, estimand=estimand)
    reused = match(y, treat, x, estimand=estimand, reuse=earlier)
    assert_same_numbers(reused, match(y, treat, x, estimand=estimand))


@settings(deadline=None, max_examples=40)
@given(data(), st.integers(0, 99))
def test_random_ties_are_among_all_ties(sample: Data, seed: int) -> None:
    y, treat, x = sample
    tied = match(y, treat, x, m=2)
    random_ties = match(y, treat, x, m=2, ties=False, seed=seed)
    assert pairs(random_ties) <= pairs(tied)
    expected_matches = min(2, int((1 - treat).sum()))
    assert set(np.unique(random_ties.treated_index, return_counts=True)[1]) == {expected_matches}


@settings(deadline=None, max_examples=40)
@given(data(), estimands, st.integers(1, 3))
def test_equal_rows_taken_together_or_one_by_one_give_the_same(
    sample: Data, estimand: Any, m: int
) -> None:
    y, treat, x = sample
    together = match(y, treat, x, estimand=estimand, m=m)
    # With weights every row is searched for on its own.
    one_by_one = match(y, treat, x, estimand=estimand, m=m, weights=np.ones(len(y)))
    assert pairs(one_by_one) == pairs(together)
    assert_same_numbers(one_by_one, together)


@settings(deadline=None, max_examples=40)
@given(data(), estimands, st.integers(1, 3), st.integers(0, 99))
def test_a_row_of_weight_two_counts_as_two_equal_rows(
    sample: Data, estimand: Any, m: int, seed: int
) -> None:
    y, treat, x = sample
    times = np.random.default_rng(seed).integers(1, 4, len(y))
    m = min(m, int(treat.sum()), int((1 - treat).sum()))
    options: dict[str, Any] = {"estimand": estimand, "m": m, "metric": np.ones(x.shape[1])}
    # N / (N - 1) scales every distance alike; the tolerance must not notice.
    options["distance_tolerance"] = 0.0
    weighted = match(y, treat, x, weights=times, **options)
    many = [np.repeat(values, times, axis=0) for values in (y, treat, x)]
    repeated = match(*many, **options)
    assert weighted.estimate == pytest.approx(repeated.estimate, rel=1e-9, abs=1e-9)
    assert pairs(repeated, np.repeat(np.arange(len(y)), times)) == pairs(weighted)
