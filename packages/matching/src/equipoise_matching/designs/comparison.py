"""Compare designs by their balance, never by an outcome, and combine imputed data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise_matching.designs.balance import DesignBalance, OverallBalance, balance_of_designs
from equipoise_matching.designs.covariate_balance import (
    DENOMINATORS,
    BalanceOptions,
    BinaryDifference,
    Denominator,
)
from equipoise_matching.designs.design import Design
from equipoise_matching.designs.drawing import love_chart
from equipoise_matching.report import UNKNOWN, TextTable
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import Library, frame_of

if TYPE_CHECKING:
    from altair import LayerChart
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

ROUNDED_DIGITS = 6
"""Digits of a difference or a KS statistic that decide the order of designs."""
Designs = Sequence[Design] | Mapping[str, Design]
"""Designs of the same rows, perhaps with a name for each."""


@dataclass(frozen=True, slots=True)
class ComparedDesign:
    """One design of a comparison.

    ``kept`` and ``effective_sizes`` have the rows of each arm, in the order of the arms.
    """

    name: str
    balance: DesignBalance
    kept: tuple[int, ...]
    effective_sizes: tuple[float, ...]

    @property
    def overall(self) -> OverallBalance:
        """The balance of all covariates together, after the design."""
        return self.balance.overall()


@dataclass(frozen=True, slots=True)
class DesignComparison:
    """Designs in order of balance, the best first.

    The order is by the largest difference, the mean difference (both without their sign) and the
    largest KS statistic, all with six digits, then by the smaller effective size.
    """

    designs: tuple[ComparedDesign, ...]
    arm_names: tuple[str, ...]

    @property
    def before(self) -> OverallBalance:
        """The balance of all covariates together, before any design."""
        return self.designs[0].balance.overall("before")

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each design, the best first; unknown numbers are ``None``."""
        rows = []
        for design in self.designs:
            row: dict[str, Any] = {"design": design.name, "estimand": design.balance.estimand}
            row |= {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(design.overall).items()
            }
            for index, arm in enumerate(self.arm_names):
                row[f"kept {arm.lower()}"] = design.kept[index]
                row[f"effective {arm.lower()}"] = design.effective_sizes[index]
            rows.append(row)
        return rows

    def to_frame(self, library: Library = "pandas") -> PandasFrame | PolarsFrame:
        """Return ``rows()`` as a data frame."""
        return frame_of(self.rows(), library)

    def love_plot(self) -> LayerChart:
        """Draw the differences of every covariate before matching and after each design."""
        return love_chart({design.name: design.balance for design in self.designs})

    def summary(self) -> str:
        """Return the table of designs, and how they are ordered."""
        return f"{self._table().to_text()}\n\n{self._note()}"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<div>{self._table().to_html()}<p>{html.text(self._note())}</p></div>"

    def _note(self) -> str:
        return (
            "The best balance is first: by the largest difference, then by the mean difference, KS "
            "and the effective sizes. No outcome takes part."
        )

    def _table(self) -> TextTable:
        rows = [
            (
                "before matching",
                *_texts_of(self.before),
                *(f"{size.rows:,}" for size in self.designs[0].balance.sizes),
            )
        ]
        for design in self.designs:
            sizes = (
                f"{kept:,} ({effective:,.1f})"
                for kept, effective in zip(design.kept, design.effective_sizes, strict=True)
            )
            rows.append((design.name, *_texts_of(design.overall), *sizes))
        arms = (f"{name.lower()} (effective)" for name in self.arm_names)
        headings = ("design", "largest", "covariate", "mean", "KS", *arms)
        return TextTable(headings, tuple(rows), "Balance of the designs")


def compare_designs(
    designs: Designs,
    *outcomes: Any,
    covariates: Any = None,
    standardize: Denominator | None = None,
    binary: BinaryDifference = "raw",
    **outcomes_by_name: Any,
) -> DesignComparison:
    """Put designs of the same rows in order of their balance, the best first.

    A design is chosen before its effect is known. So an outcome, or an effect in the place of a
    design, raises `UnusableInput`; so do designs of different rows.

    Examples
    --------
    >>> from equipoise_matching import compare_designs, full_match, optimal_match
    >>> treat, X = [1, 1, 0, 0, 0], {"age": [25, 31, 24, 31, 52]}
    >>> comparison = compare_designs([full_match(treat, X), optimal_match(treat, X)])
    >>> [(row["design"], round(row["largest_difference"], 2)) for row in comparison.rows()]
    [('optimal_match', 0.12), ('full_match', 1.12)]

    Parameters
    ----------
    designs
        A list of designs, named after their methods; or a mapping from names to designs.
    covariates
        A table of the same rows; by default the covariates of the designs, which must be the same.
    standardize
        Rows whose standard deviation before matching divides a difference, as in ``balance``. By
        default those of the estimand, or ``pooled`` if the estimands differ.
    binary
        Whether the difference of a binary covariate is ``raw`` or ``standardized``.
    """
    if outcomes or outcomes_by_name:
        name = next(iter(outcomes_by_name), "a second argument")
        raise UnusableInput(
            f"compare_designs takes no outcome, and got {name}: a design is chosen by its balance",
            hint="leave it out, and estimate the effect of the design that you choose",
        )
    named = _named_designs(designs)
    _require_same_rows(named, covariates)
    if standardize is None:
        defaults = {DENOMINATORS.get(design.estimand, "pooled") for design in named.values()}
        has_two_arms = len(next(iter(named.values())).units.arms) == 2
        standardize = defaults.pop() if len(defaults) == 1 and has_two_arms else "pooled"
    options = BalanceOptions(standardize, binary)
    compared = []
    for name, design in named.items():
        balance = balance_of_designs([design], covariates=[covariates], options=options)
        kept = tuple(size.kept for size in balance.sizes)
        compared.append(ComparedDesign(name, balance, kept, design.effective_sizes))
    compared.sort(key=_badness)
    return DesignComparison(tuple(compared), next(iter(named.values())).units.arm_names)


