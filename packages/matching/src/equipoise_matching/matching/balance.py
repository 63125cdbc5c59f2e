"""Balance of many covariates before and after matching."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.matching.distributions import Sample, check_boot, generator, sample_weights
from equipoise_matching.matching.frames import Covariates, covariates_of
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, row_numbers
from equipoise_matching.matching.univariate import UnivariateBalance, balance_of, ks_of
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import Library, frame_of

if TYPE_CHECKING:
    import pandas
    import polars


NOTABLE_PERCENT = 5.0
"""Standardized difference, in percent, below which a covariate is balanced well in any case."""
WORSE_PERCENT = 1.0
"""Growth of a standardized difference, in percentage points, that may be rounding and chance."""


class MatchedPairs(Protocol):
    """A match as balance needs it: pairs of rows, counted from 0, and their weights."""

    @property
    def treated_index(self) -> NDArray[Any]:
        """Treated row of each pair."""

    @property
    def control_index(self) -> NDArray[Any]:
        """Control of each pair."""

    @property
    def weights(self) -> NDArray[Any]:
        """Weight of each pair."""


def match_balance(
    formula_or_matrix: Any,
    data: Any,
    match: MatchedPairs | None = None,
    *,
    boot: int = 500,
    ks: bool = True,
    paired: bool = True,
    weights: Any = None,
    seed: int | None = None,
    estimand: Estimand | None = None,
    r_compatible: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Balance:
    """Compare treated and controls in every covariate, before and after matching.

    Raise `UnusableInput`, naming column and rows of what cannot be used.

    Examples
    --------
    >>> from equipoise_matching import match, match_balance
    >>> age = [25, 31, 38, 46, 24, 30, 40, 47, 52]
    >>> trained = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> wage = [14, 17, 19, 24, 12, 15, 18, 21, 30]
    >>> result = match(wage, trained, age)
    >>> balance = match_balance({"age": age}, trained, result, boot=0)
    >>> before, after = balance.of("age")
    >>> round(before.sdiff, 1), round(after.sdiff, 1)
    (-39.8, -2.8)

    Parameters
    ----------
    formula_or_matrix, data
        ``"treat ~ age + I(age**2)"`` and a frame, or a matrix or frame of covariates and the
        treatment, 0 or 1. Terms beyond the covariates matched on (squares, products)
        show the imbalance that matching left.
    match
        The result of ``match`` on the same rows; without one there is no "after".
    boot
        Bootstrap samples of the KS tests, the same rows for every covariate; 0 for none.
    ks
        Whether to test by Kolmogorov-Smirnov; covariates with two values never are.
    paired
        Test pairs by a paired t-test.
    weights
        Weights of the rows before matching; the match has its own.
    estimand
        Standard deviation that ``sdiff`` is in: the controls' for ATC, else the treated's.
        By default the estimand of the match.
    r_compatible
        R's quirks: QQ and KS ignore weights, ``sdiff_pooled`` of pairs is in
        standard deviations of the treated, the estimand is taken for ATT, QQ places are
        rounded, and the asymptotic KS series stops early.
    progress
        Called with the number of bootstrap samples that are done, and of all.
    """
    check_boot(boot)
    covariates = covariates_of(formula_or_matrix, data)
    treated = np.flatnonzero(covariates.treated)
    control = np.flatnonzero(~covariates.treated)
    row_weights = _row_weights(weights, covariates)
    weights_treated, weights_control = (
        None if row_weights is None else row_weights[rows] for rows in (treated, control)
    )
    before = Groups(treated, control, weights_treated, weights_control, matched=False)
    after = None if match is None else _pairs(match, covariates)
    reference: Estimand = estimand or getattr(match, "estimand", None) or "ATT"
    if r_compatible:
        reference = "ATT"
    columns = covariates.matrix.T
    tested = [place for place, column in enumerate(columns) if ks and len(np.unique(column)) > 2]
    total = boot * (1 if after is None else 2)

    def side(
        groups: Groups, random: np.random.Generator, boots_before: int
    ) -> tuple[UnivariateBalance, ...]:
        samples = [groups.split(column) for column in columns]
        balances = [
            balance_of(
                *pair,
                matched=groups.matched,
                paired=paired,
                estimand=reference,
                r_compatible=r_compatible,
            )
            for pair in samples
        ]

        def report(done: int) -> None:
            if progress is not None:
                progress(boots_before + done, total)

        tests = ks_of(
            [samples[place] for place in tested],
            boot=boot,
            random=random,
            r_compatible=r_compatible,
            progress=report,
        )
        for place, test in zip(tested, tests, strict=True):
            balances[place] = replace(balances[place], ks=test)
        return tuple(balances)

    # Before and after draw from streams of their own, which are independent.
    streams = generator(seed).spawn(2)
    return Balance(
        covariates.names,
        side(before, streams[0], 0),
        None if after is None else side(after, streams[1], boot),
        covariates.matrix,
        before,
        after,
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """The rows compared, with their weights; ``matched`` if row i of both is a pair."""

    treated: NDArray[np.intp]
    control: NDArray[np.intp]
    weights_treated: Floats | None
    weights_control: Floats | None
    matched: bool

    def split(self, column: Floats) -> tuple[Sample, Sample]:
        """Return a column's values among the treated and among the controls."""
        return (
            Sample(column[self.treated], self.weights_treated),
            Sample(column[self.control], self.weights_control),
        )


