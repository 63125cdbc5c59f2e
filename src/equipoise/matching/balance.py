"""Balance of many covariates before and after matching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.balance_result import Balance, Groups
from equipoise.matching.balance_univariate import (
    Estimand,
    UnivariateBalance,
    balance_of,
    ks_of,
    with_ks,
)
from equipoise.matching.empirical import Values, rows_in_words, sample_weights
from equipoise.matching.frames import Covariates, covariates_of
from equipoise.matching.ks import check_boot, draws
from equipoise.model.errors import UnusableInput


class Matched(Protocol):
    """What balance needs of a match: pairs of rows, counted from 0, and what each counts."""

    @property
    def treated_index(self) -> NDArray[Any]:
        """The treated row of each pair."""

    @property
    def control_index(self) -> NDArray[Any]:
        """The control of each pair."""

    @property
    def weights(self) -> NDArray[Any]:
        """The weight of each pair."""


def match_balance(
    formula_or_matrix: Any,
    data: Any,
    match: Matched | None = None,
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

    Parameters
    ----------
    formula_or_matrix, data
        ``"treat ~ age + I(age**2)"`` and a frame, or a matrix or frame of covariates and the
        treatment, 0 or 1. Terms beyond the covariates matched on (squares, products) tell
        what matching left.
    match
        The result of ``match`` on the same rows; without one there is no "after".
    boot
        Bootstrap samples of the KS tests, the same rows for every covariate; 0 for none.
    ks
        Whether to test by Kolmogorov-Smirnov; covariates with two values never are.
    paired
        Test pairs by a paired t-test.
    weights
        Of the rows, before matching; the match has its own.
    estimand
        Whose standard deviation ``sdiff`` is in: the controls' for ATC, else the treated's.
        That of the match by default.
    r_compatible
        R's quirks: QQ and KS take no notice of weights, ``sdiff_pooled`` of pairs is in
        standard deviations of the treated, the estimand is taken for ATT, QQ places are
        rounded, and the asymptotic KS series stops early.
    progress
        Called with how many bootstrap samples are done, and of how many.

    Raises
    ------
    UnusableInput
        Naming column and rows of what cannot be used.
    """
    check_boot(boot)
    covariates = covariates_of(formula_or_matrix, data)
    treated = np.flatnonzero(covariates.treated)
    control = np.flatnonzero(~covariates.treated)
    own = _row_weights(weights, covariates)
    before = Groups(
        treated,
        control,
        None if own is None else own[treated],
        None if own is None else own[control],
        matched=False,
    )
    after = None if match is None else _pairs(match, covariates)
    whose: Estimand = estimand or getattr(match, "estimand", None) or "ATT"
    if r_compatible:
        whose = "ATT"
    # Before and after draw from streams of their own: one tells nothing of the other.
    streams = draws(seed).spawn(2)
    sides = [
        _side(
            covariates,
            groups,
            boot=boot,
            ks=ks,
            paired=paired,
            estimand=whose,
            random=stream,
            r_compatible=r_compatible,
            progress=_told(progress, place * boot, boot * (1 if after is None else 2)),
        )
        for place, (groups, stream) in enumerate(zip((before, after), streams, strict=True))
        if groups is not None
    ]
    return Balance(
        covariates.names,
        sides[0],
        sides[1] if after is not None else None,
        covariates.matrix,
        before,
        after,
    )


def _side(
    covariates: Covariates,
    groups: Groups,
    *,
    boot: int,
    ks: bool,
    paired: bool,
    estimand: Estimand,
    random: np.random.Generator,
    r_compatible: bool,
    progress: Callable[[int], None] | None,
) -> tuple[UnivariateBalance, ...]:
    columns = [groups.split(covariates.matrix[:, k]) for k in range(len(covariates.names))]
    balances = [
        balance_of(
            *column,
            groups.weights_treated,
            groups.weights_control,
            matched=groups.matched,
            paired=paired,
            estimand=estimand,
            r_compatible=r_compatible,
        )
        for column in columns
    ]
    if not ks:
        return tuple(balances)
    tested = [k for k in range(len(columns)) if len(np.unique(covariates.matrix[:, k])) > 2]
    tests = ks_of(
        [columns[k] for k in tested],
        groups.weights_treated,
        groups.weights_control,
        boot=boot,
        random=random,
        r_compatible=r_compatible,
        progress=progress,
    )
    for k, test in zip(tested, tests, strict=True):
        balances[k] = with_ks(balances[k], test)
    return tuple(balances)


def _told(
    progress: Callable[[int, int], None] | None, before: int, total: int
) -> Callable[[int], None] | None:
    """One side's progress as that of both."""
    if progress is None:
        return None
    tell = progress
    return lambda done: tell(before + done, total)


def _row_weights(weights: Any, covariates: Covariates) -> Values | None:
    own = sample_weights(weights, covariates.matrix[:, 0], "weights")
    if own is None:
        return None
    for name, arm in (("treated", covariates.treated), ("untreated", ~covariates.treated)):
        if not np.any(own[arm] > 0.0):
            raise UnusableInput(
                f"weights: zero for every {name} row", hint="some row of either group must count"
            )
    return own


def _pairs(match: Matched, covariates: Covariates) -> Groups:
    if not hasattr(match, "treated_index"):
        raise UnusableInput(
            f"match is {match!r}, which is no result of a match",
            hint="give what match or match_by returned, or the matches of gen_match",
        )
    treated, control = np.asarray(match.treated_index), np.asarray(match.control_index)
    weights = np.asarray(match.weights, dtype=np.float64)
    if not len(treated) == len(control) == len(weights):
        raise UnusableInput(
            f"a match of {len(treated)} treated, {len(control)} controls and {len(weights)} "
            "weights is none",
            hint="give what match() returned",
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
            f"the match and the data disagree on who is treated in pairs: {rows_in_words(wrong)}",
            hint="match and balance on the same rows in the same order",
        )
    checked = sample_weights(weights, weights, "weights of the match")
    return Groups(treated.astype(np.intp), control.astype(np.intp), checked, checked, matched=True)
