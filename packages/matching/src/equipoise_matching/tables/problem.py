"""Read the columns of a matching question: treatment, covariates, outcome, weights, strata."""

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
    covariates_of,
    distinct_texts,
    formula_columns,
    holds_text,
    levels_of,
    missing_in,
    numbers_of,
    numbers_or_indicators,
    take_rows,
    yes_or_no,
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
    """The columns of a question, as ``match`` and ``gen_match`` take them.

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
        cls,
        *,
        treatment: str | None,
        covariates: Names,
        formula: str | None,
        weights: str | None,
        missing: Policy,
        outcome: str | None = None,
        by: Names = (),
        exact: Names = (),
        balance: str | None = None,
    ) -> MatchColumns:
        """Return the columns of a question. A single name may be a plain string."""
        return cls(
            treatment=treatment,
            covariates=names_tuple(covariates),
            formula=formula,
            outcome=outcome,
            weights=weights,
            by=names_tuple(by),
            exact=names_tuple(exact),
            balance=balance,
            missing=missing,
        )

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns of a CSV file to read as text: as numbers, versions 1.1 and 1.10 are equal."""
        column, equals, _ = (self.treatment or "").partition("=")
        return (column,) if equals else ()


class MatchTable(Struct, frozen=True):
    """The columns of a question as arrays.

    ``columns`` is the whole table as it was read, and ``rows`` has the numbers of the rows that
    take part. All other arrays have only these rows. ``owners`` has the column of the table from
    which each covariate was made. ``other_rows`` counts rows that are neither treated nor controls.
    ``treatment`` and ``source`` are the names of the treatment and of the table in sentences.
    """

    question: MatchColumns
    source: str
    columns: Columns
    rows: Indices
    treatment: str
    covariates: Covariates
    owners: tuple[str, ...]
    outcome: Floats | None
    weights: Floats | None
    by: dict[str, NDArray[Any]] | None
    balance: Covariates
    missing: MissingValues
    other_rows: int

    @property
    def rows_read(self) -> int:
        """Number of rows of the whole table."""
        return len(next(iter(self.columns.values())))


def read_table(table: Any, question: MatchColumns) -> MatchTable:
    """Read the columns of a question from a table, which may be of any type of ``read_columns``.

    The steps: find the columns, convert the treatment to 0 and 1, apply the policy on missing
    values, and convert the other columns to numbers.

    Raise `UnusableInput` if the question is incomplete, a column is missing or cannot be used, or
    it has missing values that the policy refuses. The error names the column and its rows.
    """
    columns, source = read_columns(table, question.text_columns), source_of(table)
    formula = question.formula
    _check_complete(question)
    if formula is not None:
        treatment, arms = formula.partition("~")[0].strip().strip("`"), None
        inputs = [column for column in formula_columns(formula, columns) if column != treatment]
        treatment_label = treatment
    else:
        treatment, arms = _treatment_and_values(source, columns, str(question.treatment))
        exact = (column for column in question.exact if column in columns)
        inputs = list(dict.fromkeys((*question.covariates, *exact)))
        treatment_label = treatment if arms is None else f"{treatment} {arms[0]}"
    if treatment in inputs:
        raise UnusableInput(
            f"{treatment} is both the treatment and a covariate: treated rows and controls never "
            "agree in it",
            hint=f"leave {treatment} out of {option('covariates')}",
        )
    matched_on = tuple(inputs)
    if question.balance is not None:
        inputs += formula_columns(question.balance, columns)
    numeric = [column for column in (question.outcome, question.weights) if column is not None]
    # The treatment of a formula may be computed. Evaluating the formula reports missing columns.
    for column in (*((treatment, *inputs) if formula is None else ()), *numeric, *question.by):
        if column not in columns:
            raise no_column(source, columns, column)
    known_inputs = [column for column in inputs if column in columns]
    compared_columns = dict(columns)
    rows = np.arange(len(next(iter(columns.values()))))
    if treatment in columns:
        codes, is_compared = _codes(columns[treatment], treatment, arms)
        compared_columns[treatment] = codes
        if not is_compared.all():
            rows = np.flatnonzero(is_compared)
            compared_columns = take_rows(compared_columns, rows)
    required = [column for column in (treatment, *numeric, *question.by) if column in columns]
    complete = without_missing(compared_columns, known_inputs, required, question.missing)
    kept = complete.columns
    if treatment in kept and kept[treatment].dtype.kind == "O":
        # Without missing values, the column has only truth values or numbers.
        kept[treatment] = numbers_of(kept[treatment], treatment)
    if formula is not None:
        covariates = covariates_of(formula, kept)
        owners = covariates.names
    else:
        covariates, owners = _covariates(kept, treatment, matched_on, question.exact)
    indicators = {key: flag for key, flag in complete.indicators.items() if _owner(key) in inputs}
    covariates, owners = _with_indicators(covariates, indicators, owners)
    balance = covariates
    if question.balance is not None:
        left_side = f"`{treatment}`" if treatment in kept else treatment
        to_balance = covariates_of(f"{left_side} ~ {question.balance}", kept)
        balance, _ = _with_indicators(to_balance, indicators, to_balance.names)
    outcome, weights = (
        None if column is None else numbers_of(yes_or_no(kept[column]), column)
        for column in (question.outcome, question.weights)
    )
    return MatchTable(
        question=question,
        source=source,
        columns=columns,
        rows=rows[complete.rows],
        treatment=treatment_label,
        covariates=covariates,
        owners=owners,
        outcome=outcome,
        weights=weights,
        by={column: kept[column] for column in question.by} if question.by else None,
        balance=balance,
        missing=complete.missing,
        other_rows=len(next(iter(columns.values()))) - len(rows),
    )


