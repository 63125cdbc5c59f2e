"""Read the columns that a match needs from a table, and hold the options that form pairs.

A `MatchColumns` names the columns, `read_table` returns them as a `MatchTable` of arrays, and a
`Pairing` has the options. A column of texts becomes several covariates: an indicator (0 or 1) for
each text but the first. A source column is the column from which a covariate was made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise_matching.matching.frames import (
    MAX_CATEGORIES,
    Covariates,
    convert_yes_no,
    covariates_of,
    distinct_texts,
    formula_columns,
    holds_text,
    missing_in,
    numbers_of,
    numeric_columns_of,
    take_rows,
    value_indices_of,
)
from equipoise_matching.matching.options import Estimand, Order
from equipoise_matching.matching.units import Floats, Indices, Truths, treated_rows
from equipoise_matching.observation.question import Names, names_tuple
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import listed
from equipoise_matching.shared.spelling import option
from equipoise_matching.tables.csv_file import Columns
from equipoise_matching.tables.missing import MissingValues, Policy, without_missing
from equipoise_matching.tables.reading import read_columns, source_of


class MatchColumns(Struct, frozen=True, kw_only=True):
    """The names of the columns of a match, as ``match`` and ``gen_match`` take them.

    The columns in ``exact`` are covariates too. ``by`` has the columns that form strata, and
    ``balance`` the right side of a formula with the terms to balance.
    """

    treatment: str | None = None
    covariates: tuple[str, ...] = ()
    formula: str | None = None
    outcome: str | None = None
    weights: str | None = None
    by: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    balance: str | None = None
    missing: Policy = "refuse"

    @classmethod
    def of(
        cls, *, covariates: Names, by: Names = (), exact: Names = (), **other_names: Any
    ) -> MatchColumns:
        """Return the names of columns. A list of one name may be a plain string."""
        return cls(
            covariates=names_tuple(covariates),
            by=names_tuple(by),
            exact=names_tuple(exact),
            **other_names,
        )

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Column that must stay text: as numbers, the versions 1.1 and 1.10 would be equal."""
        column, equals, _ = (self.treatment or "").partition("=")
        return (column,) if equals else ()


class MatchTable(Struct, frozen=True):
    """The columns of a match as arrays.

    ``columns`` is the whole table as it was read, and ``rows`` has the numbers of the rows that
    take part. All other arrays have only these rows. ``source_columns`` has the source column of
    each covariate. ``treatment`` and ``source`` name the treatment and the table in sentences.
    """

    names: MatchColumns
    source: str
    columns: Columns
    rows: Indices
    treatment: str
    covariates: Covariates
    source_columns: tuple[str, ...]
    outcome: Floats | None
    weights: Floats | None
    by: dict[str, NDArray[Any]] | None
    """Columns that form strata; ``None`` without strata."""
    balance: Covariates
    missing: MissingValues
    rows_in_no_arm: int
    """Number of rows that are neither treated nor controls."""

    @property
    def rows_read(self) -> int:
        """Number of rows of the whole table."""
        return len(next(iter(self.columns.values())))


