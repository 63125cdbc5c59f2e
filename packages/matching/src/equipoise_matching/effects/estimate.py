"""Effects after a design: the contrasts of each pair of arms, also in subgroups.

`effects_of` takes a design as plain arrays. ``Design.effect``, ``Design.effects`` and
``Design.subgroup_effects`` call these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from equipoise_matching.effects.arm_means import ArmMeans, Contrast, check_scale, compare
from equipoise_matching.effects.cautions import cautions
from equipoise_matching.effects.outcome_model import default_model, model_means
from equipoise_matching.effects.result import EffectEstimate, EffectEstimates
from equipoise_matching.effects.sample import (
    Correction,
    DesignRows,
    EffectOptions,
    EffectSample,
    ErrorKind,
    OutcomeModel,
    Redesign,
    Scale,
    Variance,
    effect_sample,
)
from equipoise_matching.effects.survival import log_hazard_ratio, survival_means
from equipoise_matching.effects.variance import (
    ErrorEstimate,
    bootstrap_errors,
    error_of,
    resamples,
    with_interval,
)
from equipoise_matching.matching.frames import distinct_texts, matrix_of
from equipoise_matching.matching.options import check_whole_number
from equipoise_matching.matching.units import Floats, Indices, check_length
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

SURVIVAL_SCALES = frozenset({"hazard ratio", "survival difference"})
REPLICATIONS = 500
"""Default number of bootstrap samples."""
MIN_LEVERAGE = 0.1
"""Leverage of a row below which no correction matters."""
MAX_RATIO_OF_ERRORS = 1.1
"""Ratio of the errors with HC3 and with HC1 above which a note names it."""
MAX_SUBGROUPS = 200
"""Largest number of subgroups; a column with more values is not a grouping."""


def effects_of(y: ArrayLike, design: DesignRows, options: EffectOptions) -> EffectEstimates:
    """Return the effect on y (n,) for each pair of arms, the later arm against the earlier one.

    Raise `UnusableInput` if the outcome or an option cannot be used, or an effect does not exist.

    The options, all with a default:

    ``covariates``
        Covariates of the outcome's model: "design" for those of the design, a table (n, k), or
        ``None`` for the weighted means of the arms.
    ``scale``
        "difference", "risk ratio", "odds ratio", "rate ratio", "hazard ratio" or
        "survival difference".
    ``model``
        "linear", "logistic" or "poisson"; by default logistic for an outcome of 0 and 1, Poisson
        for a rate ratio.
    ``event``, ``at``
        For survival, y is the time, and ``event`` (n,) is 1 for events and 0 for censoring. ``at``
        is the time of a survival difference.
    ``variance``
        Whether the error is about the effect in the "population" or in this "sample" of covariates.
    ``error``
        "design" for the recommended error, "clusters" (strata, or ``clusters``), "rows", or
        "bootstrap".
    ``correction``
        Correction for small samples (``variance``): by default "HC1" with clusters, "HC3" by rows.
        With clusters, "HC3" covers better if a few rows have large weights.
    ``clusters``
        Shape (n,), clusters that contain the strata, such as schools.
    ``redesign``
        For the bootstrap of weights: a function that makes the design again from row numbers.
    ``replications``, ``seed``
        Number of bootstrap samples, by default 500, and the seed of their draws, by default 0.
    ``confidence``
        Chance with which an interval has the true effect, by default 0.95.
    ``target``
        The arm to average over, if there are several arms and the estimand is not ATE.
    """
    choices = _checked_choices(options)
    sample = effect_sample(y, design, options)
    pairs = [(second, first) for first, second in combinations(range(len(sample.arm_names)), 2)]
    contrasts, means = _contrasts(sample, choices, pairs)
    if choices.error == "bootstrap":
        errors = _bootstrapped(y, design, options, choices, sample, pairs)
    else:
        errors = tuple(
            error_of(contrast.influence, sample, means.parameters, means.correction)
            for contrast in contrasts
        )
    effects = [
        with_interval(
            contrast.value,
            error,
            choices.scale,
            choices.confidence,
            **_fields(sample, means, pair),
        )
        for contrast, error, pair in zip(contrasts, errors, pairs, strict=True)
    ]
    notes = _leverage_notes(sample, choices, means, errors, pairs)
    adjusted = sample.covariates.shape[1] > 0 and choices.scale not in SURVIVAL_SCALES
    notes = (*notes, *cautions(sample, design, adjusted=adjusted))
    return EffectEstimates(tuple(_with_notes(effect, sample, choices, notes) for effect in effects))


def effect_of(y: ArrayLike, design: DesignRows, options: EffectOptions) -> EffectEstimate:
    """Return the effect in a design of two arms; the options are those of `effects_of`."""
    if len(design.arms) > 2:
        raise UnusableInput(
            f"the design has {len(design.arms)} arms, so there is more than one effect",
            hint="use .effects(y), which compares each pair of arms",
        )
    return effects_of(y, design, options)[0]


def subgroup_effects_of(
    y: ArrayLike, by: Any, design: DesignRows, options: EffectOptions
) -> EffectEstimates:
    """Return the effect in each subgroup of a design of two arms.

    ``by`` (n,) has the subgroup of each row. The adjusted p-values control the false-discovery rate
    of all subgroups (Benjamini and Hochberg 1995, JRSS B 57(1)). The weights are those of the
    design, so the covariates of a subgroup may be less balanced than those of all rows.

    Raise `UnusableInput` as `effects_of`, also if a subgroup has no used row of an arm.
    """
    name = str(getattr(by, "name", None) or "by")
    column = np.asarray(by)
    if column.ndim != 1:
        raise UnusableInput(f"{name} has shape {column.shape}", hint="give one value for each row")
    check_length(len(column), name, len(design.arm))
    labels, codes = distinct_texts(column, name)
    if len(labels) > MAX_SUBGROUPS:
        raise UnusableInput(
            f"{name} has {len(labels)} different values, which are too many for subgroups",
            hint=f"give at most {MAX_SUBGROUPS} groups",
        )
    effects = []
    for index, label in enumerate(labels):
        part = DesignRows(
            design.arm,
            design.arms,
            np.where(codes == index, design.weights, 0.0),
            design.estimand,
            design.strata,
            design.names,
            design.matrix,
            design.method,
            focal=design.focal,
        )
        try:
            effect = effect_of(y, part, options)
        except UnusableInput as error:
            raise UnusableInput(
                f"subgroup {name} = {label}: {error.what}",
                hint="join small groups, or give covariates=None",
            ) from error
        effects.append(replace(effect, label=f"{name} = {label}"))
    return with_adjusted_p_values(effects)


def with_adjusted_p_values(effects: Sequence[EffectEstimate]) -> EffectEstimates:
    """Return the effects with p-values under a false-discovery rate (Benjamini-Hochberg)."""
    stats = require("scipy.stats", "false-discovery rates")
    adjusted = stats.false_discovery_control([effect.p_value for effect in effects], method="bh")
    return EffectEstimates(
        tuple(
            replace(effect, adjusted_p_value=float(p_value))
            for effect, p_value in zip(effects, adjusted, strict=True)
        ),
        ("Adjusted p-values control the false-discovery rate (Benjamini and Hochberg 1995).",),
    )


class _Choices(Struct, frozen=True):
    """The options that are not columns, with every default filled in."""

    scale: Scale
    error: ErrorKind = "design"
    variance: Variance = "population"
    confidence: float = 0.95
    model: OutcomeModel | None = None
    at: float | None = None
    replications: int = REPLICATIONS
    seed: int = 0
    redesign: Redesign | None = None
    correction: Correction | None = None


def _checked_choices(options: EffectOptions) -> _Choices:
    allowed = EffectOptions.__annotations__
    for name in options:
        if name not in allowed:
            raise UnusableInput(
                f"there is no option {name}", hint=f"choose one of {', '.join(sorted(allowed))}"
            )
    has_event = options.get("event") is not None
    choices = _Choices(
        options.get("scale", "hazard ratio" if has_event else "difference"),
        options.get("error", "design"),
        options.get("variance", "population"),
        options.get("confidence", 0.95),
        options.get("model"),
        options.get("at"),
        options.get("replications", REPLICATIONS),
        options.get("seed", 0),
        options.get("redesign"),
        options.get("correction"),
    )
    kinds = {
        "scale": Scale,
        "error": ErrorKind,
        "variance": Variance,
        "model": OutcomeModel,
        "correction": Correction,
    }
    for name, kind in kinds.items():
        value = getattr(choices, name)
        is_default = name in ("model", "correction") and value is None
        if value not in get_args(kind) and not is_default:
            raise UnusableInput(
                f"there is no {name} {value!r}", hint=f"choose one of {', '.join(get_args(kind))}"
            )
    if not 0.0 < choices.confidence < 1.0:
        raise UnusableInput(f"confidence is {choices.confidence!r}", hint="give 0.95")
    check_whole_number("replications", choices.replications, 2)
    check_whole_number("seed", choices.seed, 0)
    if (choices.scale in SURVIVAL_SCALES) != has_event:
        raise UnusableInput(
            f"the scale {choices.scale!r} {'takes no' if has_event else 'needs an'} event",
            hint='give event= with the scale "hazard ratio" or "survival difference"',
        )
    if (choices.scale == "survival difference") != (choices.at is not None):
        raise UnusableInput(
            f"the scale {choices.scale!r} {'needs a' if choices.at is None else 'takes no'} time",
            hint='give at= with scale="survival difference"',
        )
    if choices.redesign is not None and choices.error != "bootstrap":
        raise UnusableInput("redesign is only for the bootstrap", hint='give error="bootstrap" too')
    return choices


def _contrasts(
    sample: EffectSample, choices: _Choices, pairs: Sequence[tuple[int, int]]
) -> tuple[list[Contrast], ArmMeans]:
    """Return the contrast of each pair of arms, and the means from which they come."""
    scale = choices.scale
    if scale == "hazard ratio":
        contrasts = [_hazard_contrast(sample, *pair) for pair in pairs]
        # A hazard ratio has no means; the fields name only its method.
        empty = np.empty((len(sample), 0))
        return contrasts, ArmMeans(np.empty(0), empty, 1, "a weighted Cox model of the treatment")
    check_scale(sample.outcome, scale)
    if scale == "survival difference":
        at = choices.at
        means = survival_means(sample, float(at if at is not None else np.nan))
    else:
        model = choices.model or default_model(sample.outcome, scale)
        means = model_means(sample, model, choices.variance, choices.correction)
    return [compare(means, scale, *pair, sample.arm_names) for pair in pairs], means


def _hazard_contrast(sample: EffectSample, first: int, second: int) -> Contrast:
    """Return the logarithm of the hazard ratio of two arms, from the rows of these arms only."""
    rows = np.flatnonzero((sample.arm == first) | (sample.arm == second))
    event = sample.event
    assert event is not None, "checked with the options"
    contrast = log_hazard_ratio(
        sample.outcome[rows],
        event[rows],
        sample.weights[rows],
        sample.arm[rows] == first,
        (sample.arm_names[first], sample.arm_names[second]),
    )
    influence = np.zeros(len(sample))
    influence[rows] = contrast.influence
    return Contrast(contrast.value, influence)


def _leverage_notes(
    sample: EffectSample,
    choices: _Choices,
    means: ArmMeans,
    errors: Sequence[ErrorEstimate],
    pairs: Sequence[tuple[int, int]],
) -> tuple[str, ...]:
    """Return a note if the correction HC3 makes a cluster-robust error much larger."""
    if (
        choices.correction is not None
        or means.correction != "HC1"
        or means.largest_leverage < MIN_LEVERAGE
        or choices.error == "bootstrap"
    ):
        return ()
    contrasts, corrected = _contrasts(sample, replace(choices, correction="HC3"), pairs)
    ratios = [
        error_of(contrast.influence, sample, corrected.parameters, "HC3").se / error.se
        for contrast, error in zip(contrasts, errors, strict=True)
        if error.se > 0.0
    ]
    ratio = max(ratios, default=1.0)
    if ratio < MAX_RATIO_OF_ERRORS:
        return ()
    percent = f"{100.0 * (ratio - 1.0):.0f} %"
    return (f'a few rows have large weights: with correction="HC3" the error is {percent} larger',)


def _fields(sample: EffectSample, means: ArmMeans, pair: tuple[int, int]) -> dict[str, Any]:
    first, second = pair
    is_in_pair = (sample.arm == first) | (sample.arm == second)
    values = None
    if len(means.values):
        values = (float(means.values[first]), float(means.values[second]))
    clusters = None
    if sample.clusters is not None:
        clusters = len(np.unique(sample.clusters[is_in_pair]))
    return {
        "estimand": sample.estimand,
        "contrast": (sample.arm_names[first], sample.arm_names[second]),
        "arm_values": values,
        "method": means.method,
        "design": sample.method,
        "rows": int(is_in_pair.sum()),
        "clusters": clusters,
        "notes": means.notes,
    }


def _bootstrapped(
    y: ArrayLike,
    design: DesignRows,
    options: EffectOptions,
    choices: _Choices,
    sample: EffectSample,
    pairs: Sequence[tuple[int, int]],
) -> tuple[ErrorEstimate, ...]:
    """Return bootstrap errors: of the rows and their weights, or of the whole design again."""
    redesign, replications, seed = choices.redesign, choices.replications, choices.seed
    if redesign is None:
        unit = "rows" if sample.clusters is None else sample.cluster_name

        def of_fixed_weights(positions: Indices) -> Floats:
            part = sample.subset(positions)
            _refuse_empty_arm(part)
            return _values(part, choices, pairs)

        samples = resamples(sample.clusters, len(sample), replications, seed)
        return bootstrap_errors(of_fixed_weights, samples, unit)
    columns = {
        name: np.asarray(values)
        for name in ("event", "clusters")
        if (values := options.get(name)) is not None
    }
    covariates = options.get("covariates", "design")
    outcome = np.asarray(y)

    def of_new_design(rows: Indices) -> Floats:
        again: Any = {**options, **{name: column[rows] for name, column in columns.items()}}
        if covariates is not None and not isinstance(covariates, str):
            again["covariates"] = matrix_of(covariates)[1][rows]
        part = effect_sample(outcome[rows], redesign(rows).design_rows(), again)
        return _values(part, choices, pairs)

    samples = resamples(None, len(design.arm), replications, seed)
    return bootstrap_errors(of_new_design, samples, "rows, each sample with its own design")


def _values(sample: EffectSample, choices: _Choices, pairs: Sequence[tuple[int, int]]) -> Floats:
    contrasts, _ = _contrasts(sample, choices, pairs)
    return np.array([contrast.value for contrast in contrasts])


def _refuse_empty_arm(sample: EffectSample) -> None:
    counts = np.bincount(sample.arm, minlength=len(sample.arm_names))
    if not counts.all() or not np.isfinite(sample.target).all() or not sample.target.sum() > 0.0:
        raise UnusableInput("an arm has no row in a bootstrap sample", hint="give error='rows'")


def _with_notes(
    effect: EffectEstimate, sample: EffectSample, choices: _Choices, notes: tuple[str, ...]
) -> EffectEstimate:
    """Add the notes, and how the error treats the weights of a design without strata."""
    effect = replace(effect, notes=(*effect.notes, *notes))
    if choices.error == "bootstrap":
        return effect
    if sample.weight_model is not None and choices.scale not in SURVIVAL_SCALES:
        error = f"{effect.error}, with the uncertainty of the estimated weights (M-estimation)"
        return replace(effect, error=error)
    if sample.clusters is None and np.ptp(sample.weights) > 0.0:
        return replace(effect, notes=(*effect.notes, "the error treats the weights as known"))
    return effect
