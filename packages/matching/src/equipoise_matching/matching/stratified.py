"""Match inside strata, and estimate one effect over all strata.

A factor is a column, and a stratum has the rows that agree in every factor (R's name: ``by``).
Sekhon 2011 (JSS 42(7)). The standard errors are from Abadie and Imbens 2006 (Econometrica 74(1)),
over the pairs of all strata. Formulae, and where R's Matchby differs: docs/methods/matching.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching import _native
from equipoise_matching.matching.frames import columns_of, python_value, value_indices_of
from equipoise_matching.matching.match import MatchResult, checked_neighbors, result_fields
from equipoise_matching.matching.options import Estimand, match_problem, pairing_options
from equipoise_matching.matching.units import Floats, Indices, Truths, Units, check_length, units_of
from equipoise_matching.shared.errors import UnusableInput

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_LISTED_STRATA = 5
"""Largest number of skipped strata that a summary lists."""


def match_by(
    y: ArrayLike | None,
    treat: ArrayLike,
    X: ArrayLike,
    by: Any,
    *,
    estimand: Estimand = "ATT",
    m: int = 1,
    metric: str | ArrayLike = "inverse_variance",
    exact: Any = None,
    caliper: ArrayLike | None = None,
    replace: bool = True,
    ties: bool | None = None,
    weights: ArrayLike | None = None,
    variance_neighbors: int | None = None,
    variance: Literal["population", "sample"] = "population",
    distance_tolerance: float = 1e-5,
    r_compatible: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MatchByResult:
    """Match each unit of the estimand with its nearest unit of the other arm in its stratum.

    Each stratum is matched as ``match`` would match it alone: its own rows give the scales, the
    calipers and the Mahalanobis metric. Strata without treated units or without controls are
    skipped and reported. The effect is the mean over all pairs.

    Raise `UnusableInput` if data or options cannot be used, or no unit can be matched.

    Examples
    --------
    >>> from equipoise_matching import match_by
    >>> wage, trained, age = [14, 17, 12, 15, 30], [1, 1, 0, 0, 0], [25, 31, 24, 30, 52]
    >>> result = match_by(wage, trained, age, by=["north", "south", "north", "south", "east"])
    >>> [(stratum.values, stratum.estimate) for stratum in result.strata]
    [(('east',), None), (('north',), 2.0), (('south',), 2.0)]
    >>> [stratum.values for stratum in result.skipped]
    [('east',)]

    Parameters
    ----------
    y, treat, X, estimand, m, metric, exact, caliper, replace, weights, variance_neighbors, \
variance, distance_tolerance, threads, seed
        As for ``match``.
    by
        The strata: shape (n,) or (n, factors), a frame, or a mapping of names to columns.
        With several factors, each combination that occurs is a stratum.
    ties
        Whether all tied matches are kept. By default they are, except with ``r_compatible``.
    r_compatible
        Whether to return R's numbers even where R has an error (docs/methods/matching.md).
    progress
        Function that receives the number of rows done and of all rows, from any thread.
    """
    units = units_of(y, treat, X, weights)
    neighbor_count = checked_neighbors(variance_neighbors, variance, r_compatible)
    factors = factors_of(by, len(units.x))
    count = len(factors.values)
    ties = (not r_compatible if ties is None else bool(ties)) and replace
    # R has the standard error of Abadie and Imbens only for ATT.
    has_se = replace and (not r_compatible or (ties and estimand == "ATT"))
    strata = (factors.stratum_of_row, count)
    problem = match_problem(units, metric=metric, strata=strata, **pairing_options(locals()))
    needs_variances = neighbor_count > 0 and units.outcome is not None and has_se
    neighbors = float(neighbor_count) if needs_variances else None
    pairs, variances = _native.match_strata(
        units, problem.options, factors.stratum_of_row, count, neighbors, progress
    )
    is_incomplete = incomplete_strata(units, factors)
    if is_incomplete.all():
        raise UnusableInput(
            f"each of the {count} strata of {', '.join(factors.names)} lacks treated units or "
            "controls",
            hint="give fewer factors in by=, or factors with fewer values",
        )
    fields = result_fields(
        problem, pairs, variances, variance, has_se=has_se, neighbors=neighbor_count
    )
    if r_compatible:
        # For every estimand, R returns treated rows minus pairs, which may be negative.
        fields["n_dropped"] = round(fields["n_treated"] - fields["n_weighted"])
    return MatchByResult(
        **fields,
        rows=len(units.x),
        by=factors.names,
        strata=strata_of(units, factors, pairs, is_incomplete),
        stratum=factors.stratum_of_row[pairs.query],
    )


@dataclass(frozen=True, slots=True)
class Stratum:
    """The rows that agree in every factor, with numbers as in ``MatchResult``."""

    values: tuple[Any, ...]
    """Value of each factor."""
    n: int
    n_treated: int
    n_weighted: float
    n_dropped: int
    estimate: float | None
    """The effect, without bias adjustment; ``None`` without a pair or an outcome."""
    skipped: bool
    """Whether the stratum lacks treated units or controls."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchByResult(MatchResult):
    """The pairs of all strata, the effect over all pairs and its standard errors.

    The fields of ``MatchResult`` are about all strata. ``dropped_index`` includes the units of
    skipped strata, and ``effective_caliper`` has shape (strata, columns).

    Examples
    --------
    >>> from equipoise_matching import match_by
    >>> result = match_by(None, treat=[1, 0, 1, 0], X=[1, 2, 3, 4], by=["a", "a", "b", "b"])
    >>> [stratum.values for stratum in result.strata]
    [('a',), ('b',)]

    Parameters
    ----------
    by
        The names of the factors.
    strata
        The strata, in the order of their values.
    stratum
        Index in ``strata`` of each pair's stratum.
    """

    by: tuple[str, ...]
    strata: tuple[Stratum, ...] = field(repr=False)
    stratum: Indices = field(repr=False)

    @property
    def skipped(self) -> tuple[Stratum, ...]:
        """Strata without treated units or without controls."""
        return tuple(stratum for stratum in self.strata if stratum.skipped)

    def facts(self) -> list[tuple[str, str]]:
        """Return the facts of a match, and the numbers of strata and of skipped strata."""
        return [
            *MatchResult.facts(self),
            ("Strata", f"{len(self.strata)} of {', '.join(self.by)}"),
            ("Strata without an arm", f"{len(self.skipped)}{self._skipped_names()}"),
        ]

    def to_frame(self) -> DataFrame:
        """Return the pandas frame of a match, with the index of each pair's ``stratum``."""
        return MatchResult.to_frame(self).assign(stratum=self.stratum)

    def strata_frame(self) -> DataFrame:
        """Return a pandas frame with a row per stratum: its factors, then its numbers."""
        import pandas

        names = ("n", "n_treated", "n_weighted", "n_dropped", "estimate", "skipped")
        rows = [
            (*stratum.values, *(getattr(stratum, name) for name in names))
            for stratum in self.strata
        ]
        # A factor may have the name of a number, so columns are joined by position.
        series = [pandas.Series(column) for column in zip(*rows, strict=True)]
        return pandas.concat(series, axis=1, keys=(*self.by, *names))

    def _skipped_names(self) -> str:
        if not self.skipped:
            return ""
        names = ["/".join(map(str, stratum.values)) for stratum in self.skipped]
        ellipsis = ", …" if len(names) > MAX_LISTED_STRATA else ""
        return f" ({', '.join(names[:MAX_LISTED_STRATA])}{ellipsis})"


