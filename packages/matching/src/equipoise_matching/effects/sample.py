"""The rows of an effect, checked: outcome, arm, weight, cluster, covariates and target population.

The rows that a design leaves out have no part in an effect, so their outcome may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.effects.weight_model import WeightModel
from equipoise_matching.matching.frames import matrix_of, value_indices_of
from equipoise_matching.matching.units import (
    FINITE_HINT,
    Floats,
    Indices,
    Truths,
    check_length,
    leave_out_hint,
    refuse_rows,
    to_floats,
)
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import joined

Scale = Literal[
    "difference", "risk ratio", "odds ratio", "rate ratio", "hazard ratio", "survival difference"
]
"""How two arms are compared; all are marginal, which means averaged over the target population."""
OutcomeModel = Literal["linear", "logistic", "poisson"]
Variance = Literal["population", "sample"]
ErrorKind = Literal["design", "clusters", "rows", "bootstrap"]
Correction = Literal["HC1", "HC3"]

MIN_EFFECTIVE_STRATA = 40.0
"""Effective number of strata, (Σ size)² / Σ size², from which strata count as clusters."""
MAX_WEIGHT_RATIO = 1e12
"""Largest ratio of two positive weights of an arm; beyond it, sums lose the smaller one."""
TARGET_ARMS = {"ATT": 1, "ATC": 0}
"""Position of the arm that the estimand averages over, in a design of two arms."""
_LEFT_OUT = -1
"""Stratum of a row that a design leaves out."""


class EffectOptions(TypedDict, total=False):
    """Options of an effect; `effects_of` describes them."""

    covariates: Any
    scale: Scale
    model: OutcomeModel | None
    event: ArrayLike | None
    at: float | None
    variance: Variance
    error: ErrorKind
    correction: Correction | None
    clusters: ArrayLike | None
    redesign: Redesign | None
    replications: int
    seed: int
    confidence: float
    target: Any


@dataclass(frozen=True, slots=True, eq=False)
class DesignRows:
    """A design as plain arrays of n rows.

    Parameters
    ----------
    arm
        Shape (n,), the position of each row's treatment in ``arms``.
    arms
        The values of the treatment in ascending order; controls are first.
    weights
        Shape (n,), 0 or more; 0 for rows that are left out.
    estimand
        ATT, ATC or ATE, or another name: then the target population is the weighted sample.
    strata
        Shape (n,), the stratum of each row, -1 for rows that are left out; or ``None``.
    names, matrix
        Names of the k covariates, and their values, shape (n, k).
    method
        Name of the function that made the design.
    weight_model
        How the weights depend on a fitted model, if the errors shall include its uncertainty.
    focal
        The arm that ATT or ATC average over, if there are several arms.
    """

    arm: Indices
    arms: tuple[Any, ...]
    weights: Floats
    estimand: str
    strata: Indices | None = None
    names: tuple[str, ...] = ()
    matrix: Floats = field(default_factory=lambda: np.empty((0, 0)))
    method: str = "weights"
    weight_model: WeightModel | None = None
    focal: Any = None


class RowsSource(Protocol):
    """A design that gives its rows as plain arrays."""

    def design_rows(self) -> DesignRows:
        """Return the rows of the design."""
        ...


class Redesign(Protocol):
    """A function that makes the design again from some rows, for the bootstrap."""

    def __call__(self, rows: Indices, /) -> RowsSource:
        """Return the design of these rows; a row may occur several times."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EffectSample:
    """The n rows that a design uses, each with a positive weight.

    Parameters
    ----------
    rows
        Shape (n,), their row numbers in the input.
    outcome, event
        Shape (n,). In a survival analysis, the outcome is the time and ``event`` is true for an
        event, false for a censored row; else ``event`` is ``None``.
    arm, arm_names
        Shape (n,), the position of each row's arm; the names of the arms.
    weights, target
        Shape (n,), the weight of a row in its arm; the weight in the target population.
    clusters, cluster_name
        Shape (n,), the cluster of each row from 0, or ``None``; the noun for clusters.
    names, covariates
        Names and values (n, k) of the covariates of the outcome's model.
    weight_model
        As in `DesignRows`, for the used rows.
    target_is_weighted
        Whether ``target`` is ``weights``, so that it depends on the model of the weights too.
    """

    rows: Indices
    outcome: Floats
    event: Truths | None
    arm: Indices
    arm_names: tuple[str, ...]
    weights: Floats
    target: Floats
    clusters: Indices | None
    cluster_name: str
    names: tuple[str, ...]
    covariates: Floats
    estimand: str
    method: str
    weight_model: WeightModel | None = None
    target_is_weighted: bool = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def subset(self, positions: Indices) -> EffectSample:
        """Return the rows at these positions, which may repeat, as independent rows."""
        return EffectSample(
            self.rows[positions],
            self.outcome[positions],
            None if self.event is None else self.event[positions],
            self.arm[positions],
            self.arm_names,
            self.weights[positions],
            self.target[positions] / (float(self.target[positions].sum()) or 1.0),
            None,
            self.cluster_name,
            self.names,
            self.covariates[positions],
            self.estimand,
            self.method,
            None,
            self.target_is_weighted,
        )


