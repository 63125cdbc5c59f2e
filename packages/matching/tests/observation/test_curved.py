"""Measured confounders of a curved shape (benchmarks/observe/curved.py has every shape)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.observe.curved import judge, make_log
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.covariates import Covariates
from equipoise_matching.observation.overlap import fit_logit, fit_treatment
from equipoise_matching.observation.result import ColumnBalance, ObservationResult
from equipoise_matching.observation.terms import select_terms, term_dictionary_of
from equipoise_matching.observation.wording import unbalanced_clause
from packages.matching.tests.observation.logs import question

LOGS = 20


def lower_limit(share: float, logs: int) -> float:
    """Return the count that lies four standard errors of a share below it."""
    return logs * (share - 4.0 * math.sqrt(share * (1.0 - share) / logs))


@pytest.mark.parametrize("shape", ["square", "product", "step"])
def test_the_interval_holds_the_truth_where_a_measured_confounder_is_curved(shape: str) -> None:
    outcomes = [judge(shape, 600, "mahalanobis", False, number) for number in range(LOGS)]
    answered = [outcome for outcome in outcomes if outcome.refused is None]
    assert len(answered) >= LOGS // 2
    assert sum(outcome.covered for outcome in answered) >= lower_limit(0.95, len(answered))


def test_straight_lines_alone_miss_a_curved_confounder() -> None:
    outcomes = [judge("square", 600, "mahalanobis", True, number) for number in range(LOGS)]
    assert sum(outcome.covered for outcome in outcomes) < lower_limit(0.95, LOGS)


def columns(rows: int = 800) -> tuple[Covariates, np.random.Generator]:
    draw = np.random.default_rng(3)
    matrix = draw.normal(size=(rows, 3))
    names = ("a", "b", "c")
    return Covariates(names, names, matrix, np.empty((rows, 0)), ()), draw


def test_the_terms_of_a_product_a_square_and_a_step_are_found() -> None:
    covariates, draw = columns()
    dictionary = term_dictionary_of(covariates, 0)
    a, b, c = covariates.matrix.T
    for target, name in ((a * b, "a × b"), (c**2, "c²")):
        chosen = select_terms(dictionary, target + 0.3 * draw.normal(size=800), np.arange(800), 20)
        assert name in [dictionary.describe(term) for term in chosen]
    chosen = select_terms(dictionary, (a > 0.33) + 0.2 * draw.normal(size=800), np.arange(800), 20)
    step = next(term[0] for term in chosen if term[0].shape == "step")
    assert dictionary.centres[0] + step.threshold * dictionary.spreads[0] == pytest.approx(
        0.33, abs=0.04
    )


def test_noise_alone_chooses_hardly_any_term() -> None:
    covariates, draw = columns()
    dictionary = term_dictionary_of(covariates, 0)
    chosen = [
        len(select_terms(dictionary, draw.normal(size=800), np.arange(800), 20)) - 3
        for _ in range(20)
    ]
    assert np.mean(chosen) < 1.0


def test_rows_with_extreme_odds_are_left_out() -> None:
    covariates, draw = columns()
    odds = np.exp(3.0 * covariates.matrix[:, 0] - 1.0)
    treated = draw.random(800) < odds / (1.0 + odds)
    is_left_out = fit_treatment(covariates, treated, 0).is_left_out
    assert is_left_out.any()
    assert (treated[is_left_out]).all()
    assert covariates.matrix[is_left_out, 0].min() > 0.5


def test_the_odds_are_finite_where_a_column_decides_the_version() -> None:
    line = np.linspace(-1.0, 1.0, 50)
    logit = fit_logit(line[:, None], (line > 0.0).astype(np.float64))
    assert np.isfinite(logit).all()
    assert (np.diff(logit) > 0.0).all()


def curved_log(shape: str = "square") -> ObservationResult:
    names = ("x1", "x2", "x3", "x4")
    return observe(make_log(shape, 600, 0), question(covariates=names, cluster=()), source="log")


def test_the_result_names_the_curves_and_their_balance() -> None:
    result = curved_log()
    assert "x1" in result.matching.model
    assert "through" in result.matching.model
    (first, *_) = result.balance
    assert first.term is not None
    assert first.ks_after is not None
    assert first.ks_before is not None
    assert first.ks_after < first.ks_before


def test_a_clause_names_the_unbalanced_distribution_or_term() -> None:
    column = ColumnBalance("load", 1.0, 2.0, 0.5, 1.0, 1.0, 0.0, 0.4, 0.3, "load²", 0.6)
    assert unbalanced_clause(column).startswith("the distribution of load still differs by 0.30")
    column = ColumnBalance("load", 1.0, 2.0, 0.5, 1.0, 1.0, 0.0, 0.4, 0.1, "load²", 0.6)
    assert unbalanced_clause(column).startswith("load² still differs by 0.60 standard deviations")
