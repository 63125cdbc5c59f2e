"""Match rows until the covariates are balanced: first without a caliper, then with calipers.

The rows of the candidate are the treated units, and the rows of the baseline are the controls. A
covariate is balanced if its mean, its distribution and its terms agree in both versions. The terms
are its square, and the curves, steps and products that predict which rows have the candidate
(``terms``). Matching never reads the outcome, so repeated attempts do not bias the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.balance import Balance, match_balance
from equipoise_matching.matching.gen_match import gen_match
from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.matching.univariate import UnivariateBalance
from equipoise_matching.observation.covariates import Covariates
from equipoise_matching.observation.overlap import TreatmentModel, fit_treatment
from equipoise_matching.observation.question import Question
from equipoise_matching.observation.result import ColumnBalance, DroppedMean, MissingRows
from equipoise_matching.observation.terms import Term
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.spelling import option

MAX_DIFFERENCE = 0.1
"""Largest difference of a balanced covariate, in standard deviations (Austin 2009)."""
MAX_TERM_DIFFERENCE = 0.5
"""Largest difference of a square or another term, in standard deviations. A regression removes
smaller differences (Rubin 2001, Health Services and Outcomes Research Methodology 2)."""
MAX_KS = 0.2
"""Largest distance between the distributions of a covariate in both versions after matching."""
ODDS_COLUMN = "odds"
"""Name of the column with the logit of the candidate's odds, on which rows may be matched."""
LEFT_OUT_COLUMN = "outside"
"""Name of the exact column that keeps candidate rows with too high odds out of all pairs."""
CALIPERS: tuple[tuple[float | None, bool], ...] = (
    (None, False),
    *((caliper, limits_all) for caliper in (0.25, 0.1, 0.05) for limits_all in (False, True)),
)
"""Calipers in standard deviations, in the order in which they are tried.

``limits_all`` says whether a caliper limits all covariates, or only the unbalanced covariates.
"""
MAX_SEARCHED_PAIRS = 4_000_000
"""Largest number of possible pairs of rows in the genetic search.

The cost of the search grows with this number, so the search reads a random sample of a larger log.
"""
POPULATION = 100
"""Number of vectors of weights in each generation of the genetic search."""
_CONSTANT_TOLERANCE = 1e-9
"""Relative spread below which the values of a term are constant up to rounding."""
_RANGE_PERCENTILE = 95.0
"""Percentile of the candidate's rows where a range with too few baseline rows ends."""

Progress = Callable[[str], object]
"""Function that receives a description of the next step."""


class TermBalance(Struct, frozen=True):
    """The balance of one term after matching."""

    name: str
    log_columns: tuple[str, ...]
    """Columns of the log from which the term is computed."""
    difference: float
    """Mean difference of the pairs, in standard deviations of the matched candidate rows."""


