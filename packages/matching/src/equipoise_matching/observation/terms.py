"""Choose the terms of a model from the data: curves, steps and products of the covariates.

A term is a product of factors. A factor is a function of one covariate: a line (the covariate
itself), its square, a bend or a step at a threshold, or a flag of one value of a category. Bends
and steps lie at quantiles. `select_terms` chooses the terms that explain a target in three rounds:

1. It keeps all covariates. Then it adds the term with the largest t² (t statistic of its slope), as
   long as t² is above 2 ln(number of possible terms) (Foster and George 1994, Annals of Statistics
   22(4)).
2. It does the same with products of the chosen terms and the factors of other covariates (Friedman
   1991, Annals of Statistics 19(1)).
3. It moves each threshold to the best threshold nearby.

The targets are the version of a row and the outcome of the baseline's rows (double selection:
Belloni, Chernozhukov and Hansen 2014, Review of Economic Studies 81(2)).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.observation.covariates import Covariates
from equipoise_matching.shared.numbers import significant

STEP_QUANTILES = tuple(number / 40.0 for number in range(1, 40))
"""Quantiles of a covariate at which a step may lie."""
BEND_QUANTILES = tuple(number / 10.0 for number in range(1, 10))
"""Quantiles of a covariate at which a bend may lie."""
SPLIT_QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Quantiles of a covariate above which another covariate may have an effect."""
PRODUCT_QUANTILES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Quantiles of the steps and bends by which a chosen term may be multiplied."""
ROWS_PER_TERM = 10
"""Number of rows that a model needs for each term, of the candidate and of the baseline."""
MAX_TERMS = 40
"""Largest number of terms that a model has besides the covariates."""
MAX_SPLIT_COLUMNS = 12
"""With more columns, no term is the product of a step or a flag and another covariate."""
MAX_CROSS_PRODUCTS = 2e10
"""Largest number of products in one selection; if a log needs more, its rows are sampled."""
_BLOCK_ROWS = 8_192
"""Number of rows whose terms are in memory at a time."""
_MIN_VARIANCE_SHARE = 1e-4
"""Share of a term's variance that the chosen terms must leave unexplained."""
SINGULAR_TOLERANCE = 1e-10
"""Size below which an eigenvalue of the cross products counts as 0, relative to the largest."""
_MAX_SHIFT = 0.1
"""Largest share of the rows between the old and new threshold of a bend, or a step in a product."""
_SHIFT_COUNT = 17
"""Number of shifts that are tried for each bend and step."""


class Factor(NamedTuple):
    """A function of one column of the dictionary.

    ``shape`` is ``line`` (the column itself), ``square``, ``bend`` (the excess over the threshold),
    ``step`` (1 above the threshold) or ``flag`` (1 where a category has one value).
    """

    shape: str
    column: int
    threshold: float = 0.0

    def values(self, columns: Floats) -> Floats:
        """Return the value of the function for each row of the columns (rows, columns)."""
        column = columns[:, self.column]
        if self.shape == "square":
            return np.asarray(column**2)
        if self.shape == "bend":
            return np.asarray(np.maximum(column - self.threshold, 0.0))
        if self.shape == "step":
            return np.asarray((column > self.threshold).astype(np.float64))
        return np.asarray(column)


Term = tuple[Factor, ...]
"""The product of its factors."""


class TermDictionary(Struct, frozen=True):
    """The possible terms of a log.

    ``columns`` (rows, columns) has the covariates, each with mean 0 and standard deviation 1. Then
    comes a column of 0 and 1 for each value of a category. ``log_columns`` has for each column the
    column of the log from which it was made. Unscaled, the covariates have the means ``centres``
    and standard deviations ``spreads``. The first ``covariate_count`` terms are the covariates.
    """

    columns: Floats
    names: tuple[str, ...]
    log_columns: tuple[str, ...]
    centres: Floats
    spreads: Floats
    terms: tuple[Term, ...]
    covariate_count: int
    seed: int

    def values(self, terms: Sequence[Term]) -> Floats:
        """Return the values of the terms for every row, shape (rows, terms)."""
        return _term_values(self.columns, terms)

    def log_columns_of(self, term: Term) -> tuple[str, ...]:
        """Return the columns of the log from which a term is computed."""
        return tuple(dict.fromkeys(self.log_columns[factor.column] for factor in term))

    def describe(self, term: Term) -> str:
        """Return the text of a term, such as ``load²`` or ``load above 2.1 × cache``."""
        return " × ".join(self._describe_factor(factor) for factor in term)

    def _describe_factor(self, factor: Factor) -> str:
        name = self.names[factor.column]
        if factor.shape == "square":
            return f"{name}²"
        if factor.shape in ("bend", "step"):
            scaled = factor.threshold * self.spreads[factor.column]
            threshold = self.centres[factor.column] + scaled
            preposition = "above" if factor.shape == "step" else "beyond"
            return f"{name} {preposition} {significant(float(threshold), 3)}"
        return name