def read_table(table: Any, names: MatchColumns) -> MatchTable:
    """Read the columns of a match from a table, which may be of any type of ``read_columns``.

    The steps: find the columns, convert the treatment to 0 and 1, apply the policy on missing
    values, and convert the other columns to numbers.

    Raise `UnusableInput` if names are missing, a column is missing or cannot be used, or it has
    missing values that the policy refuses. The error names the column and its rows.
    """
    columns, source = read_columns(table, names.text_columns), source_of(table)
    formula = names.formula
    _check_complete(names)
    if formula is not None:
        treatment, arm_values = formula.partition("~")[0].strip().strip("`"), None
        covariate_columns = [
            column for column in formula_columns(formula, columns) if column != treatment
        ]
        treatment_label = treatment
    else:
        treatment, arm_values = _split_treatment(source, columns, str(names.treatment))
        exact = (column for column in names.exact if column in columns)
        covariate_columns = list(dict.fromkeys((*names.covariates, *exact)))
        treatment_label = treatment if arm_values is None else f"{treatment} {arm_values[0]}"
    if treatment in covariate_columns:
        raise UnusableInput(
            f"{treatment} is both the treatment and a covariate: treated rows and controls never "
            "agree in it",
            hint=f"leave {treatment} out of {option('covariates')}",
        )
    matched_on = tuple(covariate_columns)
    if names.balance is not None:
        covariate_columns += formula_columns(names.balance, columns)
    numeric = [column for column in (names.outcome, names.weights) if column is not None]
    # The treatment of a formula may be computed. Evaluating the formula reports missing columns.
    for column in (
        *((treatment, *covariate_columns) if formula is None else ()),
        *numeric,
        *names.by,
    ):
        if column not in columns:
            raise no_column(source, columns, column)
    # Other rows than those of both arms have a third value of the treatment.
    arm_columns = dict(columns)
    rows = np.arange(len(next(iter(columns.values()))))
    if treatment in columns:
        codes, is_in_arm = _treatment_codes(columns[treatment], treatment, arm_values)
        arm_columns[treatment] = codes
        if not is_in_arm.all():
            rows = np.flatnonzero(is_in_arm)
            arm_columns = take_rows(arm_columns, rows)
    fillable = [column for column in covariate_columns if column in columns]
    required = [column for column in (treatment, *numeric, *names.by) if column in columns]
    complete = without_missing(arm_columns, fillable, required, names.missing)
    complete_columns = complete.columns
    if treatment in complete_columns and complete_columns[treatment].dtype.kind == "O":
        # Without missing values, the column has only truth values or numbers.
        complete_columns[treatment] = numbers_of(complete_columns[treatment], treatment)
    if formula is not None:
        covariates = covariates_of(formula, complete_columns)
        source_columns = covariates.names
    else:
        covariates, source_columns = _covariates(
            complete_columns, treatment, matched_on, names.exact
        )
    indicators = {
        name: values
        for name, values in complete.indicators.items()
        if _column_of_indicator(name) in covariate_columns
    }
    covariates, source_columns = _with_indicators(covariates, indicators, source_columns)
    balance = covariates
    if names.balance is not None:
        left_side = f"`{treatment}`" if treatment in complete_columns else treatment
        to_balance = covariates_of(f"{left_side} ~ {names.balance}", complete_columns)
        balance, _ = _with_indicators(to_balance, indicators, to_balance.names)
    outcome, weights = (
        None if column is None else numbers_of(convert_yes_no(complete_columns[column]), column)
        for column in (names.outcome, names.weights)
    )
    return MatchTable(
        names=names,
        source=source,
        columns=columns,
        rows=rows[complete.rows],
        treatment=treatment_label,
        covariates=covariates,
        source_columns=source_columns,
        outcome=outcome,
        weights=weights,
        by={column: complete_columns[column] for column in names.by} if names.by else None,
        balance=balance,
        missing=complete.missing,
        rows_in_no_arm=len(next(iter(columns.values()))) - len(rows),
    )


class TablePairingOptions(TypedDict, total=False):
    """The options of `Pairing` that ``match`` and ``gen_match`` take; ``m`` is R's name."""

    estimand: Estimand
    """The effect on the treated (ATT), on the controls (ATC) or on all (ATE)."""
    m: int
    """Number of matches of a row, not counting ties."""
    exact: Names
    """Columns whose values must be equal within a pair."""
    caliper: float | Sequence[float] | None
    """Largest distance of a match, in standard deviations: a number, or one per covariate."""
    replace: bool
    """Whether a row may be the match of several rows."""
    ties: bool
    """Whether all tied matches are kept; if not, they are drawn at random."""
    common_support: bool
    """Whether rows outside the overlap are left out."""
    r_compatible: bool
    """Whether to return R's numbers even where R has an error (docs/reference/matching.md)."""
    threads: int | None
    """Number of threads; ``None`` for all cores."""
    seed: int | None
    """Seed of every random draw."""


