"""``match``, ``match_balance``, ``gen_match`` and ``observe``: tables in, results out.

Errors and warnings are in the words of Python: ``missing="drop"`` where a terminal has an option.
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
from equipoise_matching.shared.keywords import takes
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
    PairingOptions,
    read_table,
)
from equipoise_matching.tables.reading import read_columns, source_of


@with_matchit_hints
@takes(PairingOptions, Pairing())
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
    **pairing: Unpack[PairingOptions],
) -> TableMatch:
    """Match the treated rows of a table with its controls, and estimate the effect.

    Raise `UnusableInput` if something cannot be used, naming column and rows, or if no row can be
    matched.

    Examples
    --------
    >>> from equipoise_matching.tables import match
    >>> people = {
    ...     "trained": [1, 1, 1, 0, 0, 0, 0, 0],
    ...     "age": [25, 31, 42, 24, 26, 30, 43, 60],
    ...     "wage": [12.0, 14.0, 17.0, 10.0, 11.0, 12.0, 15.0, 20.0],
    ... }
    >>> matched = match(people, outcome="wage", treatment="trained", covariates=["age"])
    >>> round(matched.estimate, 2)
    1.83

    Parameters
    ----------
    table
        A data frame of pandas, polars or pyarrow (or anything with ``__arrow_c_stream__``), a
        mapping of names to columns, or the name of a CSV or Parquet file.
    outcome, weights
        Column that the treatment may have changed; column with the weight of each row.
    treatment
        Column of 0 and 1, of truths or of yes and no; or ``"COLUMN=TREATED:CONTROL"`` for two of
        the values of any column.
    covariates
        Columns to match on. A column of words becomes an indicator for each word but the first.
    formula
        Treatment and covariates at once instead: ``"trained ~ age + I(age**2) + region"``.
    by
        Columns that form strata, each matched alone.
    missing
        ``"refuse"`` missing values, ``"drop"`` their rows, or keep rows whose covariates are
        missing, with a covariate (``"indicator"``) that says so.
    metric, bias_adjust, variance_neighbors, variance, progress
        As for ``equipoise_matching.match``.
    order
        Without replacement, which rows find their match first: those with the ``"largest"`` or
        ``"smallest"`` propensity score, or the first of the ``"data"``. By default the largest
        score with ``propensity`` (as MatchIt does; not ``r_compatible``), else the data.
    propensity
        Match on a propensity score of the covariates instead of themselves.
    pairing
        Who may be matched with whom, by the names of `PairingOptions`: ``estimand``, ``m``,
        ``exact``, ``caliper``, ``replace``, ``ties``, ``common_support``, ``r_compatible``,
        ``threads``, ``seed``.
    """
    columns = MatchColumns.of(
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
        read_table(table, columns),
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

    Raise `UnusableInput`, naming column and rows of what cannot be used; or the match has rows that
    a missing value leaves out here.

    Examples
    --------
    >>> from equipoise_matching.tables import match, match_balance
    >>> people = {"trained": [1, 1, 1, 0, 0, 0, 0, 0], "age": [25, 31, 42, 24, 26, 30, 43, 60]}
    >>> matched = match(people, treatment="trained", covariates=["age"])
    >>> balance = match_balance(people, "trained", ["age"], match=matched, boot=0)
    >>> before, after = balance.rows()
    >>> print(f"{before['sdiff']:.0f} % before, {abs(after['sdiff']):.0f} % after matching")
    -46 % before, 0 % after matching

    Parameters
    ----------
    table, treatment, covariates, formula, weights, missing
        As for ``match``. The covariates may be others than those matched on.
    match
        What ``match`` or ``gen_match`` returned for the same table; without one there is no
        "after".
    estimand, boot, ks, paired, r_compatible, seed, progress
        As for ``equipoise_matching.match_balance``.
    """
    columns = MatchColumns.of(
        treatment=treatment,
        covariates=covariates,
        formula=formula,
        weights=weights,
        missing=missing,
    )
    data = read_table(table, columns)
    matched = None if match is None else _pairs_among(match, data)
    reference: Estimand = estimand or (match.pairing.estimand if match is not None else "ATT")
    pairing = Pairing(estimand=reference, r_compatible=r_compatible)
    return balance_of(
        data, matched, pairing, boot=boot, ks=ks, paired=paired, seed=seed, progress=progress
    )