def love_plot(designs: Designs, *, covariates: Any = None) -> LayerChart:
    """Draw the balance of several designs beside each other, and before matching (Love 2004).

    Raise `UnusableInput` as ``compare_designs`` does, for more than five designs, and if altair is
    missing.

    Examples
    --------
    >>> from equipoise_matching import love_plot, optimal_match
    >>> pairs = optimal_match([1, 1, 0, 0, 0], {"age": [25, 31, 24, 31, 52]})
    >>> love_plot([pairs]).to_dict()["title"]["text"]
    'Balance of the covariates'
    """
    return compare_designs(designs, covariates=covariates).love_plot()


def balance_of_imputations(
    designs: Sequence[Design],
    *,
    covariates: Sequence[Any] | None = None,
    standardize: Denominator | None = None,
    binary: BinaryDifference = "raw",
    squares: bool = False,
    interactions: bool = False,
) -> DesignBalance:
    """Return the balance of the designs of several imputed data sets, one design for each.

    The summary has the mean and the largest difference of a covariate over the data sets, and
    ``to_frame`` every difference. Densities, histograms and shares are those of the first data
    set. The options are those of ``Design.balance``; ``covariates`` has
    a table for each design. Raise `UnusableInput` for fewer than two designs, and as
    ``Design.balance`` does.

    Examples
    --------
    >>> from equipoise_matching import balance_of_imputations, optimal_match
    >>> designs = [optimal_match([1, 1, 0, 0], {"age": [25, 31, 24, age]}) for age in (30, 35)]
    >>> balance_of_imputations(designs).overall().worst
    'age, imputation 2'
    """
    checked = [_require_design(design, f"designs[{i}]") for i, design in enumerate(designs)]
    if len(checked) < 2:
        raise UnusableInput(
            f"there is {len(checked)} design, and several imputed data sets have one each",
            hint="give a list of designs, or use design.balance() for one",
        )
    tables = [None] * len(checked) if covariates is None else list(covariates)
    if len(tables) != len(checked):
        raise UnusableInput(
            f"covariates has {len(tables)} tables for {len(checked)} designs",
            hint="give a table for each design",
        )
    options = BalanceOptions(standardize, binary, squares, interactions)
    return balance_of_designs(checked, covariates=tables, options=options)


def _named_designs(designs: Designs) -> dict[str, Design]:
    """Return the designs by name; equal names get a number."""
    if isinstance(designs, Design):
        designs = [designs]
    if isinstance(designs, Mapping):
        named = {
            str(name): _require_design(design, f"designs[{name!r}]")
            for name, design in designs.items()
        }
    else:
        named = dict(_numbered(designs))
    if not named:
        raise UnusableInput("there is no design to compare", hint="give a list of designs")
    return named


def _numbered(designs: Sequence[Design]) -> Iterator[tuple[str, Design]]:
    counts: dict[str, int] = {}
    for index, value in enumerate(designs):
        design = _require_design(value, f"designs[{index}]")
        counts[design.method] = counts.get(design.method, 0) + 1
        count = counts[design.method]
        yield design.method if count == 1 else f"{design.method} {count}", design


def _require_design(value: Any, place: str) -> Design:
    if isinstance(value, Design):
        return value
    raise UnusableInput(
        f"{place} is of type {type(value).__name__}, which is not a design; designs are compared "
        "by their balance, without an outcome or an effect",
        hint="give the result of optimal_match, cem or another function that makes a design",
    )


def _require_same_rows(designs: Mapping[str, Design], covariates: Any) -> None:
    """Raise `UnusableInput` if designs have different rows, or different covariates."""
    (first_name, first), *others = designs.items()
    for name, design in others:
        if not np.array_equal(design.units.arm, first.units.arm):
            raise UnusableInput(
                f"the designs {first_name} and {name} have different rows or treatments",
                hint="compare designs that were made from the same table",
            )
        if covariates is None and design.units.names != first.units.names:
            raise UnusableInput(
                f"the designs {first_name} and {name} have different covariates",
                hint="give covariates=X, the columns by which all designs are compared",
            )


def _badness(design: ComparedDesign) -> tuple[float, ...]:
    """Return the key of the order; a design with unknown differences is last."""
    overall = design.overall
    if overall.unknown:
        return (math.inf,)
    numbers = (overall.largest_difference, overall.mean_difference, overall.largest_ks)
    # Differences of rounding errors must not decide the order.
    rounded = (round(number, ROUNDED_DIGITS) for number in numbers)
    return (*rounded, -min(design.effective_sizes))


def _texts_of(overall: OverallBalance) -> tuple[str, str, str, str]:
    largest, mean, ks = (
        UNKNOWN if math.isnan(value) else f"{value:.3f}"
        for value in (overall.largest_difference, overall.mean_difference, overall.largest_ks)
    )
    return largest, overall.worst, mean, ks
