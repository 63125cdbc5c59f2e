"""Terms of the model: curves, steps and products of the covariates, chosen by the rows.

The candidates for a covariate are its square, and bends and steps at its quantiles; for two
covariates their product, and one of them above a quantile of the other; for a category each curve
within one of its values. A second round adds each chosen term multiplied by the curves of the other
covariates (Friedman 1991, Annals of Statistics 19(1)). A term enters if it explains who has which
version, or the outcome of the baseline's rows: double selection (Belloni, Chernozhukov and Hansen
2014, Review of Economic Studies 81(2)), because a confounder acts on both. Selection is forward:
the term with the largest t² given those that entered, while t² exceeds 2 ln(number of candidates)
(Foster and George 1994, Annals of Statistics 22(4)). The covariates themselves always enter.

Selection reads cross products in blocks of rows, so no array holds every candidate for every row.
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

STEPS = tuple(place / 40.0 for place in range(1, 40))
"""Quantiles of a covariate at which a step may lie."""
BENDS = tuple(place / 10.0 for place in range(1, 10))
THRESHOLDS = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Quantiles of a covariate above which another one may act."""
COARSE = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Quantiles of the steps and bends by which a chosen term may be multiplied."""
ROWS_PER_TERM = 10
"""Rows of the version with fewer rows that each term needs."""
MAX_TERMS = 40
MAX_PAIRED = 12
"""Number of columns above which one column above a quantile of another is not a candidate."""
CROSS_PRODUCTS = 2e10
"""Largest number of products that one selection sums; a larger log is sampled by the seed."""
_BLOCK = 8_192
_COLLINEAR = 1e-4
"""Share of its variance that a term must keep, given those that entered."""
_SINGULAR = 1e-10
_REACH = 0.1
"""Share of the rows by which a bend, or a step in a product, may move to either side."""
_PLACES = 17


class Factor(NamedTuple):
    """A function of one column of the dictionary.

    ``kind`` is ``line``, ``square``, ``bend`` (the part above ``at``), ``step`` (1 above ``at``)
    or ``flag`` (1 where a category has one value).
    """

    kind: str
    column: int
    at: float = 0.0

    def values(self, columns: Floats) -> Floats:
        """Return the function of each row of the columns (rows, columns)."""
        column = columns[:, self.column]
        if self.kind == "square":
            return np.asarray(column**2)
        if self.kind == "bend":
            return np.asarray(np.maximum(column - self.at, 0.0))
        if self.kind == "step":
            return np.asarray((column > self.at).astype(np.float64))
        return np.asarray(column)


Term = tuple[Factor, ...]
"""The product of these factors."""


class Dictionary(Struct, frozen=True):
    """The candidate terms of a log.

    ``columns`` (rows, columns) are the covariates, each with mean 0 and standard deviation 1, then
    one column of 0 and 1 for each value of a category. ``names`` and ``owners`` are those of the
    columns, ``centres`` and ``spreads`` what was subtracted and divided by. The first ``lines``
    terms are the covariates themselves.
    """

    columns: Floats
    names: tuple[str, ...]
    owners: tuple[str, ...]
    centres: Floats
    spreads: Floats
    terms: tuple[Term, ...]
    lines: int
    seed: int

    def values(self, terms: Sequence[Term]) -> Floats:
        """Return the terms of every row, shape (rows, terms)."""
        return _values(self.columns, terms)

    def owners_of(self, term: Term) -> tuple[str, ...]:
        """Return the columns of the log that a term is a function of."""
        return tuple(dict.fromkeys(self.owners[factor.column] for factor in term))

    def describe(self, term: Term) -> str:
        """Return a term in words: ``load²``, ``load above 2.1 × cache``."""
        return " × ".join(self._describe_factor(factor) for factor in term)

    def _describe_factor(self, factor: Factor) -> str:
        name = self.names[factor.column]
        if factor.kind == "square":
            return f"{name}²"
        if factor.kind in ("bend", "step"):
            at = self.centres[factor.column] + factor.at * self.spreads[factor.column]
            word = "above" if factor.kind == "step" else "beyond"
            return f"{name} {word} {significant(float(at), 3)}"
        return name


def dictionary_of(covariates: Covariates, seed: int) -> Dictionary:
    """Return the candidates for these covariates, whose exact columns count as categories."""
    matrix = covariates.matrix
    centres, spreads = matrix.mean(axis=0), matrix.std(axis=0)
    spreads = np.where(spreads > 0.0, spreads, 1.0)
    scaled = (matrix - centres) / spreads
    count = matrix.shape[1]
    amounts = [place for place in range(count) if len(np.unique(scaled[:, place])) > 2]
    flags = list(_flags(covariates, amounts))
    columns = np.column_stack([scaled, *(flag for _, _, flag in flags)])
    owners = (*covariates.owners, *(owner for _, owner, _ in flags))
    flag_places = range(count, count + len(flags))
    terms: list[Term] = [(Factor("line", place),) for place in range(count)]
    for place in amounts:
        terms += [(curve,) for curve in _curves(scaled[:, place], place, BENDS, STEPS)]
    for first, second in itertools.combinations(range(count), 2):
        if owners[first] != owners[second]:
            terms.append((Factor("line", first), Factor("line", second)))
    if columns.shape[1] <= MAX_PAIRED:
        for flag, place in itertools.product(flag_places, amounts):
            curves = _curves(scaled[:, place], place, BENDS, COARSE)
            terms += [(Factor("flag", flag), curve) for curve in (Factor("line", place), *curves)]
        for first, second in itertools.permutations(amounts, 2):
            steps = _curves(scaled[:, first], first, (), THRESHOLDS)
            terms += [(step, Factor("line", second)) for step in steps if step.kind == "step"]
    return Dictionary(
        columns,
        (*covariates.names, *(name for name, _, _ in flags)),
        owners,
        np.concatenate([centres, np.zeros(len(flags))]),
        np.concatenate([spreads, np.ones(len(flags))]),
        tuple(terms),
        count,
        seed,
    )


def _flags(covariates: Covariates, amounts: list[int]) -> Iterator[tuple[str, str, Floats]]:
    """Yield a column of 0 and 1 for each value of each category, with its name and its owner."""
    for owner, group in itertools.groupby(
        (place for place in range(len(covariates.names)) if place not in amounts),
        key=lambda place: covariates.owners[place],
    ):
        places = list(group)
        highest = [covariates.matrix[:, place].max() for place in places]
        values = [
            (covariates.matrix[:, place] == high).astype(np.float64)
            for place, high in zip(places, highest, strict=True)
        ]
        rest = 1.0 - np.clip(np.sum(values, axis=0), 0.0, 1.0)
        for place, flag in zip(places, values, strict=True):
            yield covariates.names[place], owner, flag
        yield f"{owner} (other)", owner, rest
    for name, column in zip(covariates.exact_names, covariates.exact.T, strict=True):
        levels = np.unique(column)
        if len(levels) <= MAX_PAIRED:
            for level in levels:
                yield f"{name} ({level:g})", name, (column == level).astype(np.float64)


def _curves(
    values: Floats, place: int, bends: Iterable[float], steps: Iterable[float]
) -> Iterator[Factor]:
    yield Factor("square", place)
    for kind, shares in (("bend", bends), ("step", steps)):
        quantiles = np.unique(np.quantile(values, list(shares))) if shares else np.empty(0)
        yield from (Factor(kind, place, at) for at in quantiles.tolist())


def select_terms(
    dictionary: Dictionary, target: Floats, rows: Indices, max_terms: int
) -> tuple[Term, ...]:
    """Return the covariates and the terms that explain a target (rows of the log,).

    Only ``rows`` are read. No more than ``max_terms`` are chosen in addition to the covariates.
    """
    lines = dictionary.terms[: dictionary.lines]
    chosen = _forward(dictionary, dictionary.terms, len(lines), target, rows, max_terms)
    curved = chosen[len(lines) :]
    products = tuple(
        dict.fromkeys(
            (*term, curve)
            for term in curved
            if len(term) < 2 or len(dictionary.owners_of(term)) < 2
            for curve in _other_curves(dictionary, term)
        )
    )
    if products:
        known = set(dictionary.terms)
        candidates = (*chosen, *(term for term in products if term not in known))
        room = max_terms - len(curved)
        chosen = _forward(dictionary, candidates, len(chosen), target, rows, room)
    return _refined(dictionary, chosen, target, rows)


def _refined(
    dictionary: Dictionary, chosen: tuple[Term, ...], target: Floats, rows: Indices
) -> tuple[Term, ...]:
    """Move each step and bend to the place near its quantile that explains most."""
    moved = {
        place: tuple(_moved(dictionary, term))
        for place, term in enumerate(chosen)
        if any(factor.kind in ("bend", "step") for factor in term)
    }
    if not moved:
        return chosen
    candidates = (*chosen, *itertools.chain.from_iterable(moved.values()))
    rows = sampled(rows, len(candidates), dictionary.seed)
    cross = cross_products(dictionary.columns, candidates, target, rows)
    now, begin = list(range(len(chosen))), len(chosen)
    for place, others in moved.items():
        tried = [now[place], *range(begin, begin + len(others))]
        begin += len(others)
        fixed = [which for position, which in enumerate(now) if position != place]
        inner = cross[np.ix_(fixed, fixed)]
        inverse = np.linalg.pinv(inner, rcond=_SINGULAR, hermitian=True)
        outer = cross[np.ix_(fixed, [*tried, -1])]
        explained = outer.T @ inverse @ outer
        left = cross[tried, -1] - explained[:-1, -1]
        variances = cross[tried, tried] - np.diag(explained)[:-1]
        usable = variances > _COLLINEAR * cross[tried, tried]
        gains = np.where(usable, left**2 / np.where(usable, variances, 1.0), 0.0)
        now[place] = tried[int(np.argmax(gains))]
    return tuple(candidates[place] for place in now)


def _moved(dictionary: Dictionary, term: Term) -> Iterator[Term]:
    """Yield a term with its step or bend at other places nearby."""
    for position, factor in enumerate(term):
        if factor.kind not in ("bend", "step"):
            continue
        column = dictionary.columns[:, factor.column]
        share = float(np.mean(column <= factor.at))
        reach = _REACH if len(term) > 1 or factor.kind == "bend" else STEPS[0]
        shares = np.clip(
            share + np.linspace(-reach, reach, _PLACES), STEPS[0] / 2.0, 1.0 - STEPS[0] / 2.0
        )
        for at in np.unique(np.quantile(column, shares)).tolist():
            yield (*term[:position], Factor(factor.kind, factor.column, at), *term[position + 1 :])


def _other_curves(dictionary: Dictionary, term: Term) -> Iterator[Factor]:
    """Yield the coarse curves of the covariates that a term is not a function of."""
    taken = dictionary.owners_of(term)
    for place in range(dictionary.lines):
        if dictionary.owners[place] not in taken:
            column = dictionary.columns[:, place]
            yield Factor("line", place)
            if len(np.unique(column)) > 2:
                yield from _curves(column, place, COARSE, COARSE)


def _forward(
    dictionary: Dictionary,
    terms: tuple[Term, ...],
    entered: int,
    target: Floats,
    rows: Indices,
    max_terms: int,
) -> tuple[Term, ...]:
    """Add terms to the first ``entered`` ones while one explains enough of the target."""
    count = len(terms)
    if not count:
        return ()
    rows = sampled(rows, count, dictionary.seed)
    cross = cross_products(dictionary.columns, terms, target, rows)
    is_free = np.diag(cross)[:count] > 0.0
    limit = 2.0 * math.log(count)
    least = _COLLINEAR * np.diag(cross).copy()
    chosen: list[int] = []

    def enter(place: int) -> None:
        nonlocal cross
        column = cross[:, place].copy()
        cross -= np.outer(column, column / column[place])
        is_free[place] = False
        chosen.append(place)

    for place in range(entered):
        if cross[place, place] > least[place]:
            enter(place)
    while len(chosen) < entered + max_terms:
        variances = np.diag(cross)[:count]
        usable = is_free & (variances > least[:count])
        gains = np.where(usable, cross[:count, count] ** 2 / np.where(usable, variances, 1.0), 0.0)
        best = int(np.argmax(gains))
        left = float(cross[count, count]) - float(gains[best])
        freedom = len(rows) - len(chosen) - 2
        if gains[best] <= 0.0 or freedom < 1 or freedom * gains[best] <= limit * max(left, 0.0):
            break
        enter(best)
    return (*terms[:entered], *(terms[place] for place in chosen if place >= entered))


def cross_products(
    columns: Floats, terms: tuple[Term, ...], target: Floats, rows: Indices
) -> Floats:
    """Return the sums of products of the centred terms, and of the target, which comes last."""
    count = len(terms)
    cross = np.zeros((count + 2, count + 2))
    for begin in range(0, len(rows), _BLOCK):
        part = rows[begin : begin + _BLOCK]
        block = np.empty((len(part), count + 2))
        block[:, :count] = _values(columns[part], terms)
        block[:, count] = target[part]
        block[:, count + 1] = 1.0
        cross += block.T @ block
    sums = cross[:-1, -1]
    return np.asarray(cross[:-1, :-1] - np.outer(sums, sums) / max(1, len(rows)))


def _values(columns: Floats, terms: Sequence[Term]) -> Floats:
    values = np.empty((len(columns), len(terms)))
    for place, (first, *others) in enumerate(terms):
        values[:, place] = first.values(columns)
        for factor in others:
            values[:, place] *= factor.values(columns)
    return values


def sampled(rows: Indices, terms: int, seed: int) -> Indices:
    """Return the rows whose cross products of so many terms are affordable."""
    count = max(1, int(CROSS_PRODUCTS / max(1, terms) ** 2))
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def term_budget(treated: Truths) -> int:
    """Return the number of terms that the version with fewer rows allows."""
    fewest_rows = min(int(np.count_nonzero(treated)), int(np.count_nonzero(~treated)))
    return min(MAX_TERMS, fewest_rows // ROWS_PER_TERM)