def effect_sample(y: ArrayLike, design: DesignRows, options: EffectOptions) -> EffectSample:
    """Check the outcome and the options, and return the rows that the design uses.

    Raise `UnusableInput` for unequal lengths, missing or infinite values in a used row, weights
    that are negative or infinite, or an arm without a used row.
    """
    count = len(design.arm)
    is_used = _used_rows(design)
    rows = np.flatnonzero(is_used)
    outcome = used_numbers(y, _name_of(y, "y"), is_used)
    event, event_values = None, options.get("event")
    if event_values is not None:
        codes = used_numbers(event_values, "event", is_used)
        is_wrong = np.zeros(count, dtype=np.bool_)
        is_wrong[rows] = (codes != 0) & (codes != 1)
        refuse_rows(is_wrong, "event", "is neither 0 nor 1", "code events as 1 and censoring as 0")
        is_wrong[rows] = outcome < 0
        refuse_rows(is_wrong, "the time", "is negative", "give the time since the start")
        event = codes == 1
    names, covariates = _covariates(design, options.get("covariates", "design"), is_used)
    clusters, cluster_name = _clusters(design, options, is_used)
    target, target_is_weighted = _target(design, options.get("target", design.focal), rows)
    return EffectSample(
        rows,
        outcome,
        event,
        design.arm[rows],
        arm_names(design.arms),
        design.weights[rows],
        target,
        clusters,
        cluster_name,
        names,
        covariates,
        design.estimand,
        design.method,
        None if design.weight_model is None else design.weight_model.subset(rows),
        target_is_weighted,
    )


