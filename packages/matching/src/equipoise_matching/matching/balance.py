"""Compare many covariates of the treated and the controls, before and after matching."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.matching.distributions import (
    Sample,
    check_boot,
    random_generator,
    sample_weights,
)
from equipoise_matching.matching.frames import Covariates, covariates_of
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, row_numbers
from equipoise_matching.matching.univariate import UnivariateBalance, balance_of, ks_tests_of
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import Library, frame_of

if TYPE_CHECKING:
    import pandas
    import polars

SMALL_DIFFERENCE_PERCENT = 5.0
"""Standardized difference, in percent, up to which a covariate is well balanced."""
SMALL_INCREASE_PERCENT = 1.0
"""Increase of a standardized difference, in percentage points, up to which it may be chance."""


class MatchedPairs(Protocol):
    """The part of a match that a balance needs: pairs of rows, counted from 0, and weights."""

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

    Raise `UnusableInput` if the data cannot be used; the error names the column and the rows.

    Examples
    --------
    >>> from equipoise_matching import match, match_balance
    >>> trained, age = [1, 1, 0, 0, 0], [25, 31, 24, 31, 52]
    >>> balance = match_balance({"age": age}, trained, match(None, trained, age), boot=0)
    >>> before, after = balance.of("age")
    >>> round(before.sdiff, 1), round(after.sdiff, 1)
    (-180.7, 11.8)

    Parameters
    ----------
    formula_or_matrix, data
        A formula such as ``"treat ~ age + I(age**2)"`` and a frame; or a matrix or frame of
        covariates, and the treatment, 0 or 1. Squares and products show imbalance that remains.
    match
        The result of ``match`` on the same rows; ``None`` for no balance after matching.
    boot
        Number of bootstrap samples of the Kolmogorov-Smirnov (KS) tests; 0 for none.
    ks
        Whether to make KS tests. A covariate with two values has no KS test.
    paired
        Whether to make paired t-tests after matching.
    weights
        Weights of the rows before matching. After matching, the weights of the pairs count.
    estimand
        ATT, ATC or ATE, by default the estimand of the match. ``sdiff`` is in standard deviations
        of the controls for ATC, else of the treated rows.
    r_compatible
        Whether to return R's numbers even where R has an error (docs/evidence/r-packages.md).
    progress
        Function that receives the number of bootstrap samples done and of all samples.
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
    after = None if match is None else matched_groups(match, covariates)
    sdiff_estimand: Estimand = estimand or getattr(match, "estimand", None) or "ATT"
    if r_compatible:
        sdiff_estimand = "ATT"
    columns = covariates.matrix.T
    ks_indices = [
        index for index, column in enumerate(columns) if ks and len(np.unique(column)) > 2
    ]
    total_samples = boot * (1 if after is None else 2)

    def balance_in(
        groups: Groups, random: np.random.Generator, earlier_samples: int
    ) -> tuple[UnivariateBalance, ...]:
        """Return the balance of every column; ``progress`` counts ``earlier_samples`` too."""
        samples = [groups.split(column) for column in columns]
        balances = [
            balance_of(
                *treated_and_control,
                matched=groups.matched,
                paired=paired,
                estimand=sdiff_estimand,
                r_compatible=r_compatible,
            )
            for treated_and_control in samples
        ]

        def report(done: int) -> None:
            if progress is not None:
                progress(earlier_samples + done, total_samples)

        tests = ks_tests_of(
            [samples[index] for index in ks_indices],
            boot=boot,
            random=random,
            r_compatible=r_compatible,
            progress=report,
        )
        for index, test in zip(ks_indices, tests, strict=True):
            balances[index] = replace(balances[index], ks=test)
        return tuple(balances)

    # Before and after have independent streams of random numbers.
    random_before, random_after = random_generator(seed).spawn(2)
    return Balance(
        covariates.names,
        balance_in(before, random_before, 0),
        None if after is None else balance_in(after, random_after, boot),
        covariates.matrix,
        before,
        after,
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows and weights of both groups. If ``matched``, rows i of both groups are a pair."""

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
    """The smallest p-value, and the tests that have it."""

    value: float
    tests: tuple[tuple[str, str], ...]
    """Variable and kind (``t``, ``KS``) of each test."""


