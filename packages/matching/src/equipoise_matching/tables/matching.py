"""Match the rows of a table, with the effect, the balance and the matched data as the result.

``match`` and ``gen_match`` return a `TableMatch`, and the command line shows it. Its
``array_match`` numbers only the rows that take part; its ``pairs`` have the rows of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from equipoise_matching.matching.balance import Balance, MatchedPairs, match_balance
from equipoise_matching.matching.frames import Covariates, take_rows
from equipoise_matching.matching.gen_match import GenMatchResult, gen_match
from equipoise_matching.matching.match import MatchResult, aligned, match
from equipoise_matching.matching.report import match_report, search_report
from equipoise_matching.matching.stratified import MatchByResult, match_by
from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.matching.wording import (
    Difference,
    MatchQuestion,
    match_warnings,
    method_sentences,
    naive_difference,
)
from equipoise_matching.report import Report
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require
from equipoise_matching.shared.pictures import MimeBundle
from equipoise_matching.shared.spelling import option
from equipoise_matching.tables.csv_file import Columns
from equipoise_matching.tables.missing import MissingValues
from equipoise_matching.tables.problem import MatchTable, Pairing
from equipoise_matching.warning import AnalysisWarning

if TYPE_CHECKING:
    import pandas

Progress = Callable[[int, int], None]
"""Function that receives the number of finished and of all units."""
ROW, PAIR, STRATUM, WEIGHT = "row", "pair", "stratum", "weight"
"""Names of the columns that the matched data set adds to the table."""


def match_table(
    table: MatchTable,
    pairing: Pairing,
    *,
    metric: Any,
    propensity: bool,
    bias_adjust: bool,
    frame: Any = None,
    **further_options: Any,
) -> TableMatch:
    """Match the rows of a table, with the options of ``run_match``.

    ``frame`` is the data frame from which the table was read; ``None`` for a file. Raise
    `UnusableInput` if two options cannot be combined.
    """
    options = {"metric": metric, "propensity": propensity, "bias_adjust": bias_adjust}
    array_match = run_match(table, pairing, **options, **further_options)
    balance = balance_of(table, array_match, pairing, boot=0)
    return TableMatch(table, array_match, balance, pairing, options, frame=frame)


def search_table(
    table: MatchTable,
    pairing: Pairing,
    *,
    boot: int,
    ks: bool,
    variance_neighbors: int | None,
    frame: Any = None,
    **search_options: Any,
) -> TableMatch:
    """Search for the weights of the covariates with the best balance, and match with them.

    The options are those of ``gen_match``, and ``variance_neighbors`` of ``match``. ``frame`` is
    the data frame from which the table was read; ``None`` for a file.
    """
    treated, covariates = table.covariates.treated.astype(float), columns_by_name(table.covariates)
    settings: dict[str, Any] = {
        **pairing.arguments(table.covariates.names, table.source_columns),
        "common_support": pairing.common_support,
        "weights": table.weights,
    }
    balance_columns = columns_by_name(table.balance)
    search = gen_match(
        treated, covariates, balance_columns, boot=boot, ks=ks, **settings, **search_options
    )
    array_match = search.matches
    if table.outcome is not None:
        settings |= {"seed": search.seed, "variance_neighbors": variance_neighbors}
        array_match = match(
            table.outcome, treated, covariates, metric=search.to_metric(), **settings
        )
    options = {"population": search_options["population"], "fitness": search.measure}
    balance = search.balance(boot=boot, ks=ks)
    return TableMatch(table, array_match, balance, pairing, options, search, frame)


def run_match(
    table: MatchTable,
    pairing: Pairing,
    *,
    propensity: bool = False,
    bias_adjust: bool = False,
    **options: Any,
) -> MatchResult:
    """Match the rows of a table that take part.

    The row numbers of the result count only these rows, from 0. ``propensity``, ``bias_adjust`` and
    ``options`` are options of ``match``.

    Raise `UnusableInput` if two of the options cannot be combined.
    """
    if bias_adjust and table.outcome is None:
        raise UnusableInput(
            f"{option('bias_adjust')} needs an outcome", hint=f"give {option('outcome', 'COLUMN')}"
        )
    options_without_strata = {
        "bias_adjust": bias_adjust,
        "common_support": pairing.common_support,
        "order": pairing.order is not None,
    }
    for name, is_given in options_without_strata.items():
        if table.by is not None and is_given:
            raise UnusableInput(
                f"{option(name)} cannot be used with {option('by')}, which matches by strata",
                hint=f"leave out {option('by')} or {option(name)}",
            )
    covariates, source_columns = table.covariates, table.source_columns
    matrix, names = covariates.matrix, covariates.names
    if propensity:
        from equipoise_matching.matching.propensity import score_of

        matrix, names = score_of(covariates).score[:, None], ("propensity",)
        source_columns = names
    arguments = {
        **pairing.arguments(names, source_columns),
        "weights": table.weights,
        **options,
    }
    units = (table.outcome, covariates.treated.astype(float), matrix)
    if table.by is not None:
        return match_by(*units, table.by, **arguments)
    return match(
        *units,
        bias_adjust=bias_adjust,
        common_support=pairing.common_support,
        order=pairing.order_of_rows(has_score=propensity),
        **arguments,
    )


class TableMatch(Struct, frozen=True, eq=False, dict=True):
    """A match of the rows of a table, with its effect, its balance and the matched data set.

    Parameters
    ----------
    table
        The columns of the question as arrays.
    array_match
        The match; its row numbers count only the rows that take part.
    balance
        Balance of the covariates before and after matching.
    options
        The other options of the match or the search, such as its metric or population.
    search
        The search that found the weights; ``None`` for a match without a search.
    frame
        The data frame from which the table was read; ``None`` for a file.
    """

    table: MatchTable
    array_match: MatchResult
    balance: Balance
    pairing: Pairing
    options: Mapping[str, Any]
    search: GenMatchResult | None = None
    frame: Any = None

    @cached_property
    def pairs(self) -> MatchResult:
        """The match with the row numbers of the table, from 0."""
        return self.array_match.with_row_numbers(self.table.rows, self.table.rows_read)

    @property
    def estimate(self) -> float | None:
        """The effect, in the unit of the outcome; ``None`` without an outcome."""
        return self.pairs.estimate

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the effect."""
        return self.pairs.interval

    @property
    def se(self) -> float | None:
        """Standard error of the effect, which gives ``interval``.

        It is the error of Abadie and Imbens (2006); without replacement, of independent pairs.
        """
        return self.pairs.se_standard if self.pairs.se is None else self.pairs.se

    @property
    def p_value(self) -> float | None:
        """Two-sided p-value of "no effect"."""
        return self.pairs.p_value

    @property
    def effective_sizes(self) -> tuple[float, float]:
        """Effective numbers of treated units and of controls."""
        return self.pairs.effective_sizes

    @property
    def row_weights(self) -> Floats:
        """Weight of each row of the table in the matched data, shape (rows,); 0 if unmatched."""
        return self.pairs.row_weights

    @property
    def missing(self) -> MissingValues:
        """Numbers of missing values, and how they were treated."""
        return self.table.missing

    @property
    def weights(self) -> dict[str, float] | None:
        """Weights of the standardised covariates from the search; ``None`` without a search."""
        if self.search is None:
            return None
        return dict(zip(self.search.names, self.search.weights.tolist(), strict=True))

    @property
    def warnings(self) -> tuple[AnalysisWarning, ...]:
        """Warnings of the match."""
        return tuple(match_warnings(self.array_match, self.balance))

    def matched_columns(self) -> Columns:
        """Return the matched data set as columns; ``matched_frame`` says which rows it has."""
        added, columns = self._added_columns(), self.table.columns
        return {**take_rows(columns, added[ROW]), **_with_unique_names(added, columns)}

    def matched_frame(self) -> Any:
        """Return the matched data set, as a frame of the library that the table came from.

        Here, a pair is a unit for which matches were sought, with all its matches. The unit and
        each match have a row in the pair, so a control in three pairs has three rows. After the
        columns of the table come ``row`` (number in the table, from 0), ``pair`` and ``stratum``
        (from 1; strata of ``by``, else of ``exact``) and ``weight``. A name that the table already
        has gets the prefix ``match_``. The effect is the difference of the weighted means.

        Raise `UnusableInput` if ``r_compatible`` and ``common_support`` are combined, because R
        numbers other rows. Raise it also if pandas is needed but not installed.
        """
        if isinstance(self.frame, str | Path | Mapping):
            return require("pandas", "frames").DataFrame(self.matched_columns())
        narwhals, added_columns = require("narwhals", "data frames"), self._added_columns()
        frame = narwhals.from_native(self.frame, pass_through=True)
        if isinstance(frame, narwhals.LazyFrame):
            frame = frame.collect()
        if not isinstance(frame, narwhals.DataFrame):
            frame = narwhals.from_native(require("pyarrow", "Arrow streams").table(self.frame))
        matched_rows = frame[added_columns[ROW].tolist()]
        if hasattr(matched_rows.to_native(), "reset_index"):
            # In pandas, a row that is matched several times would repeat its index.
            matched_rows = narwhals.from_native(matched_rows.to_native().reset_index(drop=True))
        added_series = [
            narwhals.new_series(name, values, backend=frame.implementation).to_frame()
            for name, values in _with_unique_names(added_columns, self.table.columns).items()
        ]
        return narwhals.concat([matched_rows, *added_series], how="horizontal").to_native()

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each pair, with the numbers of its rows in the table (pandas)."""
        return self.pairs.to_frame()

    def love_plot(self) -> Any:
        """Draw the standardized difference of each covariate before and after matching."""
        return self.balance.love_plot()

    @property
    def naive(self) -> Difference | None:
        """The difference without matching, of all rows; ``None`` without an outcome."""
        table = self.table
        if table.outcome is None:
            return None
        return naive_difference(table.outcome, table.covariates.treated, table.weights)

    def question(self) -> MatchQuestion:
        """Return the columns of the match, and the sentences on its method."""
        return question_of(self.table, self.pairing, self.options)

    def report(self) -> Report:
        """Return the answer with its tables, facts, warnings and method, as text."""
        question, naive = self.question(), self.naive
        if self.search is None:
            return match_report(self.array_match, self.balance, naive, question)
        effect = None if self.table.outcome is None else self.array_match
        return search_report(self.search, effect, self.balance, naive, question)

    def summary(self) -> str:
        """Return the answer, its warnings and the numbers as text, one per line."""
        facts = self.array_match.facts() if self.search is None else self.search.facts()
        return f"{self.report().to_text()}\n\n{aligned(facts)}"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def __repr__(self) -> str:
        """Return the estimate and its interval."""
        return f"TableMatch(estimate={self.estimate!r}, interval={self.interval!r})"

    def _repr_mimebundle_(self, *_: object, **__: object) -> MimeBundle:
        from equipoise_matching.shared.html import with_picture

        return with_picture(self.report().to_html(), self.love_plot)

    def _repr_html_(self) -> str:
        return str(self._repr_mimebundle_()[0]["text/html"])

    def _added_columns(self) -> Columns:
        if self.pairing.r_compatible and self.array_match.n != self.array_match.rows:
            raise UnusableInput(
                "r_compatible with common_support numbers rows as R does, so the matched rows are "
                "unknown",
                hint="leave out r_compatible or common_support",
            )
        return matched_numbers(
            self.array_match, self.table.rows, exact_cells_of(self.table, self.pairing)
        )


def balance_of(
    table: MatchTable, result: MatchedPairs | None, pairing: Pairing, **options: Any
) -> Balance:
    """Return the balance of the covariates of a table; ``options`` are of ``match_balance``."""
    return match_balance(
        columns_by_name(table.covariates),
        table.covariates.treated,
        result,
        weights=table.weights,
        estimand=pairing.estimand,
        r_compatible=pairing.r_compatible,
        **options,
    )


def question_of(table: MatchTable, pairing: Pairing, options: Mapping[str, Any]) -> MatchQuestion:
    """Return the columns of a match and its sentences; ``options`` are as in ``TableMatch``."""
    notes = [table.missing.sentence()]
    if table.rows_in_no_arm:
        notes.append(f"{table.rows_in_no_arm:,} rows are neither treated nor controls: left out.")
    names = table.names
    has_score = not names.by and bool(options.get("propensity"))
    order = pairing.order_of_rows(has_score=has_score)
    settings = {
        **asdict(pairing),
        "order": order,
        "by": names.by,
        "weights": names.weights,
        **options,
    }
    return MatchQuestion(
        source=table.source,
        treatment=table.treatment,
        outcome=names.outcome,
        method=tuple(method_sentences(settings, table.covariates.names)),
        notes=tuple(note for note in notes if note is not None),
    )


def matched_numbers(
    result: MatchResult, rows: Indices, exact_cells: NDArray[np.int64] | None
) -> Columns:
    """Return ``row``, ``pair``, ``stratum`` and ``weight`` of each row of the matched data.

    ``TableMatch.matched_frame`` describes the rows. A unit has the weight of all its matches.

    ``rows`` (n,) has the number in the table of each row that takes part, and ``exact_cells`` (n,)
    the number of its cell: the rows of a cell are equal in all exact columns.
    """
    is_treated = result.matched_treated
    unit_row = np.where(is_treated, result.treated_index, result.control_index)
    match_row = np.where(is_treated, result.control_index, result.treated_index)
    _, first_pair, pair = np.unique(unit_row, return_index=True, return_inverse=True)
    pair = pair.reshape(-1)
    stratum = np.zeros(len(unit_row), dtype=np.int64)
    if exact_cells is not None:
        stratum = exact_cells[unit_row]
    if isinstance(result, MatchByResult):
        stratum = result.stratum
    order = np.argsort(np.concatenate([np.arange(len(first_pair)), pair]), kind="stable")
    return {
        ROW: rows[np.concatenate([unit_row[first_pair], match_row])[order]],
        PAIR: np.concatenate([np.arange(len(first_pair)), pair])[order] + 1,
        STRATUM: np.concatenate([stratum[first_pair], stratum])[order] + 1,
        WEIGHT: np.concatenate([np.bincount(pair, result.weights), result.weights])[order],
    }


def _with_unique_names(added_columns: Columns, columns: Mapping[str, Any]) -> Columns:
    """Put ``match_`` before the name of an added column that the table already has."""
    renamed: Columns = {}
    for name, values in added_columns.items():
        while name in columns:
            name = f"match_{name}"
        renamed[name] = values
    return renamed


def exact_cells_of(table: MatchTable, pairing: Pairing) -> NDArray[np.int64] | None:
    """Return the cell of each row, as in ``matched_numbers``; ``None`` without exact columns."""
    is_exact = np.array(pairing.exact_flags(table.covariates.names, table.source_columns))
    if not is_exact.any():
        return None
    cells = np.unique(table.covariates.matrix[:, is_exact], axis=0, return_inverse=True)[1]
    return np.asarray(cells, dtype=np.int64).reshape(-1)


def columns_by_name(covariates: Covariates) -> Any:
    """Return the columns of covariates by their names."""
    return dict(zip(covariates.names, covariates.matrix.T, strict=True))
