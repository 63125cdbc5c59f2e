"""``match``, ``match_balance``, ``gen_match`` and ``observe``: functions that take tables.

Errors and warnings name arguments of Python: ``missing="drop"``, not ``--missing drop``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.balance import Balance
from equipoise_matching.matching.gen_match import Progress as SearchProgress
from equipoise_matching.matching.match import MatchResult
from equipoise_matching.matching.options import Estimand, Order
from equipoise_matching.observation.analysis import observe as observe_log
from equipoise_matching.observation.drawing import effects_chart
from equipoise_matching.observation.question import Names, Question
from equipoise_matching.observation.report import observation_report
from equipoise_matching.observation.result import Effect, ObservationResult
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.html import with_picture
from equipoise_matching.shared.keywords import accepts_keywords
from equipoise_matching.shared.numbers import Interval
from equipoise_matching.shared.pictures import MimeBundle
from equipoise_matching.tables.matching import (
    Progress,
    TableMatch,
    balance_of,
    match_table,
    search_table,
)
from equipoise_matching.tables.matchit_names import with_matchit_hints
from equipoise_matching.tables.missing import Policy, complete_log
from equipoise_matching.tables.problem import (
    MatchColumns,
    MatchTable,
    Pairing,
    TablePairingOptions,
    read_table,
)
from equipoise_matching.tables.reading import read_columns, source_of


@with_matchit_hints
@accepts_keywords(TablePairingOptions, Pairing())
def match(
    table: Any,
    outcome: str | None = None,
    treatment: str | None = None,
    covariates: Names = (),
    *,
    formula: str | None = None,
    metric: Any = "inverse_variance",
    propensity: bool = False,
    by: Names = (),
    order: Order | None = None,
    weights: str | None = None,
    missing: Policy = "refuse",
    bias_adjust: bool = False,
    variance_neighbors: int | None = None,
    variance: Literal["population", "sample"] = "population",
    progress: Progress | None = None,
    **pairing: Unpack[TablePairingOptions],
) -> TableMatch:
    """Match the treated rows of a table with its controls, and estimate the effect.

    Raise `UnusableInput` if a column or an option cannot be used, or no row can be matched.

    Examples
    --------
    >>> from equipoise_matching.tables import match
    >>> people = {
    ...     "trained": [1, 1, 1, 1, 0, 0, 0, 0, 0],
    ...     "age": [25, 31, 38, 46, 24, 30, 40, 47, 52],
    ...     "wage": [14, 17, 19, 24, 12, 15, 18, 21, 30],
    ... }
    >>> result = match(people, outcome="wage", treatment="trained", covariates=["age"])
    >>> print(result.report().text)
    trained raises wage by 2 (95 % interval 1.31 to 2.69), on average over the treated units.

    Parameters
    ----------
    table
        A data frame of pandas, polars or pyarrow, a mapping of names to columns, the name of a CSV
        or Parquet file, or an object with ``__arrow_c_stream__``.
    outcome, weights
        Column that the treatment may have changed, and column with the weight of each row.
    treatment
        Column of 0 and 1, True and False, or yes and no. ``"COLUMN=TREATED:CONTROL"`` names two
        values of any other column.
    covariates
        Columns to match on. A column of texts becomes an indicator of each text except the first.
    formula
        A formula instead of treatment and covariates: ``"trained ~ age + I(age**2) + region"``.
    by
        Columns that form strata. Each stratum is matched alone.
    missing
        ``"refuse"`` raises an error for missing values, and ``"drop"`` leaves out their rows.
        ``"indicator"`` keeps rows with missing covariates and adds a covariate that marks them.
    metric, bias_adjust, variance_neighbors, variance, progress
        As for ``equipoise_matching.match``.
    order
        Order in which rows are matched without replacement: by ``"largest"`` or ``"smallest"``
        propensity score, or as in the ``"data"``. With ``propensity``, the default is
        ``"largest"``, as in MatchIt; otherwise, or with ``r_compatible``, it is ``"data"``.
    propensity
        Whether to match on a propensity score of the covariates instead of the covariates.
    pairing
        The options of `TablePairingOptions`, which decide which rows may form pairs: ``estimand``,
        ``m`` (number of matches), ``exact``, ``caliper``, ``replace``, ``ties``,
        ``common_support``, ``r_compatible``, ``threads``, ``seed``.
    """
    names = MatchColumns.of(
        treatment=treatment,
        covariates=covariates,
        formula=formula,
        outcome=outcome,
        weights=weights,
        by=by,
        exact=pairing.get("exact", ()),
        missing=missing,
    )
    return match_table(
        read_table(table, names),
        Pairing.of(order=order, **pairing),
        frame=table,
        metric=metric,
        propensity=propensity,
        bias_adjust=bias_adjust,
        variance_neighbors=variance_neighbors,
        variance=variance,
        progress=progress,
    )


@with_matchit_hints
def match_balance(
    table: Any,
    treatment: str | None = None,
    covariates: Names = (),
    *,
    formula: str | None = None,
    match: TableMatch | None = None,
    estimand: Estimand | None = None,
    weights: str | None = None,
    missing: Policy = "refuse",
    boot: int = 500,
    ks: bool = True,
    paired: bool = True,
    r_compatible: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Balance:
    """Compare the treated rows of a table with its controls, before and after matching.

    Raise `UnusableInput` if a column cannot be used, or the match has rows that are left out here
    because of a missing value. The error names the column and the rows.

    Examples
    --------
    >>> from equipoise_matching.tables import match, match_balance
    >>> people = {"trained": [1, 1, 0, 0, 0], "age": [25, 31, 24, 31, 52]}
    >>> result = match(people, treatment="trained", covariates=["age"])
    >>> balance = match_balance(people, "trained", ["age"], match=result, boot=0)
    >>> round(balance.after[0].sdiff, 1)
    11.8

    Parameters
    ----------
    table, treatment, covariates, formula, weights, missing
        As for ``match``. The covariates may differ from the covariates of the match.
    match
        Result of ``match`` or ``gen_match`` for the same table; ``None`` without a match.
    estimand, boot, ks, paired, r_compatible, seed, progress
        As for ``equipoise_matching.match_balance``.
    """
    names = MatchColumns.of(
        treatment=treatment,
        covariates=covariates,
        formula=formula,
        weights=weights,
        missing=missing,
    )
    arrays = read_table(table, names)
    pairs = None if match is None else _renumbered_pairs(match, arrays)
    if estimand is None:
        estimand = "ATT" if match is None else match.pairing.estimand
    pairing = Pairing(estimand=estimand, r_compatible=r_compatible)
    return balance_of(
        arrays, pairs, pairing, boot=boot, ks=ks, paired=paired, seed=seed, progress=progress
    )


@with_matchit_hints
@accepts_keywords(TablePairingOptions, Pairing())
def gen_match(
    table: Any,
    treatment: str | None = None,
    covariates: Names = (),
    *,
    outcome: str | None = None,
    formula: str | None = None,
    balance: str | None = None,
    weights: str | None = None,
    missing: Policy = "refuse",
    population: int = 100,
    generations: int = 100,
    wait_generations: int = 4,
    hard_generation_limit: bool = False,
    fitness: Any = "pvals",
    loss: Any = 1,
    boot: int = 0,
    ks: bool = True,
    variance_neighbors: int | None = None,
    executor: Any = None,
    progress: SearchProgress | None = None,
    **pairing: Unpack[TablePairingOptions],
) -> TableMatch:
    """Search for the weights of the covariates with the best balance, and match with them.

    Raise `UnusableInput` if a column or an option cannot be used, or no row can be matched.

    Examples
    --------
    >>> from equipoise_matching.tables import gen_match
    >>> people = {"trained": [1, 0, 1, 0, 0, 1], "age": [21, 22, 24, 25, 27, 29]}
    >>> result = gen_match(people, "trained", ["age"], population=20, seed=1)
    >>> list(result.weights)
    ['age']

    Parameters
    ----------
    table, treatment, covariates, outcome, formula, weights, missing, pairing
        As for ``match``.
    balance
        Terms to balance, such as ``"age + re74 + age:re74"``; by default the covariates.
    population, generations, wait_generations, hard_generation_limit, fitness, loss, boot, ks, \
