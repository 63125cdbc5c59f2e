"""What matching inside strata found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.matching.result import Indices, MatchResult

if TYPE_CHECKING:
    from pandas import DataFrame

NAMED_STRATA = 5
"""So many strata a summary names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """The rows that agree in every factor.

    Parameters
    ----------
    values
        Of each factor.
    n, n_treated
        Rows and treated rows.
    n_weighted
        Sum of the weights of its pairs.
    n_dropped
        Units of the estimand without a match.
    estimate
        The effect in the stratum, in units of the outcome, without bias adjustment; ``None``
        without a pair or an outcome.
    skipped
        Whether it lacks treated units or controls.
    """

    values: tuple[Any, ...]
    n: int
    n_treated: int
    n_weighted: float
    n_dropped: int
    estimate: float | None
    skipped: bool


@dataclass(frozen=True, slots=True, eq=False)
class MatchByResult(MatchResult):
    """The pairs of all strata, the effect over them and its errors.

    All that a ``MatchResult`` has, over all strata; ``dropped_index`` has the units of skipped
    strata too, and ``effective_caliper`` has shape (strata, columns).

    Parameters
    ----------
    by
        The names of the factors.
    strata
        In the order of their values.
    stratum
        Of each pair: the place of its stratum in ``strata``.
    """

    by: tuple[str, ...]
    strata: tuple[Stratum, ...] = field(repr=False)
    stratum: Indices = field(repr=False)

    @property
    def skipped(self) -> tuple[Stratum, ...]:
        """The strata without treated units or without controls."""
        return tuple(one for one in self.strata if one.skipped)

    def facts(self) -> list[tuple[str, str]]:
        """Those of a match, with how many strata there are and which were skipped."""
        return [
            *MatchResult.facts(self),
            ("Strata", f"{len(self.strata)} of {', '.join(self.by)}"),
            ("Strata without an arm", f"{len(self.skipped)}{self._skipped_in_words()}"),
        ]

    def to_frame(self) -> DataFrame:
        """That of a match, with the place of each pair's ``stratum`` (pandas)."""
        return MatchResult.to_frame(self).assign(stratum=self.stratum)

    def strata_frame(self) -> DataFrame:
        """A row for each stratum: its factors, then what ``Stratum`` has (pandas)."""
        import pandas

        names = ("n", "n_treated", "n_weighted", "n_dropped", "estimate", "skipped")
        factors = [[one.values[place] for one in self.strata] for place in range(len(self.by))]
        columns = [[getattr(one, name) for one in self.strata] for name in names]
        # A factor may be called like one of these: columns are put together by place.
        series = [pandas.Series(column) for column in (*factors, *columns)]
        return pandas.concat(series, axis=1, keys=(*self.by, *names))

    def _skipped_in_words(self) -> str:
        if not self.skipped:
            return ""
        named = ", ".join(
            "/".join(str(value) for value in one.values) for one in self.skipped[:NAMED_STRATA]
        )
        return f" ({named}{', …' if len(self.skipped) > NAMED_STRATA else ''})"