class BalancedMatch(Struct, frozen=True):
    """The pairs of the best match, and the method and the options that gave them.

    ``treated`` (rows,) marks the candidate's rows. ``points`` (rows, columns) and ``options`` are
    the arguments of ``match``. The caliper is in standard deviations and limits the columns
    ``caliper_on``. After a genetic search, ``weights`` has the weight of each column of ``points``.
    ``term_balance`` is the balance of the squares and of the terms that predict the version.
    """

    covariates: Covariates
    treated: Truths
    model: TreatmentModel
    method: str
    points: Floats
    options: dict[str, Any]
    caliper: float | None
    caliper_on: tuple[str, ...]
    weights: dict[str, float]
    pairs: MatchResult
    balance: Balance
    term_balance: tuple[TermBalance, ...]

    @property
    def balance_after(self) -> tuple[UnivariateBalance, ...]:
        """Balance of each covariate after matching."""
        assert self.balance.after is not None
        return self.balance.after

    @property
    def max_mean_difference(self) -> float:
        """Largest difference of a mean after matching, in standard deviations."""
        return max((abs(column.sdiff) / 100.0 for column in self.balance_after), default=0.0)

    @property
    def imbalance(self) -> float:
        """Largest imbalance of a covariate, as a multiple of its limit."""
        return max(map(imbalance_of, self.column_balance()), default=0.0)

    @property
    def is_balanced(self) -> bool:
        """Whether every mean, distribution and term is within its limit."""
        return self.imbalance <= 1.0

    def unbalanced_indices(self) -> list[int]:
        """Return the indices of the unbalanced covariates, the worst first."""
        imbalances = [imbalance_of(column) for column in self.column_balance()]
        indices = [index for index, imbalance in enumerate(imbalances) if imbalance > 1.0]
        return sorted(indices, key=lambda index: -imbalances[index])

    def column_balance(self) -> tuple[ColumnBalance, ...]:
        """Return the balance of every covariate before and after matching."""
        columns = zip(self.balance.variables, self.balance.before, self.balance_after, strict=True)
        balances = []
        for index, (name, before, after) in enumerate(columns):
            log_column = self.covariates.log_columns[index] if self.covariates.names else name
            worst = max(
                (term for term in self.term_balance if log_column in term.log_columns),
                key=lambda term: abs(term.difference),
                default=None,
            )
            balances.append(
                ColumnBalance(
                    column=name,
                    candidate_before=before.mean_treated,
                    baseline_before=before.mean_control,
                    difference_before=_finite_or_none(before.sdiff / 100.0),
                    candidate_after=after.mean_treated,
                    baseline_after=after.mean_control,
                    difference_after=_finite_or_none(after.sdiff / 100.0),
                    ks_before=before.ecdf_differences.max,
                    ks_after=after.ecdf_differences.max,
                    term=None if worst is None else worst.name,
                    term_after=None if worst is None else _finite_or_none(worst.difference),
                )
            )
        return tuple(balances)

    def dropped_means(self) -> tuple[DroppedMean, ...]:
        """Return the mean of every covariate among the matched and the dropped candidate rows."""
        dropped = self.pairs.dropped_index
        if not len(dropped):
            return ()
        matched = np.setdiff1d(np.flatnonzero(self.treated), dropped)
        return tuple(
            DroppedMean(name, float(column[matched].mean()), float(column[dropped].mean()))
            for name, column in zip(self.covariates.names, self.covariates.matrix.T, strict=True)
        )

    def missing_rows(self) -> tuple[MissingRows, ...]:
        """Return for each unbalanced covariate the range with too few baseline rows.

        The range goes from the mean of matched baseline rows to a percentile of candidate rows.
        """
        _, matrix = self.covariates.columns_to_balance
        treated, missing = self.treated, []
        for index in self.unbalanced_indices():
            after, column = self.balance_after[index], matrix[:, index]
            is_higher = after.mean_treated >= after.mean_control
            percentile = _RANGE_PERCENTILE if is_higher else 100.0 - _RANGE_PERCENTILE
            end = float(np.percentile(column[treated], percentile))
            low, high = sorted((after.mean_control, end))
            if abs(after.sdiff) / 100.0 <= MAX_DIFFERENCE:
                # The means agree, so the range is the whole range of the candidate's rows.
                percentiles = (100.0 - _RANGE_PERCENTILE, _RANGE_PERCENTILE)
                low, high = np.percentile(column[treated], percentiles).tolist()
            is_inside = (column >= low) & (column <= high)
            missing.append(
                MissingRows(
                    self.balance.variables[index],
                    _finite_or_none(after.sdiff / 100.0),
                    low,
                    high,
                    int(np.count_nonzero(is_inside & treated)),
                    int(np.count_nonzero(is_inside & ~treated)),
                )
            )
        return tuple(missing)

    def without_replacement(self) -> MatchResult:
        """Match again for Rosenbaum's bounds: the same distance, each row in at most one pair."""
        return match(None, self.treated, self.points, **self.options, replace=False, ties=False)


def match_until_balanced(
    covariates: Covariates, treated: Truths, question: Question, progress: Progress
) -> BalancedMatch:
    """Return the first match that balances every covariate, or else the most balanced match.

    For each of the ``CALIPERS``, the requested method comes first, then the genetic search. A
    caliper drops the candidate rows without a similar baseline row. Raise `UnusableInput` if no
    pair of rows is comparable.
    """
    model = fit_treatment(covariates, treated, question.seed)
    best: BalancedMatch | None = None
    first_error: UnusableInput | None = None
    unbalanced_names: frozenset[str] = frozenset()
    for caliper, limits_all in CALIPERS:
        columns = frozenset(covariates.names) if limits_all else unbalanced_names
        for method in dict.fromkeys((question.method, "genetic")):
            progress(f"matching ({method}{'' if caliper is None else f', caliper {caliper:g}'})")
            try:
                attempt = _match_by(model, covariates, treated, question, method, caliper, columns)
            except UnusableInput as error:
                first_error = first_error or error
                continue
            if attempt.is_balanced:
                return attempt
            if best is None or attempt.imbalance < best.imbalance:
                best = attempt
            unbalanced_names |= {
                attempt.balance.variables[index] for index in attempt.unbalanced_indices()
            }
        if best is None:
            break
    if best is not None:
        return best
    assert first_error is not None
    if not covariates.exact_names:
        raise first_error
    raise UnusableInput(
        "there is no comparable pair of rows: no value of "
        f"{', '.join(covariates.exact_names)} occurs with both versions",
        hint=f"leave a column out of {option('exact')}, or collect rows that share its values",
    ) from first_error


