"""Test whether the model of the outcome describes the baseline's rows; if not, refuse the effect.

The residuals of the baseline's rows must not depend on the covariates. They are tested against
every possible term (``terms``), and against cells. A cell is the product of a step of one covariate
and a step of another covariate. The term that explains most of the residuals decides: the effect is
refused if its p-value times the number of tested terms is below ``FALSE_REFUSAL_CHANCE``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.observation.clusters import MIN_CLUSTERS
from equipoise_matching.observation.effects import MatchedSample
from equipoise_matching.observation.terms import (
    MAX_SPLIT_COLUMNS,
    SPLIT_QUANTILES,
    Factor,
    Term,
    TermDictionary,
    cross_products,
    sample_rows,
)
from equipoise_matching.shared.extras import require

FALSE_REFUSAL_CHANCE = 0.001
"""Largest chance of a refusal if the model is right."""
_MIN_ROWS = 20
"""Number of baseline rows that must lie inside a cell, and outside of it."""


def remaining_pattern(matched_sample: MatchedSample) -> str | None:
    """Return a description of the term that the model lacks; ``None`` if it lacks no term."""
    sample, clusters = matched_sample.sample, matched_sample.sample.clusters
    balanced_match, effect = matched_sample.balanced_match, matched_sample.effects.answer_scale
    dictionary, treated = balanced_match.model.dictionary, balanced_match.treated
    control = np.flatnonzero(~treated)
    covariate_count = dictionary.covariate_count
    if not covariate_count or FALSE_REFUSAL_CHANCE <= 0.0:
        return None
    outcome = sample.outcomes.answer_scale
    model_columns = dictionary.values(effect.terms)[control]
    design = np.column_stack([np.ones(len(control)), model_columns])
    slopes = np.linalg.lstsq(design, outcome[control], rcond=None)[0]
    residual = np.zeros(len(outcome))
    residual[control] = outcome[control] - design @ slopes
    terms = (*effect.terms, *_terms_to_test(dictionary, set(effect.terms)))
    index = _best_term_index(dictionary, terms, len(effect.terms), residual, control)
    if index is None:
        return None
    term = terms[index]
    term_values = dictionary.values((term,))[control, 0]
    remainder = term_values - design @ np.linalg.lstsq(design, term_values, rcond=None)[0]
    codes = None if clusters is None else clusters.code[control]
    p_value = _p_value(remainder, residual[control], len(design.T), codes)
    return dictionary.describe(term) if p_value * len(terms) < FALSE_REFUSAL_CHANCE else None


def _terms_to_test(dictionary: TermDictionary, known_terms: set[Term]) -> tuple[Term, ...]:
    """Return the terms of the dictionary and the cells of two covariates, without known terms."""
    cells: list[Term] = []
    count = dictionary.covariate_count
    if count <= MAX_SPLIT_COLUMNS:
        steps = [
            [Factor("step", index, float(cut)) for cut in _thresholds(dictionary, index)]
            for index in range(count)
        ]
        for first, second in itertools.combinations(range(count), 2):
            if dictionary.owners[first] != dictionary.owners[second]:
                cells += itertools.product(steps[first], steps[second])
    return tuple(term for term in (*dictionary.terms[count:], *cells) if term not in known_terms)


def _thresholds(dictionary: TermDictionary, index: int) -> Floats:
    return np.unique(np.quantile(dictionary.columns[:, index], SPLIT_QUANTILES))


def _best_term_index(
    dictionary: TermDictionary,
    terms: tuple[Term, ...],
    entered_count: int,
    residual: Floats,
    control: Indices,
) -> int | None:
    """Return the index of the best term; the first ``entered_count`` terms are in the model."""
    rows = sample_rows(control, len(terms), dictionary.seed)
    cross = cross_products(dictionary.columns, terms, residual, rows)
    inverse = np.linalg.pinv(cross[:entered_count, :entered_count], rcond=1e-10, hermitian=True)
    outer = cross[:entered_count, entered_count:-1]
    total_variances = np.diag(cross)[entered_count:-1]
    variances = total_variances - (outer * (inverse @ outer)).sum(axis=0)
    remainders = cross[entered_count:-1, -1] - outer.T @ (inverse @ cross[:entered_count, -1])
    is_usable = (variances > 1e-3 * total_variances) & (variances > _MIN_ROWS * 1e-3)
    if not is_usable.any():
        return None
    gains = np.where(is_usable, remainders**2 / np.where(is_usable, variances, 1.0), 0.0)
    return entered_count + int(np.argmax(gains))


def _p_value(remainder: Floats, residual: Floats, terms: int, clusters: Indices | None) -> float:
    """Return the two-sided p-value of a slope in a model with this number of ``terms``."""
    stats: Any = require("scipy.stats", "tests")
    products = remainder * residual
    degrees_of_freedom = len(residual) - terms - 1
    if clusters is not None:
        cluster_index = np.unique(clusters, return_inverse=True)[1]
        products = np.bincount(cluster_index, products).astype(np.float64)
        degrees_of_freedom = len(products) - 1
        if degrees_of_freedom < MIN_CLUSTERS:
            return 1.0
    # If few rows decide a term, their own spread is too small. So the larger spread counts.
    uniform_spread = float(np.sqrt((remainder**2).sum() * (residual**2).mean()))
    spread = max(uniform_spread, float(np.sqrt((products**2).sum())))
    if spread <= 0.0 or degrees_of_freedom < 1:
        return 1.0
    return float(2.0 * stats.t.sf(abs(float(products.sum())) / spread, degrees_of_freedom))