class PairingOptions(TypedDict, total=False):
    """The options of `Pairing` that ``match`` and ``gen_match`` take."""

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
    """Options that decide which rows may form pairs; ``match`` has the same names.

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
    def of(cls, *, order: Order | None = None, **options: Unpack[PairingOptions]) -> Pairing:
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

    def settings(self, names: Sequence[str], owners: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of ``match`` and ``gen_match`` for columns with these names.

        ``owners`` has the column of the table from which each column was made. Raise
        `UnusableInput` if a column in ``exact`` is not a covariate, or the number of calipers does
        not fit.
        """
        matched_on = list(dict.fromkeys(owners))
        unknown = [name for name in self.exact if name not in matched_on and name not in names]
        if unknown:
            raise UnusableInput(
                f"{option('exact')}: there is no covariate {', '.join(unknown)}",
                hint=f"name one of {', '.join(matched_on)}, or make it a covariate",
            )
        caliper: Any = self.caliper
        owners_not_exact = [owner for owner in matched_on if owner not in self.exact]
        if caliper is not None and len(caliper) == 1:
            caliper = caliper[0]
        elif caliper is not None and len(caliper) in (len(matched_on), len(owners_not_exact)):
            limited_owners = matched_on if len(caliper) == len(matched_on) else owners_not_exact
            widths = dict(zip(limited_owners, caliper, strict=True))
            caliper = [widths.get(owner, math.inf) for owner in owners]
        elif caliper is not None and len(caliper) != len(names):
            raise UnusableInput(
                f"{option('caliper')} has {len(caliper)} numbers for {len(matched_on)} covariates",
                hint="give one number for all covariates, or a number for each of "
                f"{', '.join(matched_on)}",
            )
        unchanged = ("estimand", "m", "replace", "ties", "r_compatible", "threads", "seed")
        return {
            **{name: getattr(self, name) for name in unchanged},
            "exact": self.exact_in(names, owners) if self.exact else None,
            "caliper": caliper,
        }

    def exact_in(self, names: Sequence[str], owners: Sequence[str]) -> list[bool]:
        """Return for each column whether ``exact`` names the column or its owner."""
        return [not {*pair}.isdisjoint(self.exact) for pair in zip(names, owners, strict=True)]


def no_column(source: str, columns: Mapping[str, Any], name: str) -> UnusableInput:
    """Return the error for a column that is not in the table."""
    hint = f"name one of {', '.join(columns)}"
    return UnusableInput(f"{source}: there is no column {name}", hint=hint)


def _check_complete(question: MatchColumns) -> None:
    if question.formula is not None:
        if question.treatment or question.covariates:
            raise UnusableInput(
                f"{option('formula')} cannot be combined with treatment or covariates",
                hint=f"leave out {option('treatment')} and {option('covariates')}, or "
                f"{option('formula')}",
            )
        return
    if not (question.treatment and question.covariates):
        missing = option("covariates" if question.treatment else "treatment")
        raise UnusableInput(
            f"{missing} is missing",
            hint=f"give {option('treatment')} and {option('covariates')}, or {option('formula')}",
        )


def _treatment_and_values(
    source: str, columns: Columns, treatment: str
) -> tuple[str, tuple[str, str] | None]:
    """Split ``COLUMN=TREATED:CONTROL``; the name of a column may contain an equals sign."""
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


def _codes(
    column: NDArray[Any], name: str, values: tuple[str, str] | None
) -> tuple[NDArray[Any], Truths]:
    """Return 1, 0, missing or -1 (another value) for each row, and whether it is not -1."""
    is_missing = missing_in(column)
    if values is None:
        codes = yes_or_no(column)
        if is_missing.any():
            codes = column.astype(object)
            codes[~is_missing] = yes_or_no(column[~is_missing])
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
    codes[~is_missing] = [
        1 if texts[index] == values[0] else 0 if texts[index] == values[1] else -1
        for index in text_indices.tolist()
    ]
    return codes, np.array([code != -1 for code in codes.tolist()])


def _covariates(
    columns: Columns, treatment: str, covariate_columns: Sequence[str], exact: Sequence[str]
) -> tuple[Covariates, tuple[str, ...]]:
    """Return the covariates as numbers, and the column from which each covariate was made."""
    treated = treated_rows(numbers_of(columns[treatment], treatment), treatment)
    parts: list[tuple[str, str, Floats]] = []
    for owner in covariate_columns:
        column = columns[owner]
        is_exact_text = owner in exact and holds_text(column)
        if is_exact_text and len(distinct_texts(column, owner)[0]) > MAX_CATEGORIES:
            # Pairs are equal in this column, so distances between the codes do not matter.
            parts.append((owner, owner, levels_of(column, owner).astype(np.float64)))
        else:
            indicators = numbers_or_indicators(column, owner)
            parts += [(label, owner, values) for label, values in indicators]
    if not parts:
        raise UnusableInput(
            f"nothing to match on: every row has the same value of {', '.join(covariate_columns)}",
            hint="name columns that differ between rows",
        )
    names, owners, values = zip(*parts, strict=True)
    return Covariates(names, np.column_stack(values), treated), owners


def _with_indicators(
    covariates: Covariates, indicators: Mapping[str, Floats], owners: tuple[str, ...]
) -> tuple[Covariates, tuple[str, ...]]:
    if not indicators:
        return covariates, owners
    return (
        Covariates(
            (*covariates.names, *indicators),
            np.column_stack([covariates.matrix, *indicators.values()]),
            covariates.treated,
        ),
        (*owners, *map(_owner, indicators)),
    )


def _owner(indicator: str) -> str:
    """Return the column whose missing values an indicator marks."""
    return indicator.removesuffix(" is missing")