@with_matchit_hints
@takes(PairingOptions, Pairing())
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
    **pairing: Unpack[PairingOptions],
) -> TableMatch:
    """Search for the weights of the covariates whose pairs balance best, and match by them.

    Raise `UnusableInput` if something cannot be used, naming column and rows, or if no row can be
    matched.

    Examples
    --------
    >>> from equipoise_matching.tables import gen_match
    >>> people = {
    ...     "trained": [1, 1, 1, 0, 0, 0, 0, 0],
    ...     "age": [25, 31, 42, 24, 26, 30, 43, 60],
    ...     "wage": [12.0, 14.0, 17.0, 10.0, 11.0, 12.0, 15.0, 20.0],
    ... }
    >>> found = gen_match(
    ...     people, "trained", ["age"], outcome="wage", population=20, generations=5, seed=1
    ... )
    >>> round(found.estimate, 2)
    1.83

    Parameters
    ----------
    table, treatment, covariates, outcome, formula, weights, missing, pairing
        As for ``match``.
    balance
        Terms to balance, as the right side of a formula: ``"age + re74 + age:re74"``; by default
        the covariates.
    population, generations, wait_generations, hard_generation_limit, fitness, loss, boot, ks, \
executor, progress
        As for ``equipoise_matching.gen_match``.
    variance_neighbors
        As for ``match``, for the effect by the weights that were found.
    """
    columns = MatchColumns.of(
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
        read_table(table, columns),
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

    Raise `UnusableInput` if the question does not fit the table; the error names the column and the
    rows.

    Examples
    --------
    >>> from equipoise_matching.tables import observe
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> load = random.gamma(2.0, 1.0, 400)
    >>> is_new = random.random(400) < 1.0 / (1.0 + np.exp(1.4 - 0.7 * load))
    >>> log_seconds = 0.1 * load - 0.05 * is_new + random.normal(0.0, 0.02, 400)
    >>> runs = {
    ...     "version": np.where(is_new, "2.0", "1.0"),
    ...     "load": load,
    ...     "wall_s": np.exp(log_seconds),
    ... }
    >>> answer = observe(
    ...     runs, "version=2.0:1.0", "wall_s", covariates=["load"], method="mahalanobis"
    ... )
    >>> round(answer.ratio, 2)
    0.95

    Parameters
    ----------
    table
        As for ``match``.
    treatment
        ``"COLUMN=CANDIDATE:BASELINE"``: the column that names the version, and two of its values.
        The column alone where it has two versions, of which the later is the candidate, or 0 and 1,
        yes and no, old and new.
    outcome
        Column that the candidate may have changed: a cost.
    covariates
        Columns that may explain the difference; ``None`` for every usable one.
    cluster
        Columns that dependent rows share; ``None`` to choose one by its name, ``"none"`` or ``()``
        for independent rows.
    method
        ``"genetic"``, ``"mahalanobis"`` or ``"propensity"``.
    placebo_period
        Column and value, or ``"COLUMN=VALUE"``, of the rows that the candidate cannot have reached.
    ratio
        Whether to estimate a ratio too; every outcome must then be above 0.
    unit
        What a row is, in the sentences: ``"people"``, ``"builds"``.
    missing
        As for ``match``. By default a gap in a column that you name is refused; without
        ``covariates`` a column with a gap is not matched on, and a warning names it.
    exact, placebo_outcomes, mediators, leave_others_out, one_unit, seed, threads
        As for ``equipoise observe`` (docs/how-to/estimate-from-logs.md).
    progress
        Called with a description of each step.

    Returns
    -------
    Observation
        The answer; where no comparison holds ``refused`` is true and ``document`` says why.
    """
    column, equals, values = treatment.partition("=")
    if not column or (equals and not values):
        raise UnusableInput(
            f"treatment: '{treatment}' is not COLUMN=CANDIDATE:BASELINE",
            hint='name the column and two of its values, such as "version=2.0:1.0"',
        )
    question = Question.among({**locals(), "treatment": column, "values": values or None})
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
    """An effect estimated from a log, or the reason why none is reported.

    ``document`` has everything, as the ``--json`` file does.
    """

    document: ObservationResult

    @property
    def refused(self) -> bool:
        """Whether no comparison holds; ``document.refusal`` says why."""
        return self.document.refusal is not None

    @property
    def effect(self) -> Effect | None:
        """The effect among comparable rows, as ratio and difference; ``None`` if refused."""
        return None if self.document.matched is None else self.document.matched.effect

    @property
    def ratio(self) -> float | None:
        """Candidate over baseline of the outcome; ``None`` without one."""
        return None if self.effect is None else self.effect.ratio

    @property
    def difference(self) -> float | None:
        """Candidate less baseline, in the unit of the outcome."""
        return None if self.effect is None else self.effect.difference

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the ratio, or where there is none of the difference."""
        return None if self.effect is None else self.effect.interval

    def __str__(self) -> str:
        """Return the answer in sentences."""
        return self.document.summary

    def _repr_mimebundle_(self, *_: object, **__: object) -> MimeBundle:
        """Return what a notebook shows: HTML with a chart, and the chart as SVG and PNG."""
        report = observation_report(self.document)
        return with_picture(report.to_html(), lambda: effects_chart(self.document))

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return str(self._repr_mimebundle_()[0]["text/html"])


def _pairs_among(match: TableMatch, data: MatchTable) -> MatchResult:
    """Return the pairs of a match of the whole table, by the rows that take part here."""
    if match.table.rows_read != data.rows_read:
        raise UnusableInput(
            f"the match is of a table with {match.table.rows_read} rows, and this one has "
            f"{data.rows_read}",
            hint="match and balance on the same table",
        )
    place = np.full(data.rows_read, -1)
    place[data.rows] = np.arange(len(data.rows))
    pairs = match.pairs.of_rows(place, len(data.rows))
    if min(pairs.treated_index.min(), pairs.control_index.min()) < 0:
        raise UnusableInput(
            "the match has rows in which a covariate is missing here",
            hint='match with the same missing="drop", or balance with missing="indicator"',
        )
    return pairs