@dataclass(frozen=True, slots=True)
class WorsenedVariable:
    """A variable that matching made less balanced: its standardized differences in percent."""

    variable: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of every covariate, in the order of ``variables``.

    ``after`` is ``None`` without a match. Methods raise ``UnusableInput`` for an unknown variable,
    and for a missing package: altair (``equipoise-matching[charts]``) for a plot, pandas or polars
    for a frame.
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
        index = self._index_of(variable)
        return self.before[index], None if self.after is None else self.after[index]

    def worsened(self) -> tuple[WorsenedVariable, ...]:
        """Return the variables that matching made less balanced, the worst first.

        Their standardized difference grew by more than ``SMALL_INCREASE_PERCENT`` and is above
        ``SMALL_DIFFERENCE_PERCENT`` after matching.
        """
        pairs = zip(self.variables, self.before, self.after or (), strict=False)
        worsened = [
            WorsenedVariable(name, before.sdiff, after.sdiff)
            for name, before, after in pairs
            if abs(after.sdiff)
            > max(SMALL_DIFFERENCE_PERCENT, abs(before.sdiff) + SMALL_INCREASE_PERCENT)
        ]
        return tuple(sorted(worsened, key=lambda variable: -abs(variable.after)))

    def rows(self) -> list[dict[str, Any]]:
        """Return two rows for each variable, before and after; unknown numbers are ``None``."""
        balances_by_time = [("before", self.before)]
        if self.after is not None:
            balances_by_time.append(("after", self.after))
        return [
            {"variable": name, "when": when, **_numbers_of(balances[index])}
            for index, name in enumerate(self.variables)
            for when, balances in balances_by_time
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
        from equipoise_matching.matching.report import balance_table
        from equipoise_matching.matching.wording import smallest_p_sentence

        sentence = html.text(smallest_p_sentence(self))
        return f"<div>{balance_table(self).to_html()}<p>{sentence}</p></div>"

    def love_plot(self) -> Any:
        """Draw the standardized differences of every variable, before and after."""
        from equipoise_matching.matching.drawing import love_chart

        return love_chart(self)

    def qq_plot(self, variable: str) -> Any:
        """Draw quantiles of the treated against quantiles of the controls, before and after."""
        from equipoise_matching.matching.drawing import qq_chart

        return qq_chart(self, variable)

    def density_plot(self, variable: str) -> Any:
        """Draw the density of a variable in both groups; ``None`` if a group has too few rows."""
        from equipoise_matching.matching.drawing import density_chart

        return density_chart(self, variable)

    def shares_plot(self) -> Any:
        """Draw the shares of variables with two values; ``None`` without such variables."""
        from equipoise_matching.matching.drawing import shares_chart

        return shares_chart(self)

    def column(self, variable: str) -> Floats:
        """Return the values of a variable in all rows."""
        return self.matrix[:, self._index_of(variable)]

    def most_different(self, count: int) -> list[str]:
        """Return the ``count`` variables whose distribution functions differ most.

        They have more than two values. The groups are those after matching, if there is a match.
        """
        distances = [
            (-balance.ecdf_differences.max, index)
            for index, balance in enumerate(self.before if self.after is None else self.after)
            if len(np.unique(self.matrix[:, index])) > 2
        ]
        return [self.variables[index] for _, index in sorted(distances)[:count]]

    def _index_of(self, variable: str) -> int:
        if variable not in self.variables:
            raise UnusableInput(
                f"there is no variable {variable}", hint=f"name one of {', '.join(self.variables)}"
            )
        return self.variables.index(variable)


def _row_weights(weights: Any, covariates: Covariates) -> Floats | None:
    row_weights = sample_weights(weights, len(covariates.matrix), "weights")
    for name, arm in (("treated", covariates.treated), ("untreated", ~covariates.treated)):
        if row_weights is not None and not np.any(row_weights[arm] > 0.0):
            raise UnusableInput(
                f"weights: zero for every {name} row",
                hint="give at least one row of each group a positive weight",
            )
    return row_weights


def matched_groups(match: MatchedPairs, covariates: Covariates) -> Groups:
    """Return the rows and the weights of the pairs, after checking that they fit the data."""
    if not hasattr(match, "treated_index"):
        raise UnusableInput(
            f"match is {match!r}, which is not the result of a match",
            hint="give the result of match or match_by, or the matches of gen_match",
        )
    treated, control = np.asarray(match.treated_index), np.asarray(match.control_index)
    weights = np.asarray(match.weights, dtype=np.float64)
    if not len(treated) == len(control) == len(weights):
        raise UnusableInput(
            f"the match has {len(treated)} treated rows, {len(control)} controls and "
            f"{len(weights)} weights: these numbers must be equal",
            hint="give the result of match()",
        )
    if not len(treated):
        raise UnusableInput(
            "the match has no pairs, so there is no balance after matching",
            hint="widen the caliper, or leave out match= for the balance before matching",
        )
    row_count = len(covariates.treated)
    for index in (treated, control):
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= row_count:
            raise UnusableInput(
                f"the match has rows from {index.min()} to {index.max()}, but the data have the "
                f"rows 0 to {row_count - 1}",
                hint="give match_balance the same rows as match",
            )
    # If treated rows and controls were exchanged, all differences would have the wrong sign.
    is_wrong = ~covariates.treated[treated] | covariates.treated[control]
    if is_wrong.any():
        pairs = row_numbers(is_wrong, "pair")
        raise UnusableInput(
            f"the match and the data disagree on who is treated in {pairs} (from 0)",
            hint="give match_balance the same rows as match, in the same order",
        )
    pair_weights = sample_weights(weights, len(weights), "weights of the match")
    rows = (treated.astype(np.intp), control.astype(np.intp))
    return Groups(*rows, pair_weights, pair_weights, matched=True)


def smallest_p(variables: Sequence[str], balances: Sequence[UnivariateBalance]) -> SmallestP:
    """Return the smallest of all t and KS p-values; KS p-values are bootstrapped if possible."""
    p_values: dict[tuple[str, str], float] = {}
    for name, balance in zip(variables, balances, strict=True):
        p_values[name, "t"] = balance.t_p_value
        if (ks := balance.ks) is not None:
            p_values[name, "KS"] = ks.p_value if ks.boot_p_value is None else ks.boot_p_value
    smallest = min((p for p in p_values.values() if not math.isnan(p)), default=math.nan)
    return SmallestP(smallest, tuple(pair for pair, p in p_values.items() if p == smallest))


def _numbers_of(balance: UnivariateBalance) -> dict[str, Any]:
    """Return all numbers of a balance by name, as in ``rows``; unknown numbers are ``None``."""
    numbers = asdict(balance)
    ks = numbers.pop("ks") or {}
    qq, ecdf = numbers.pop("quantile_differences"), numbers.pop("ecdf_differences")
    numbers |= {f"ks_{name}": ks.get(name) for name in ("statistic", "p_value", "boot_p_value")}
    numbers |= {f"qq_{name}": value for name, value in qq.items()}
    numbers |= {f"ecdf_{name}": value for name, value in ecdf.items()}
    return {
        name: None if value is None or math.isnan(value) else value
        for name, value in numbers.items()
    }