def term_dictionary_of(covariates: Covariates, seed: int) -> TermDictionary:
    """Return the possible terms; a column of exact matching is a category."""
    matrix = covariates.matrix
    centres, spreads = matrix.mean(axis=0), matrix.std(axis=0)
    spreads = np.where(spreads > 0.0, spreads, 1.0)
    scaled = (matrix - centres) / spreads
    covariate_count = matrix.shape[1]
    numeric = [index for index in range(covariate_count) if len(np.unique(scaled[:, index])) > 2]
    flags = list(_flags(covariates, numeric))
    columns = np.column_stack([scaled, *(flag for _, _, flag in flags)])
    log_columns = (*covariates.log_columns, *(log_column for _, log_column, _ in flags))
    flag_indices = range(covariate_count, covariate_count + len(flags))
    terms: list[Term] = [(Factor("line", index),) for index in range(covariate_count)]
    for index in numeric:
        curves = _curves(scaled[:, index], index, BEND_QUANTILES, STEP_QUANTILES)
        terms += [(curve,) for curve in curves]
    for first, second in itertools.combinations(range(covariate_count), 2):
        if log_columns[first] != log_columns[second]:
            terms.append((Factor("line", first), Factor("line", second)))
    if columns.shape[1] <= MAX_SPLIT_COLUMNS:
        for flag, index in itertools.product(flag_indices, numeric):
            curves = _curves(scaled[:, index], index, BEND_QUANTILES, PRODUCT_QUANTILES)
            terms += [(Factor("flag", flag), curve) for curve in (Factor("line", index), *curves)]
        for first, second in itertools.permutations(numeric, 2):
            steps = _curves(scaled[:, first], first, (), SPLIT_QUANTILES)
            terms += [(step, Factor("line", second)) for step in steps if step.shape == "step"]
    return TermDictionary(
        columns,
        (*covariates.names, *(name for name, _, _ in flags)),
        log_columns,
        np.concatenate([centres, np.zeros(len(flags))]),
        np.concatenate([spreads, np.ones(len(flags))]),
        tuple(terms),
        covariate_count,
        seed,
    )


def _flags(covariates: Covariates, numeric: list[int]) -> Iterator[tuple[str, str, Floats]]:
    """Yield name, log_column and column (0 and 1) for each value of each category."""
    for log_column, indices_of_column in itertools.groupby(
        (index for index in range(len(covariates.names)) if index not in numeric),
        key=lambda index: covariates.log_columns[index],
    ):
        indices = list(indices_of_column)
        # Each column has at most two values. The larger value marks the rows of the category.
        larger_values = [covariates.matrix[:, index].max() for index in indices]
        flags = [
            (covariates.matrix[:, index] == larger_value).astype(np.float64)
            for index, larger_value in zip(indices, larger_values, strict=True)
        ]
        other_rows = 1.0 - np.clip(np.sum(flags, axis=0), 0.0, 1.0)
        for index, flag in zip(indices, flags, strict=True):
            yield covariates.names[index], log_column, flag
        yield f"{log_column} (other)", log_column, other_rows
    for name, column in zip(covariates.exact_names, covariates.exact.T, strict=True):
        levels = np.unique(column)
        if len(levels) <= MAX_SPLIT_COLUMNS:
            for level in levels:
                yield f"{name} ({level:g})", name, (column == level).astype(np.float64)