def arm_names(arms: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names of the arms in sentences: control and treated for 0 and 1."""
    return ("control", "treated") if arms == (0, 1) else tuple(str(arm) for arm in arms)


def used_numbers(values: Any, name: str, is_used: Truths) -> Floats:
    """Return the finite numbers of the used rows; ``values`` has one number for each row."""
    numbers = to_floats(values, name)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        raise UnusableInput(f"{name} has shape {numbers.shape}", hint="give one value for each row")
    if len(numbers) != len(is_used):
        raise UnusableInput(
            f"{name} has {len(numbers)} rows and the design has {len(is_used)}",
            hint="give one value for each row from which the design was made",
        )
    refuse_rows(is_used & np.isnan(numbers), name, "is missing", leave_out_hint())
    refuse_rows(is_used & np.isinf(numbers), name, "is infinite", FINITE_HINT)
    return np.ascontiguousarray(numbers[is_used])


def _used_rows(design: DesignRows) -> Truths:
    weights = design.weights
    refuse_rows(~np.isfinite(weights), "the weight", "is not finite", "leave out these rows")
    refuse_rows(weights < 0, "the weight", "is negative", "give weights of 0 or more")
    is_used = np.asarray(weights > 0)
    counts = np.bincount(design.arm[is_used], minlength=len(design.arms))
    if not counts.all():
        empty = [arm_names(design.arms)[index] for index in np.flatnonzero(counts == 0)]
        raise UnusableInput(
            f"{design.method} uses no row of the arm {joined(empty)}, so there is no effect",
            hint="make a design that uses rows of every arm",
        )
    for index, name in enumerate(arm_names(design.arms)):
        used_weights = weights[is_used & (design.arm == index)]
        if used_weights.max() > MAX_WEIGHT_RATIO * used_weights.min():
            raise UnusableInput(
                f"the weights of the arm {name} range from {used_weights.min():.3g} to "
                f"{used_weights.max():.3g}, so single rows decide its mean",
                hint="trim the weights, or give the effect on the overlap",
            )
    return is_used


def _covariates(
    design: DesignRows, covariates: Any, is_used: Truths
) -> tuple[tuple[str, ...], Floats]:
    """Return the names and the used rows of the covariates of the outcome's model."""
    if isinstance(covariates, str):
        if covariates != "design":
            raise UnusableInput(
                f"covariates is {covariates!r}",
                hint='give a table, None for no covariates, or "design" for those of the design',
            )
        if design.names:
            return design.names, design.matrix[is_used]
        covariates = None
    if covariates is None:
        return (), np.empty((int(is_used.sum()), 0))
    names, matrix = matrix_of(covariates)
    check_length(len(matrix), "covariates", len(is_used))
    return names, matrix[is_used]


def _clusters(
    design: DesignRows, options: EffectOptions, is_used: Truths
) -> tuple[Indices | None, str]:
    """Return the clusters of the used rows, and the noun for them.

    The caller's clusters come first. Strata are clusters if each has a single row of an arm, as in
    pairs and matched sets, or if there are enough of them. Few large strata are not.
    """
    error, given = options.get("error", "design"), options.get("clusters")
    if given is not None:
        column = np.asarray(given)
        if column.ndim != 1:
            raise UnusableInput(
                f"clusters has shape {column.shape}", hint="give one cluster for each row"
            )
        check_length(len(column), "clusters", len(is_used))
        return value_indices_of(column[is_used], "clusters"), "clusters"
    if error == "rows" or design.strata is None:
        if error == "clusters":
            raise UnusableInput(
                f"{design.method} gives weights without strata, so there are no clusters",
                hint="give clusters, or leave out error for errors by rows",
            )
        return None, "rows"
    strata = np.unique(design.strata[is_used], return_inverse=True)[1].astype(np.int64)
    if error != "clusters" and not are_matched_sets(strata, design.arm[is_used]):
        sizes = np.bincount(strata).astype(np.float64)
        if sizes.sum() ** 2 / (sizes**2).sum() < MIN_EFFECTIVE_STRATA:
            return None, "rows"
    return strata, "strata"


def are_matched_sets(strata: Indices, arm: Indices) -> bool:
    """Return whether at most one arm has several rows in each stratum."""
    count, arms = int(strata.max()) + 1, int(arm.max()) + 1
    sizes = np.bincount(strata * arms + arm, minlength=count * arms).reshape(count, arms)
    return bool(((sizes > 1).sum(axis=1) <= 1).all())


def _target(design: DesignRows, target: Any, rows: Indices) -> tuple[Floats, bool]:
    """Return the weight of each used row in the target population, which sums to 1.

    ATT and ATC: the used rows of an arm with their weights. ATE: each used row counts once. Any
    other estimand, such as the effect on the overlap: the used rows with their weights.
    """
    arm, weights = design.arm[rows], design.weights[rows]
    is_weighted = False
    if target is not None:
        if target not in design.arms:
            raise UnusableInput(
                f"target is {target!r}, which is not an arm",
                hint=f"give one of {', '.join(map(str, design.arms))}",
            )
        population = weights * (arm == design.arms.index(target))
    elif design.estimand == "ATE":
        population = np.ones(len(rows))
    elif design.estimand in TARGET_ARMS:
        if len(design.arms) > 2:
            raise UnusableInput(
                f"{design.estimand} of {len(design.arms)} arms needs the arm to average over",
                hint=f"give target={design.arms[0]!r} or another arm",
            )
        population = weights * (arm == TARGET_ARMS[design.estimand])
    else:
        population, is_weighted = weights, True
    return np.asarray(population / population.sum()), is_weighted


def _name_of(values: Any, fallback: str) -> str:
    name = getattr(values, "name", None)
    return str(name) if isinstance(name, str) and name else fallback
