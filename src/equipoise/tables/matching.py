"""Matching, its balance and the search for weights on the columns of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import Covariates
from equipoise.matching.gen_match import GenMatchResult, gen_match
from equipoise.matching.match import MatchResult, match
from equipoise.model.errors import UnusableInput
from equipoise.tables.problem import MatchTable, Pairing

Progress = Callable[[int, int], None]


def run_match(
    table: MatchTable,
    pairing: Pairing,
    *,
    metric: Any = "inverse_variance",
    propensity: bool = False,
    bias_adjust: bool = False,
    progress: Progress | None = None,
    **more: Any,
) -> MatchResult:
    """Match the rows that take part; rows in the result count those.

    The options are those of ``match``, and ``propensity`` of ``eq.match``.

    Raise `UnusableInput` if two of the options do not go together.
    """
    if bias_adjust and table.outcome is None:
        raise UnusableInput("--bias-adjust has no outcome to adjust", hint="give --outcome COLUMN")
    if bias_adjust and table.by is not None:
        raise UnusableInput(
            "--bias-adjust and --by do not go together", hint="leave one of them out"
        )
    if table.by is not None and pairing.common_support:
        raise UnusableInput(
            "--by and --common-support do not go together",
            hint="leave one of them out; a caliper keeps strata apart from what is too far, too",
        )
    covariates, owners = table.covariates, table.owners
    matrix, names = covariates.matrix, covariates.names
    if propensity:
        from equipoise.matching.propensity import score_of

        matrix, names = score_of(covariates).score[:, None], ("propensity",)
        owners = names
    settings = {
        **pairing.settings(names, owners),
        "metric": metric,
        "weights": table.weights,
        "progress": progress,
        **more,
    }
    units = (table.outcome, covariates.treated.astype(float), matrix)
    if table.by is not None:
        from equipoise.matching.stratified import match_by

        return match_by(*units, table.by, **settings)
    return match(*units, bias_adjust=bias_adjust, common_support=pairing.common_support, **settings)


def run_search(table: MatchTable, pairing: Pairing, **more: Any) -> GenMatchResult:
    """Search for the weights of the covariates that balance best; ``more`` as for ``gen_match``."""
    return gen_match(
        table.covariates.treated.astype(float),
        by_name(table.covariates),
        by_name(table.balance),
        common_support=pairing.common_support,
        weights=table.weights,
        **pairing.settings(table.covariates.names, table.owners),
        **more,
    )


def match_by_weights(
    table: MatchTable, pairing: Pairing, search: GenMatchResult, **more: Any
) -> MatchResult:
    """Match by the weights that a search found, with its seed; ``more`` as for ``match``."""
    settings = pairing.settings(table.covariates.names, table.owners)
    return match(
        table.outcome,
        table.covariates.treated.astype(float),
        by_name(table.covariates),
        metric=search.to_metric(),
        common_support=pairing.common_support,
        weights=table.weights,
        **{**settings, "seed": search.seed},
        **more,
    )


def exact_cells(table: MatchTable, pairing: Pairing) -> NDArray[np.int64] | None:
    """Return for each row that takes part its cell of exact matching; ``None`` without one."""
    is_exact = np.array(pairing.exact_in(table.covariates.names, table.owners))
    if not is_exact.any():
        return None
    cells = np.unique(table.covariates.matrix[:, is_exact], axis=0, return_inverse=True)[1]
    return np.asarray(cells, dtype=np.int64).reshape(-1)


def by_name(covariates: Covariates) -> Any:
    """Return covariates as columns by name."""
    return dict(zip(covariates.names, covariates.matrix.T, strict=True))