@dataclass(frozen=True, slots=True)
class Factors:
    """The strata of all rows, in the order of the values of the factors.

    ``values`` has for each stratum the values of the factors.
    """

    names: tuple[str, ...]
    stratum_of_row: Indices
    values: tuple[tuple[Any, ...], ...]


def factors_of(by: Any, rows: int) -> Factors:
    """Return the strata: each combination of the factors' values that occurs is a stratum."""
    columns = columns_of(by)
    if columns is None:
        array = np.asarray(by)
        if array.ndim not in (1, 2) or (array.ndim == 2 and not array.shape[1]):
            raise UnusableInput(
                f"by has shape {array.shape}",
                hint="give one value for each row, or one column for each factor",
            )
        factors = array.reshape(len(array), -1).T
        names = [f"by{number}" for number in range(1, len(factors) + 1)]
        columns = dict(zip(names if len(names) > 1 else ["by"], factors, strict=True))
    if not columns:
        raise UnusableInput("by has no column", hint="give at least one factor")
    stratum_of_row = np.zeros(rows, dtype=np.int64)
    for name, column in columns.items():
        if column.ndim != 1:
            raise UnusableInput(f"by, factor {name!r} has shape {column.shape}", hint="give a list")
        check_length(len(column), f"by, factor {name!r}", rows)
        indices = value_indices_of(column, f"by, factor {name!r}")
        # Strata are renumbered after each factor, because the products may overflow.
        combined = stratum_of_row * (int(indices.max()) + 1) + indices
        stratum_of_row = np.unique(combined, return_inverse=True)[1].astype(np.int64).reshape(-1)
    _, first_rows = np.unique(stratum_of_row, return_index=True)
    values = [[python_value(cell) for cell in column[first_rows]] for column in columns.values()]
    return Factors(tuple(columns), stratum_of_row, tuple(zip(*values, strict=True)))


def incomplete_strata(units: Units, factors: Factors) -> Truths:
    """Return for each stratum whether it lacks treated units or controls of positive weight."""
    arms = [
        np.bincount(factors.stratum_of_row, units.weights_or_ones * is_in_arm, len(factors.values))
        for is_in_arm in (units.treated, ~units.treated)
    ]
    return np.asarray(np.min(arms, axis=0) <= 0)


def strata_of(
    units: Units, factors: Factors, pairs: _native.Pairs, is_incomplete: Truths
) -> tuple[Stratum, ...]:
    """Count the rows, pairs and dropped units of each stratum, and estimate its effect."""
    count = len(factors.values)

    def sums(strata: Indices, values: Floats | None = None) -> list[Any]:
        """Return the sum of the values in each stratum; without values, the number of rows."""
        totals: list[Any] = np.bincount(strata, values, count).tolist()
        return totals

    pair_strata = factors.stratum_of_row[pairs.query]
    weights = sums(pair_strata, pairs.weights)
    effects: list[float | None] = [None] * count
    if units.outcome is not None:
        sign = np.where(units.treated[pairs.query], 1.0, -1.0)
        differences = sign * (units.outcome[pairs.query] - units.outcome[pairs.matched])
        totals = sums(pair_strata, pairs.weights * differences)
        effects = [
            total / weight * units.outcome_scale if weight > 0 else None
            for total, weight in zip(totals, weights, strict=True)
        ]
    columns = zip(
        factors.values,
        sums(factors.stratum_of_row),
        sums(factors.stratum_of_row[units.treated]),
        weights,
        sums(factors.stratum_of_row[pairs.dropped]),
        effects,
        is_incomplete.tolist(),
        strict=True,
    )
    return tuple(Stratum(*column) for column in columns)