executor, progress
        As for ``equipoise_matching.gen_match``.
    variance_neighbors
        As for ``match``, for the effect with the best weights.
    """
    names = MatchColumns.of(
        treatment=treatment,
        covariates=covariates,
        formula=formula,
        outcome=outcome,
        weights=weights,
        exact=pairing.get("exact", ()),
        balance=balance,
        missing=missing,
    )
    return search_table(
        read_table(table, names),
        Pairing.of(**pairing),
        frame=table,
        population=population,
        generations=generations,
        wait_generations=wait_generations,
        hard_generation_limit=hard_generation_limit,
        fitness=fitness,
        loss=loss,
        boot=boot,
        ks=ks,
        variance_neighbors=variance_neighbors,
        executor=executor,
        progress=progress,
    )


def observe(
    table: Any,
    treatment: str,
    outcome: str,
    *,
    covariates: Names | None = None,
    exact: Names = (),
    cluster: Names | None = None,
    method: Literal["genetic", "mahalanobis", "propensity"] = "genetic",
    ratio: bool = True,
    unit: str = "rows",
    missing: Policy | None = None,
    placebo_outcomes: Names = (),
    placebo_period: str | tuple[str, str] | None = None,
    mediators: Names = (),
    leave_others_out: bool = False,
    one_unit: bool = False,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], object] = lambda _: None,
) -> Observation:
    """Estimate the effect of a change from a log, among comparable rows.

    Raise `UnusableInput` if the question does not fit the table.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise_matching import observe
    >>> random = np.random.default_rng(1)
    >>> load = random.gamma(2.0, 1.0, 400)
    >>> is_new = random.random(400) < 1 / (1 + np.exp(1.4 - 0.7 * load))
    >>> noise = random.normal(0.0, 0.02, 400)
    >>> log = {
    ...     "version": np.where(is_new, "2.0", "1.0"),
    ...     "wall_s": np.exp(0.1 * load - 0.05 * is_new + noise),
    ...     "load": load,
    ...     "day": np.arange(400) // 10,
    ... }
    >>> answer = observe(log, "version=2.0:1.0", "wall_s", covariates="load", cluster="day")
    >>> round(answer.ratio, 2)
    0.95

    Parameters
    ----------
    table
        As for ``match``.
    treatment
        ``"COLUMN=CANDIDATE:BASELINE"``: the column with the version, and two of its values. The
        column alone is enough if it has two version numbers, the later for the candidate, or two
        values such as 0 and 1, yes and no, old and new.
    outcome
        Column with a cost that the candidate may have changed.
    covariates
        Columns that may explain the difference; ``None`` for every usable column.
    cluster
        Columns whose values group dependent rows; ``None`` chooses a column by its name, and
        ``"none"`` or ``()`` means independent rows.
    method
        ``"genetic"``, ``"mahalanobis"`` or ``"propensity"``.
    placebo_period
        Column and value, or ``"COLUMN=VALUE"``, of the rows that the candidate cannot have reached.
    ratio
        Whether to estimate a ratio too; every outcome must then be above 0.
    unit
        Plural noun for the rows in the answer: ``"people"``, ``"builds"``.
    missing
        As for ``match``. By default a missing value in a column of the question is an error.
        Without ``covariates``, a column with missing values is left out, with a warning.
    exact, placebo_outcomes, mediators, leave_others_out, one_unit, seed, threads
        As for ``equipoise observe`` (docs/how-to/estimate-from-logs.md).
    progress
        Function that receives a description of each step.

    Returns
    -------
    Observation
        The answer. Without a valid comparison, ``refused`` is true, and ``document`` says why.
    """
    column, equals, values = treatment.partition("=")
    if not column or (equals and not values):
        raise UnusableInput(
            f"treatment: '{treatment}' is not COLUMN=CANDIDATE:BASELINE",
            hint='name the column and two of its values, such as "version=2.0:1.0"',
        )
    question = Question.from_arguments({**locals(), "treatment": column, "values": values or None})
    log = complete_log(read_columns(table, (column,)), question, missing)
    document = observe_log(
        log.columns,
        log.question,
        source=source_of(table),
        left_out=log.left_out,
        warnings=log.warnings,
        progress=progress,
    )
    return Observation(document)


class Observation(Struct, frozen=True):
    """An effect estimated from a log, or the reason why no effect is reported.

    ``document`` has all results, as the file of ``--json``.
    """

    document: ObservationResult

    @property
    def refused(self) -> bool:
        """Whether no effect is reported; ``document.refusal`` has the reason."""
        return self.document.refusal is not None

    @property
    def effect(self) -> Effect | None:
        """The effect among comparable rows, as ratio and difference; ``None`` if refused."""
        return None if self.document.matched is None else self.document.matched.effect

    @property
    def ratio(self) -> float | None:
        """Outcome of the candidate over the outcome of the baseline; ``None`` without a ratio."""
        return None if self.effect is None else self.effect.ratio

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline, in the unit of the outcome; ``None`` if refused."""
        return None if self.effect is None else self.effect.difference

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the ratio; without a ratio, of the difference."""
        return None if self.effect is None else self.effect.interval

    def __str__(self) -> str:
        """Return the sentences of the answer."""
        return self.document.summary

    def _repr_mimebundle_(self, *_: object, **__: object) -> MimeBundle:
        report = observation_report(self.document)
        return with_picture(report.to_html(), lambda: effects_chart(self.document))

    def _repr_html_(self) -> str:
        return str(self._repr_mimebundle_()[0]["text/html"])


def _renumbered_pairs(match: TableMatch, table: MatchTable) -> MatchResult:
    """Return the pairs of a match; row numbers count only the rows of ``table`` that take part."""
    if match.table.rows_read != table.rows_read:
        raise UnusableInput(
            f"the match comes from a table with {match.table.rows_read} rows, but this table has "
            f"{table.rows_read}",
            hint="give match_balance the same table as match",
        )
    new_numbers = np.full(table.rows_read, -1)
    new_numbers[table.rows] = np.arange(len(table.rows))
    pairs = match.pairs.with_row_numbers(new_numbers, len(table.rows))
    if min(pairs.treated_index.min(), pairs.control_index.min()) < 0:
        raise UnusableInput(
            "the match uses rows that match_balance leaves out: they lack a covariate",
            hint='give missing="drop" to match too, or missing="indicator" to match_balance',
        )
    return pairs