def imbalance_of(column: ColumnBalance) -> float:
    """Return the largest imbalance of a column after matching, as a multiple of its limit."""
    mean = math.inf if column.difference_after is None else abs(column.difference_after)
    term = 0.0
    if column.term is not None:
        term = math.inf if column.term_after is None else abs(column.term_after)
    return max(mean / MAX_DIFFERENCE, term / MAX_TERM_DIFFERENCE, (column.ks_after or 0.0) / MAX_KS)


def _match_by(
    model: TreatmentModel,
    covariates: Covariates,
    treated: Truths,
    question: Question,
    method: str,
    caliper: float | None,
    caliper_columns: frozenset[str],
) -> BalancedMatch:
    """Match by one method, with one caliper on the covariates in ``caliper_columns``.

    The steps: choose columns, search weights if the method is genetic, match, measure balance.
    """
    matrix, names = covariates.matrix, covariates.names
    if method == "propensity" and names:
        matrix, names = model.logit[:, None], (ODDS_COLUMN,)
        caliper_columns = frozenset(names)
    elif model.added_terms:
        matrix, names = np.column_stack([matrix, model.logit]), (*names, ODDS_COLUMN)
    caliper_on = () if caliper is None else tuple(name for name in names if name in caliper_columns)
    # The value of this exact column is 1 in the rows that are left out, so these rows never match.
    left_out_column = (model.is_left_out.astype(np.float64),) if model.is_left_out.any() else ()
    points = np.ascontiguousarray(np.column_stack([matrix, covariates.exact, *left_out_column]))
    column_names = (*names, *covariates.exact_names, *(LEFT_OUT_COLUMN for _ in left_out_column))
    exact_count = len(column_names) - len(names)
    options: dict[str, Any] = {
        "exact": [False] * len(names) + [True] * exact_count if exact_count else None,
        "seed": question.seed,
        "threads": question.threads,
    }
    if caliper_on:
        options["caliper"] = [caliper if name in caliper_on else math.inf for name in column_names]
    metric: Any = "mahalanobis" if method == "mahalanobis" else "inverse_variance"
    weights: dict[str, float] = {}
    if method == "genetic" and len(names) > 1:
        rows = _rows_to_search(treated, question.seed)
        added_values = model.dictionary.values(model.added_terms)
        to_balance = np.column_stack([covariates.matrix, added_values])
        metric = gen_match(
            treated[rows], points[rows], to_balance[rows], population=POPULATION, **options
        ).to_metric()
        weights = dict(zip(column_names, metric.tolist(), strict=True))
    options["metric"] = metric
    pairs = match(None, treated, points, **options)
    balance_names, balance_matrix = covariates.columns_to_balance
    balance = match_balance(
        dict(zip(balance_names, balance_matrix.T, strict=True)), treated, pairs, boot=0, ks=False
    )
    return BalancedMatch(
        covariates=covariates,
        treated=treated,
        model=model,
        method=method,
        points=points,
        options=options,
        caliper=caliper if caliper_on else None,
        caliper_on=caliper_on,
        weights=weights,
        pairs=pairs,
        balance=balance,
        term_balance=tuple(_term_balance(model, treated, pairs)),
    )


def _terms_to_balance(model: TreatmentModel) -> tuple[Term, ...]:
    """Return the squares of the covariates, and the terms that predict the version of a row."""
    squares = tuple(
        term for term in model.dictionary.terms if len(term) == 1 and term[0].shape == "square"
    )
    return tuple(dict.fromkeys((*squares, *model.added_terms)))


def _term_balance(
    model: TreatmentModel, treated: Truths, pairs: MatchResult
) -> Iterator[TermBalance]:
    """Yield the balance of each term to balance; only one column is in memory at a time."""
    is_matched = treated.copy()
    is_matched[pairs.dropped_index] = False
    weights = pairs.weights / pairs.weights.sum()
    for term in _terms_to_balance(model):
        values = model.dictionary.values((term,))[:, 0]
        spread = float(values[is_matched].std())
        difference = float(weights @ (values[pairs.treated_index] - values[pairs.control_index]))
        if spread > _CONSTANT_TOLERANCE * float(np.abs(values).max()):
            yield TermBalance(
                model.dictionary.describe(term),
                model.dictionary.log_columns_of(term),
                difference / spread,
            )


def _rows_to_search(treated: Truths, seed: int) -> Indices:
    """Return the rows for the genetic search: an equal random share of each version."""
    arms = [np.flatnonzero(treated), np.flatnonzero(~treated)]
    share = math.sqrt(MAX_SEARCHED_PAIRS / (len(arms[0]) * len(arms[1])))
    if share >= 1.0:
        return np.arange(len(treated))
    random = np.random.default_rng(seed)
    drawn = [random.choice(arm, max(1, round(share * len(arm))), replace=False) for arm in arms]
    return np.sort(np.concatenate(drawn))


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