@dataclass(frozen=True, slots=True)
class SmallestP:
    """Smallest p-value, and every ``(variable, test)`` that has it."""

    value: float
    where: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WorsenedVariable:
    """A variable whose standardized difference matching made larger; both are in percent."""

    variable: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of every covariate, in the order of ``variables``.

    ``after`` is ``None`` where nothing was matched. Methods raise ``UnusableInput`` for an unknown
    variable, and without the package that they need: altair
    (``equipoise-matching[charts]``) for plots, the
    library for frames.
    """

    variables: tuple[str, ...]
    before: tuple[UnivariateBalance, ...]
    after: tuple[UnivariateBalance, ...] | None
    matrix: Floats = field(repr=False, compare=False)
    groups_before: Groups = field(repr=False, compare=False)
    groups_after: Groups | None = field(repr=False, compare=False)

    @property
    def smallest_before(self) -> SmallestP:
        """Smallest p-value before matching."""
        return smallest_p(self.variables, self.before)

    @property
    def smallest_after(self) -> SmallestP | None:
        """Smallest p-value after matching."""
        return None if self.after is None else smallest_p(self.variables, self.after)

    def of(self, variable: str) -> tuple[UnivariateBalance, UnivariateBalance | None]:
        """Return the balance of one variable before and after."""
        place = self._place(variable)
        return self.before[place], None if self.after is None else self.after[place]

    def worsened(self) -> tuple[WorsenedVariable, ...]:
        """Return the variables that matching made less alike, the worst first.

        Their standardized difference grew by more than ``WORSE_PERCENT`` and is now above
        ``NOTABLE_PERCENT``.
        """
        pairs = zip(self.variables, self.before, self.after or (), strict=False)
        worsened = [
            WorsenedVariable(name, before.sdiff, after.sdiff)
            for name, before, after in pairs
            if abs(after.sdiff) > max(NOTABLE_PERCENT, abs(before.sdiff) + WORSE_PERCENT)
        ]
        return tuple(sorted(worsened, key=lambda variable: -abs(variable.after)))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each variable before, and one after; an unknown number is ``None``."""
        sides = [("before", self.before)]
        if self.after is not None:
            sides.append(("after", self.after))
        return [
            {"variable": name, "when": when, **_row(side[place])}
            for place, name in enumerate(self.variables)
            for when, side in sides
        ]

    def to_frame(self, library: Library = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """Return ``rows()`` as a data frame."""
        return frame_of(self.rows(), library)

    def __str__(self) -> str:
        """Return the table as text, and the smallest p-values below it."""
        from equipoise_matching.matching.report import balance_table
        from equipoise_matching.matching.wording import smallest_p_sentence

        return f"{balance_table(self).to_text()}\n{smallest_p_sentence(self)}"

    def _repr_html_(self) -> str:
        """Return the table as a notebook shows it."""
        from equipoise_matching.matching.report import balance_table
        from equipoise_matching.matching.wording import smallest_p_sentence

        sentence = html.text(smallest_p_sentence(self))
        return f"<div>{balance_table(self).to_html()}<p>{sentence}</p></div>"

    def love_plot(self) -> Any:
        """Draw the standardized differences of every variable, before and after."""
        from equipoise_matching.matching.drawing import love_chart

        return love_chart(self)

    def qq_plot(self, variable: str) -> Any:
        """Draw the quantiles of the treated against those of the controls, before and after."""
        from equipoise_matching.matching.drawing import qq_chart

        return qq_chart(self, variable)

    def density_plot(self, variable: str) -> Any:
        """Draw how a variable is distributed in both groups; ``None`` if one has too few rows."""
        from equipoise_matching.matching.drawing import density_chart

        return density_chart(self, variable)

    def shares_plot(self) -> Any:
        """Draw the variables with two values, as shares of both groups; ``None`` without any."""
        from equipoise_matching.matching.drawing import shares_chart

        return shares_chart(self)

    def column(self, variable: str) -> Floats:
        """Return the values of a variable in all rows."""
        return self.matrix[:, self._place(variable)]

    def most_different(self, count: int) -> list[str]:
        """Return this many variables of more than two values, the most different ones first.

        Their distribution functions lie furthest apart after matching, else before.
        """
        distances = [
            (-balance.qq.max, place)
            for place, balance in enumerate(self.before if self.after is None else self.after)
            if len(np.unique(self.matrix[:, place])) > 2
        ]
        return [self.variables[place] for _, place in sorted(distances)[:count]]

    def _place(self, variable: str) -> int:
        if variable not in self.variables:
            raise UnusableInput(
                f"no variable {variable}", hint=f"there are {', '.join(self.variables)}"
            )
        return self.variables.index(variable)


def _row_weights(weights: Any, covariates: Covariates) -> Floats | None:
    row_weights = sample_weights(weights, len(covariates.matrix), "weights")
    for name, arm in (("treated", covariates.treated), ("untreated", ~covariates.treated)):
        if row_weights is not None and not np.any(row_weights[arm] > 0.0):
            raise UnusableInput(
                f"weights: zero for every {name} row", hint="some row of either group must count"
            )
    return row_weights


def _pairs(match: MatchedPairs, covariates: Covariates) -> Groups:
    if not hasattr(match, "treated_index"):
        raise UnusableInput(
            f"match is {match!r}, which is not the result of a match",
            hint="give the result of match or match_by, or the matches of gen_match",
        )
    treated, control = np.asarray(match.treated_index), np.asarray(match.control_index)
    weights = np.asarray(match.weights, dtype=np.float64)
    if not len(treated) == len(control) == len(weights):
        raise UnusableInput(
            f"a match of {len(treated)} treated, {len(control)} controls and {len(weights)} "
            "weights cannot be used: their numbers differ",
            hint="give the result of match()",
        )
    if not len(treated):
        raise UnusableInput(
            "the match has no pair: there is no balance after it",
            hint="widen the caliper, or leave out match= for the balance before",
        )
    rows = len(covariates.treated)
    for index in (treated, control):
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= rows:
            raise UnusableInput(
                f"the match has rows from {index.min()} to {index.max()}, the data {rows} "
                "rows from 0",
                hint="match and balance on the same rows",
            )
    # A match with its treated and controls exchanged would give wrong signs throughout.
    wrong = ~covariates.treated[treated] | covariates.treated[control]
    if wrong.any():
        raise UnusableInput(
            f"the match and the data disagree on who is treated in pairs: {row_numbers(wrong)}",
            hint="match and balance on the same rows in the same order",
        )
    checked = sample_weights(weights, len(weights), "weights of the match")
    return Groups(treated.astype(np.intp), control.astype(np.intp), checked, checked, matched=True)


def smallest_p(variables: Sequence[str], balances: Sequence[UnivariateBalance]) -> SmallestP:
    """Return the smallest of all t and KS p-values, the bootstrapped one where there is one."""
    p_values: dict[tuple[str, str], float] = {}
    for name, balance in zip(variables, balances, strict=True):
        p_values[name, "t"] = balance.t_p_value
        if (ks := balance.ks) is not None:
            p_values[name, "KS"] = ks.p_value if ks.boot_p_value is None else ks.boot_p_value
    smallest = min((p for p in p_values.values() if not math.isnan(p)), default=math.nan)
    return SmallestP(smallest, tuple(where for where, p in p_values.items() if p == smallest))


def _row(balance: UnivariateBalance) -> dict[str, Any]:
    numbers = asdict(balance)
    ks = numbers.pop("ks") or {}
    qq, ecdf = numbers.pop("qq_raw"), numbers.pop("qq")
    numbers |= {f"ks_{name}": ks.get(name) for name in ("statistic", "p_value", "boot_p_value")}
    numbers |= {f"qq_{name}": value for name, value in qq.items()}
    numbers |= {f"ecdf_{name}": value for name, value in ecdf.items()}
    return {
        name: None if value is None or math.isnan(value) else value
        for name, value in numbers.items()
    }