def _curves(
    values: Floats, index: int, bends: Iterable[float], steps: Iterable[float]
) -> Iterator[Factor]:
    """Yield the square of a column, and its bends and steps at these quantiles."""
    yield Factor("square", index)
    for shape, quantiles in (("bend", bends), ("step", steps)):
        thresholds = np.unique(np.quantile(values, list(quantiles))) if quantiles else np.empty(0)
        yield from (Factor(shape, index, threshold) for threshold in thresholds.tolist())


def select_terms(
    dictionary: TermDictionary, target: Floats, rows: Indices, max_terms: int
) -> tuple[Term, ...]:
    """Return the covariates, then up to ``max_terms`` terms that explain the target in ``rows``.

    The target has a value for each row of the log, shape (rows of the log,).
    """
    covariate_count = dictionary.covariate_count
    chosen = _select_forward(dictionary, dictionary.terms, covariate_count, target, rows, max_terms)
    added_terms = chosen[covariate_count:]
    products = tuple(
        dict.fromkeys(
            (*term, curve)
            for term in added_terms
            if len(term) < 2 or len(dictionary.log_columns_of(term)) < 2
            for curve in _curves_of_others(dictionary, term)
        )
    )
    if products:
        known_terms = set(dictionary.terms)
        possible = (*chosen, *(term for term in products if term not in known_terms))
        max_products = max_terms - len(added_terms)
        chosen = _select_forward(dictionary, possible, len(chosen), target, rows, max_products)
    return _refine_thresholds(dictionary, chosen, target, rows)


def _refine_thresholds(
    dictionary: TermDictionary, chosen: tuple[Term, ...], target: Floats, rows: Indices
) -> tuple[Term, ...]:
    """Move each step and bend to the nearby threshold that explains most of the target.

    ``cross`` has a row for each chosen term, then for each shifted term. ``current`` has for each
    chosen term the row of its best shift so far.
    """
    shifted_by_index = {
        index: tuple(_shift_threshold(dictionary, term))
        for index, term in enumerate(chosen)
        if any(factor.shape in ("bend", "step") for factor in term)
    }
    if not shifted_by_index:
        return chosen
    terms = (*chosen, *itertools.chain.from_iterable(shifted_by_index.values()))
    rows = sample_rows(rows, len(terms), dictionary.seed)
    cross = cross_products(dictionary.columns, terms, target, rows)
    current, next_index = list(range(len(chosen))), len(chosen)
    for index, shifted_terms in shifted_by_index.items():
        compared = [current[index], *range(next_index, next_index + len(shifted_terms))]
        next_index += len(shifted_terms)
        others = current[:index] + current[index + 1 :]
        inner = cross[np.ix_(others, others)]
        inverse = np.linalg.pinv(inner, rcond=SINGULAR_TOLERANCE, hermitian=True)
        outer = cross[np.ix_(others, [*compared, -1])]
        explained = outer.T @ inverse @ outer
        products = cross[compared, -1] - explained[:-1, -1]
        variances = cross[compared, compared] - np.diag(explained)[:-1]
        is_usable = variances > _MIN_VARIANCE_SHARE * cross[compared, compared]
        gains = np.where(is_usable, products**2 / np.where(is_usable, variances, 1.0), 0.0)
        current[index] = compared[int(np.argmax(gains))]
    return tuple(terms[index] for index in current)


def _shift_threshold(dictionary: TermDictionary, term: Term) -> Iterator[Term]:
    """Yield the term with its step or bend at other thresholds near the present threshold."""
    for position, factor in enumerate(term):
        if factor.shape not in ("bend", "step"):
            continue
        column = dictionary.columns[:, factor.column]
        share_below = float(np.mean(column <= factor.threshold))
        max_shift = _MAX_SHIFT if len(term) > 1 or factor.shape == "bend" else STEP_QUANTILES[0]
        min_share = STEP_QUANTILES[0] / 2.0
        shifts = np.linspace(-max_shift, max_shift, _SHIFT_COUNT)
        shares = np.clip(share_below + shifts, min_share, 1.0 - min_share)
        for threshold in np.unique(np.quantile(column, shares)).tolist():
            moved_factor = factor._replace(threshold=threshold)
            yield (*term[:position], moved_factor, *term[position + 1 :])