class Pairing(Struct, frozen=True, kw_only=True):
    """Options that decide which rows may form pairs, as in `TablePairingOptions`.

    ``caliper`` has one number for all covariates, or one for each covariate. The caliper of a
    covariate in ``exact`` may be left out.
    """

    estimand: Estimand = "ATT"
    m: int = 1
    exact: tuple[str, ...] = ()
    caliper: tuple[float, ...] | None = None
    replace: bool = True
    order: Order | None = None
    """Order in which rows are matched; ``None`` for the default of ``order_of_rows``."""
    ties: bool = True
    common_support: bool = False
    r_compatible: bool = False
    threads: int | None = None
    seed: int | None = None

    @classmethod
    def of(cls, *, order: Order | None = None, **options: Unpack[TablePairingOptions]) -> Pairing:
        """Return the pairing with these options. A single name or caliper needs no list."""
        exact, caliper = options.pop("exact", ()), options.pop("caliper", None)
        calipers = None if caliper is None else np.atleast_1d(np.asarray(caliper, float))
        return cls(
            **cast("dict[str, Any]", options),
            order=order,
            exact=names_tuple(exact),
            caliper=None if calipers is None else tuple(calipers.tolist()),
        )

    def order_of_rows(self, *, has_score: bool) -> Order:
        """Return the order in which rows are matched without replacement.

        By default, matching on a propensity score begins with the largest score, as in MatchIt.
        """
        return self.order or ("largest" if has_score and not self.r_compatible else "data")

    def arguments(self, names: Sequence[str], source_columns: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of ``match`` and ``gen_match`` for covariates with these names.

        Raise `UnusableInput` if a column in ``exact`` is not a covariate, or the number of calipers
        does not fit.
        """
        matched_on = list(dict.fromkeys(source_columns))
        unknown = [name for name in self.exact if name not in matched_on and name not in names]
        if unknown:
            raise UnusableInput(
                f"{option('exact')}: there is no covariate {', '.join(unknown)}",
                hint=f"name one of {', '.join(matched_on)}, or make it a covariate",
            )
        caliper: Any = self.caliper
        not_exact = [column for column in matched_on if column not in self.exact]
        if caliper is not None and len(caliper) == 1:
            caliper = caliper[0]
        elif caliper is not None and len(caliper) in (len(matched_on), len(not_exact)):
            limited_columns = matched_on if len(caliper) == len(matched_on) else not_exact
            widths = dict(zip(limited_columns, caliper, strict=True))
            caliper = [widths.get(column, math.inf) for column in source_columns]
        elif caliper is not None and len(caliper) != len(names):
            raise UnusableInput(
                f"{option('caliper')} has {len(caliper)} numbers for {len(matched_on)} covariates",
                hint="give one number for all covariates, or a number for each of "
                f"{', '.join(matched_on)}",
            )
        same_in_both = ("estimand", "m", "replace", "ties", "r_compatible", "threads", "seed")
        return {
            **{name: getattr(self, name) for name in same_in_both},
            "exact": self.exact_flags(names, source_columns) if self.exact else None,
            "caliper": caliper,
        }

    def exact_flags(self, names: Sequence[str], source_columns: Sequence[str]) -> list[bool]:
        """Return for each covariate whether ``exact`` names it or its source column."""
        pairs = zip(names, source_columns, strict=True)
        return [name in self.exact or column in self.exact for name, column in pairs]


def no_column(source: str, columns: Mapping[str, Any], name: str) -> UnusableInput:
    """Return the error for a column that is not in the table."""
    hint = f"name one of {', '.join(columns)}"
    return UnusableInput(f"{source}: there is no column {name}", hint=hint)


def _check_complete(names: MatchColumns) -> None:
    if names.formula is not None:
        if names.treatment or names.covariates:
            raise UnusableInput(
                f"{option('formula')} cannot be combined with treatment or covariates",
                hint=f"leave out {option('treatment')} and {option('covariates')}, or "
                f"{option('formula')}",
            )
        return
    if not (names.treatment and names.covariates):
        missing = option("covariates" if names.treatment else "treatment")
        raise UnusableInput(
            f"{missing} is missing",
            hint=f"give {option('treatment')} and {option('covariates')}, or {option('formula')}",
        )


def _split_treatment(
    source: str, columns: Columns, treatment: str
) -> tuple[str, tuple[str, str] | None]:
    """Split ``COLUMN=TREATED:CONTROL`` into the column and its values in both arms.

    Without values, the treatment is the name of a column, which may contain an equals sign.
    """
    if treatment in columns or "=" not in treatment:
        return treatment, None
    column, _, pair = treatment.partition("=")
    if column not in columns:
        raise no_column(source, columns, column)
    known_values = columns[column][~missing_in(columns[column])]
    texts = distinct_texts(known_values, column)[0]
    parts = pair.split(":")
    splits = [(":".join(parts[:index]), ":".join(parts[index:])) for index in range(1, len(parts))]
    known_splits = [
        split
        for split in splits
        if split[0] in texts and split[1] in texts and split[0] != split[1]
    ]
    if len(known_splits) != 1:
        raise UnusableInput(
            f"{option('treatment')}: '{pair}' does not name two values of {column} as "
            "TREATED:CONTROL",
            hint=f"name two of the values of {column}: {listed(texts)}",
        )
    return column, known_splits[0]


def _treatment_codes(
    column: NDArray[Any], name: str, arm_values: tuple[str, str] | None
) -> tuple[NDArray[Any], Truths]:
    """Return the code of each row: 1, 0, missing, or -1 for a third value of the treatment.

    Return also whether each code is not -1. ``name`` is the name of the column.
    """
    is_missing = missing_in(column)
    if arm_values is None:
        codes = convert_yes_no(column)
        if is_missing.any():
            codes = column.astype(object)
            codes[~is_missing] = convert_yes_no(column[~is_missing])
        known_codes = codes[~is_missing]
        if holds_text(known_codes):
            texts, _ = distinct_texts(known_codes, name)
            example = f"{texts[-1]}:{texts[0]}" if len(texts) > 1 else "TREATED:CONTROL"
            raise UnusableInput(
                f"{name} is neither 0 nor 1, nor yes or no: it has {listed(texts)}",
                hint=f"name the treated value first: {option('treatment', f'{name}={example}')}",
            )
        return codes, np.ones(len(column), dtype=np.bool_)
    texts, text_indices = distinct_texts(column[~is_missing], name)
    codes = np.full(len(column), None, dtype=object)
    treated_value, control_value = arm_values
    code_of_text = dict.fromkeys(texts, -1) | {treated_value: 1, control_value: 0}
    codes[~is_missing] = [code_of_text[texts[index]] for index in text_indices.tolist()]
    return codes, np.array([code != -1 for code in codes.tolist()])


def _covariates(
    columns: Columns, treatment: str, covariate_columns: Sequence[str], exact: Sequence[str]
) -> tuple[Covariates, tuple[str, ...]]:
    """Return the covariates as numbers, and the source column of each covariate."""
    treated = treated_rows(numbers_of(columns[treatment], treatment), treatment)
    parts: list[tuple[str, str, Floats]] = []
    for name in covariate_columns:
        column = columns[name]
        is_exact_text = name in exact and holds_text(column)
        if is_exact_text and len(distinct_texts(column, name)[0]) > MAX_CATEGORIES:
            # Pairs are equal in this column, so distances between the codes do not matter.
            parts.append((name, name, value_indices_of(column, name).astype(np.float64)))
        else:
            numeric_columns = numeric_columns_of(column, name)
            parts += [(covariate, name, values) for covariate, values in numeric_columns]
    if not parts:
        raise UnusableInput(
            f"nothing to match on: every row has the same value of {', '.join(covariate_columns)}",
            hint="name columns that differ between rows",
        )
    names, source_columns, values = zip(*parts, strict=True)
    return Covariates(names, np.column_stack(values), treated), source_columns


def _with_indicators(
    covariates: Covariates, indicators: Mapping[str, Floats], source_columns: tuple[str, ...]
) -> tuple[Covariates, tuple[str, ...]]:
    """Add the indicators of missing values to the covariates and to their source columns."""
    if not indicators:
        return covariates, source_columns
    return (
        Covariates(
            (*covariates.names, *indicators),
            np.column_stack([covariates.matrix, *indicators.values()]),
            covariates.treated,
        ),
        (*source_columns, *map(_column_of_indicator, indicators)),
    )


def _column_of_indicator(indicator: str) -> str:
    """Return the column whose missing values an indicator marks."""
    return indicator.removesuffix(" is missing")
