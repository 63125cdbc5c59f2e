"""What ``match_balance`` found, with its tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.balance_univariate import UnivariateBalance
from equipoise.matching.empirical import Values
from equipoise.matching.qq import quantiles
from equipoise.model.errors import UnusableInput
from equipoise.model.frame import Library, frame_of

if TYPE_CHECKING:
    import altair
    import pandas
    import polars

MOST_QUANTILES = 400
"""So many points at most show a QQ plot's shape."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The rows compared, with what each counts; ``matched`` if row i of both is a pair."""

    treated: NDArray[np.intp]
    control: NDArray[np.intp]
    weights_treated: Values | None
    weights_control: Values | None
    matched: bool

    def split(self, column: Values) -> tuple[Values, Values]:
        """A column's values among the treated and the controls."""
        return column[self.treated], column[self.control]


@dataclass(frozen=True, slots=True)
class SmallestP:
    """The smallest p-value, and every ``(variable, test)`` that has it."""

    value: float
    where: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of every covariate, in the order of ``variables``.

    ``after`` is ``None`` where nothing was matched.
    """

    variables: tuple[str, ...]
    before: tuple[UnivariateBalance, ...]
    after: tuple[UnivariateBalance, ...] | None
    _matrix: Values = field(repr=False, compare=False)
    _groups_before: Groups = field(repr=False, compare=False)
    _groups_after: Groups | None = field(repr=False, compare=False)

    @property
    def smallest_before(self) -> SmallestP:
        """The smallest p-value before matching."""
        return smallest_p(self.variables, self.before)

    @property
    def smallest_after(self) -> SmallestP | None:
        """The smallest p-value after matching."""
        return None if self.after is None else smallest_p(self.variables, self.after)

    def of(self, variable: str) -> tuple[UnivariateBalance, UnivariateBalance | None]:
        """One variable before and after.

        Raises
        ------
        UnusableInput
            There is no such variable.
        """
        place = self._place(variable)
        return self.before[place], None if self.after is None else self.after[place]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each variable before, and one after; what is unknown is ``None``."""
        sides = [("before", self.before)]
        if self.after is not None:
            sides.append(("after", self.after))
        return [
            {"variable": name, "when": when, **_row(side[place])}
            for place, name in enumerate(self.variables)
            for when, side in sides
        ]

    def to_frame(self, library: Library = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """``rows()`` as a data frame.

        Raises
        ------
        UnusableInput
            The library is another, or not installed.
        """
        return frame_of(self.rows(), library)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from equipoise.matching.balance_table import HEADINGS, cells, smallest_words
        from equipoise.report.html_table import table, text

        below = "".join(f"<p>{text(words)}</p>" for words in smallest_words(self))
        return f"<div>{table(HEADINGS, cells(self), names=2)}{below}</div>"

    def love_plot(self) -> altair.LayerChart:
        """The standardized differences of every variable, before and after.

        Raises
        ------
        UnusableInput
            altair is not installed.
        """
        from equipoise.figures.save import require_figures

        require_figures()
        from equipoise.figures.balance import love_plot

        return love_plot(
            self.variables,
            [one.sdiff for one in self.before],
            None if self.after is None else [one.sdiff for one in self.after],
        )

    def qq_plot(self, variable: str) -> altair.LayerChart:
        """The quantiles of the treated against those of the controls, before and after.

        Raises
        ------
        UnusableInput
            There is no such variable, or altair is not installed.
        """
        column = self._matrix[:, self._place(variable)]
        from equipoise.figures.save import require_figures

        require_figures()
        from equipoise.figures.balance import qq_plot

        return qq_plot(
            variable,
            _quantile_pairs(column, self._groups_before),
            None if self._groups_after is None else _quantile_pairs(column, self._groups_after),
            notes=self._thinned(),
        )

    def density_plot(self, variable: str) -> altair.LayerChart | None:
        """How a variable is distributed in both groups; ``None`` if one has too few rows.

        Raises
        ------
        UnusableInput
            There is no such variable, or altair is not installed.
        """
        column = self._matrix[:, self._place(variable)]
        from equipoise.figures.save import require_figures

        require_figures()
        from equipoise.figures.balance import Arms, Weighted, group_density

        def arms(groups: Groups) -> Arms:
            treated, control = groups.split(column)
            return Arms(
                Weighted(treated, groups.weights_treated), Weighted(control, groups.weights_control)
            )

        after = self._groups_after
        return group_density(
            variable, arms(self._groups_before), None if after is None else arms(after)
        )

    def shares_plot(self) -> altair.LayerChart | None:
        """The variables with two values, as shares of both groups; ``None`` without any.

        Raises
        ------
        UnusableInput
            altair is not installed.
        """
        from equipoise.figures.save import require_figures

        require_figures()
        from equipoise.figures.balance import Share, shares

        rows = []
        for place, name in enumerate(self.variables):
            values = np.unique(self._matrix[:, place])
            if len(values) != 2:
                continue
            larger = (self._matrix[:, place] == values[1]).astype(np.float64)
            is_indicator = values.tolist() == [0.0, 1.0]
            after = self._groups_after
            rows.append(
                Share(
                    name if is_indicator else f"{name} = {values[1]:.6g}",
                    _shares(larger, self._groups_before),
                    None if after is None else _shares(larger, after),
                )
            )
        return shares(rows) if rows else None

    def unlike(self, count: int) -> list[str]:
        """So many variables with more than two values, the least alike in distribution first.

        Those whose distribution functions lie furthest apart after matching, else before.
        """
        numbers = [
            (-one.qq.max, place)
            for place, one in enumerate(self.before if self.after is None else self.after)
            if len(np.unique(self._matrix[:, place])) > 2
        ]
        return [self.variables[place] for _, place in sorted(numbers)[:count]]

    def _thinned(self) -> list[str]:
        rows = min(map(len, (self._groups_before.treated, self._groups_before.control)))
        if rows <= MOST_QUANTILES:
            return []
        return [f"{MOST_QUANTILES} quantiles stand for {rows:,} rows and more of each group."]

    def _place(self, variable: str) -> int:
        if variable not in self.variables:
            raise UnusableInput(
                f"no variable {variable}", hint=f"there are {', '.join(self.variables)}"
            )
        return self.variables.index(variable)


def smallest_p(variables: Sequence[str], balances: Sequence[UnivariateBalance]) -> SmallestP:
    """The smallest of all t and KS p-values, the bootstrapped one where there is one."""
    found: list[tuple[float, tuple[str, str]]] = []
    for name, one in zip(variables, balances, strict=True):
        found.append((one.t_p_value, (name, "t")))
        if one.ks is not None:
            p_value = one.ks.p_value if one.ks.boot_p_value is None else one.ks.boot_p_value
            found.append((p_value, (name, "KS")))
    known = [entry for entry in found if not math.isnan(entry[0])]
    if not known:
        return SmallestP(math.nan, ())
    smallest = min(p_value for p_value, _ in known)
    return SmallestP(smallest, tuple(where for p_value, where in known if p_value == smallest))


def _row(one: UnivariateBalance) -> dict[str, Any]:
    ks = one.ks
    row = {
        "mean_treated": one.mean_treated,
        "mean_control": one.mean_control,
        "variance_treated": one.variance_treated,
        "variance_control": one.variance_control,
        "variance_ratio": one.variance_ratio,
        "sdiff": one.sdiff,
        "sdiff_pooled": one.sdiff_pooled,
        "t_p_value": one.t_p_value,
        "ks_statistic": None if ks is None else ks.statistic,
        "ks_p_value": None if ks is None else ks.p_value,
        "ks_boot_p_value": None if ks is None else ks.boot_p_value,
        "qq_mean": one.qq_raw.mean,
        "qq_median": one.qq_raw.median,
        "qq_max": one.qq_raw.max,
        "ecdf_mean": one.qq.mean,
        "ecdf_median": one.qq.median,
        "ecdf_max": one.qq.max,
    }
    return {
        name: None if value is None or math.isnan(value) else value for name, value in row.items()
    }


def _shares(column: Values, groups: Groups) -> tuple[float, float]:
    """Of (controls, treated), in percent."""
    treated, control = groups.split(column)
    return (
        100.0 * float(np.average(control, weights=groups.weights_control)),
        100.0 * float(np.average(treated, weights=groups.weights_treated)),
    )


def _quantile_pairs(column: Values, groups: Groups) -> list[tuple[float, float]]:
    """Quantiles of (controls, treated) at the same levels."""
    treated, control = groups.split(column)
    count = min(len(treated), len(control), MOST_QUANTILES)
    levels = (np.arange(count) + 0.5) / count
    return list(
        zip(
            quantiles(control, groups.weights_control, levels).tolist(),
            quantiles(treated, groups.weights_treated, levels).tolist(),
            strict=True,
        )
    )