def _curves_of_others(dictionary: TermDictionary, term: Term) -> Iterator[Factor]:
    """Yield the factors of the covariates that are not in a term."""
    log_columns = dictionary.log_columns_of(term)
    for index in range(dictionary.covariate_count):
        if dictionary.log_columns[index] not in log_columns:
            column = dictionary.columns[:, index]
            yield Factor("line", index)
            if len(np.unique(column)) > 2:
                yield from _curves(column, index, PRODUCT_QUANTILES, PRODUCT_QUANTILES)


def _select_forward(
    dictionary: TermDictionary,
    terms: tuple[Term, ...],
    kept_count: int,
    target: Floats,
    rows: Indices,
    max_terms: int,
) -> tuple[Term, ...]:
    """Keep the first ``kept_count`` terms, and add the best term while it explains enough.

    ``cross`` has the cross products of all terms and the target. When a term is chosen, the part
    that it explains is subtracted from all other cross products.
    """
    count = len(terms)
    if not count:
        return ()
    rows = sample_rows(rows, count, dictionary.seed)
    cross = cross_products(dictionary.columns, terms, target, rows)
    is_open = np.diag(cross)[:count] > 0.0
    min_t_squared = 2.0 * math.log(count)
    min_variances = _MIN_VARIANCE_SHARE * np.diag(cross).copy()
    chosen: list[int] = []

    def choose(index: int) -> None:
        nonlocal cross
        column = cross[:, index].copy()
        cross -= np.outer(column, column / column[index])
        is_open[index] = False
        chosen.append(index)

    for index in range(kept_count):
        if cross[index, index] > min_variances[index]:
            choose(index)
    while len(chosen) < kept_count + max_terms:
        variances = np.diag(cross)[:count]
        is_usable = is_open & (variances > min_variances[:count])
        divisors = np.where(is_usable, variances, 1.0)
        gains = np.where(is_usable, cross[:count, count] ** 2 / divisors, 0.0)
        best = int(np.argmax(gains))
        residual_squares = float(cross[count, count]) - float(gains[best])
        degrees_of_freedom = len(rows) - len(chosen) - 2
        required_gain = min_t_squared * max(residual_squares, 0.0)
        if gains[best] <= 0.0 or degrees_of_freedom < 1:
            break
        if degrees_of_freedom * gains[best] <= required_gain:
            break
        choose(best)
    return (*terms[:kept_count], *(terms[index] for index in chosen if index >= kept_count))


def cross_products(
    columns: Floats, terms: tuple[Term, ...], target: Floats, rows: Indices
) -> Floats:
    """Return the sums of products of every two centred columns: the terms, then the target."""
    count = len(terms)
    cross = np.zeros((count + 2, count + 2))
    for begin in range(0, len(rows), _BLOCK_ROWS):
        block_rows = rows[begin : begin + _BLOCK_ROWS]
        block = np.empty((len(block_rows), count + 2))
        block[:, :count] = _term_values(columns[block_rows], terms)
        block[:, count] = target[block_rows]
        block[:, count + 1] = 1.0
        cross += block.T @ block
    sums = cross[:-1, -1]
    return np.asarray(cross[:-1, :-1] - np.outer(sums, sums) / max(1, len(rows)))


def _term_values(columns: Floats, terms: Sequence[Term]) -> Floats:
    values = np.empty((len(columns), len(terms)))
    for index, (first_factor, *other_factors) in enumerate(terms):
        values[:, index] = first_factor.values(columns)
        for factor in other_factors:
            values[:, index] *= factor.values(columns)
    return values


def sample_rows(rows: Indices, term_count: int, seed: int) -> Indices:
    """Draw as many rows as ``MAX_CROSS_PRODUCTS`` allows for this number of terms."""
    count = max(1, int(MAX_CROSS_PRODUCTS / max(1, term_count) ** 2))
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def term_budget(treated: Truths) -> int:
    """Return the largest number of terms, which depends on the rows of the smaller arm."""
    fewest_rows = min(int(np.count_nonzero(treated)), int(np.count_nonzero(~treated)))
    return min(MAX_TERMS, fewest_rows // ROWS_PER_TERM)
