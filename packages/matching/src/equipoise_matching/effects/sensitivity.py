"""How strong a hidden factor must be to change an effect: Rosenbaum's bounds and the E-value.

- `rosenbaum_bounds`: pairs and matched sets, whatever the outcome's model;
- `e_value`: a ratio or a difference from any method.

For a regression, see `robustness_value`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from equipoise_matching.effects.matched_sets import m_interval_at, m_p_value, set_blocks
from equipoise_matching.effects.result import EffectEstimate
from equipoise_matching.effects.sample import are_matched_sets
from equipoise_matching.effects.signed_rank import (
    MAX_GAMMA,
    interval_at,
    largest_gamma,
    signed_rank_p_value,
)
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    Truths,
    checked_column,
    power_of_two,
    treated_rows,
)
from equipoise_matching.report import UNKNOWN, TextTable
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import significant

GAMMAS = (1.0, 1.5, 2.0, 3.0)
"""Default factors Γ of the odds of treatment."""


class GammaRow(Struct, frozen=True):
    """The effect if a hidden factor multiplies the odds of treatment by at most ``gamma``."""

    gamma: float
    p_value: float
    """Largest two-sided p-value of no effect."""
    low: float | None
    high: float | None
    """Ends of the interval of constant effects; ``None`` if there are too few sets."""


class RosenbaumBounds(Struct, frozen=True):
    """Rosenbaum's bounds for a matched design.

    Examples
    --------
    >>> from equipoise_matching import rosenbaum_bounds
    >>> y = [38, 23, 41, 18, 37, 36, 23, 62, 31, 34, 16, 18, 18, 24, 19, 11, 10, 15, 16, 18]
    >>> pair = [*range(10), *range(10)]
    >>> bounds = rosenbaum_bounds(y, [1] * 10 + [0] * 10, pair)
    >>> bounds.statistic, bounds.sets, round(bounds.gamma, 2)
    ('signed rank', 10, 1.79)
    """

    statistic: str
    """``signed rank`` for pairs, ``M`` for sets with several rows of an arm."""
    sets: int
    rows: tuple[GammaRow, ...]
    gamma: float | None
    """Factor at which the interval reaches 0; ``None`` if it includes 0 without a hidden factor."""
    confidence: float

    def table(self) -> TextTable:
        """Return a row for each factor of the odds."""
        rows = tuple(
            (
                f"{row.gamma:g}",
                f"{row.p_value:.3g}",
                *(UNKNOWN if end is None else f"{end:.4g}" for end in (row.low, row.high)),
            )
            for row in self.rows
        )
        return TextTable(("odds times", "p at most", "low", "high"), rows, "Rosenbaum's bounds")

    def sentence(self) -> str:
        """Return the strength that a hidden factor needs, in a sentence."""
        if self.gamma is None:
            return f"{self.sets} sets show no effect, even without a hidden factor."
        more = "even if" if self.gamma >= MAX_GAMMA else "unless"
        return (
            f"The effect of {self.sets} sets differs from 0 {more} a hidden factor makes one of "
            f"two matched rows more than {significant(self.gamma)} times as likely to be treated."
        )

    def methods_sentence(self) -> str:
        """Return sentences for the methods section of a paper."""
        statistic = "Wilcoxon's signed-rank statistic"
        source = "Rosenbaum 2002"
        if self.statistic == "M":
            statistic, source = "an M-statistic (Huber's ψ, trimmed at 2.5)", "Rosenbaum 2007"
        return f"We computed Rosenbaum's bounds with {statistic} ({source}). {self.sentence()}"

    def summary(self) -> str:
        """Return the table as text, and the sentence below it."""
        return f"{self.table().to_text()}\n{self.sentence()}"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<div>{self.table().to_html()}<p>{html.text(self.sentence())}</p></div>"


def rosenbaum_bounds(
    y: ArrayLike,
    treat: ArrayLike,
    strata: ArrayLike,
    *,
    gammas: Sequence[float] = GAMMAS,
    confidence: float = 0.95,
) -> RosenbaumBounds:
    """Bound the effect of pairs or matched sets if a hidden factor moves the odds of treatment.

    Each stratum has a single row of one arm and rows of the other: pairs, 1:k sets, full matching.
    Pairs have Wilcoxon's signed-rank statistic (Rosenbaum 2002, Observational Studies, §4.3); other
    sets have an M-statistic (Rosenbaum 2007, Biometrics 63(2)).

    Raise `UnusableInput` if a stratum has several rows of both arms, or there is no set of both
    arms.

    Examples
    --------
    >>> from equipoise_matching import rosenbaum_bounds
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> pair = np.repeat(np.arange(50), 2)
    >>> treat = np.tile([1, 0], 50)
    >>> bounds = rosenbaum_bounds(treat + random.normal(size=100), treat, pair)
    >>> [row.p_value < 0.05 for row in bounds.rows], bounds.gamma > 3
    ([True, True, True, True], True)

    Parameters
    ----------
    y, treat, strata
        Shape (n,): the outcome; 1 for treated rows, 0 for controls; the stratum, -1 for rows that
        are left out.
    gammas
        Factors of the odds of treatment of two rows of a set, 1 or more.
    confidence
        Chance with which an interval has the true effect if the factor is at most Γ.
    """
    stratum = np.asarray(strata)
    if stratum.ndim != 1 or stratum.dtype.kind not in "iu":
        raise UnusableInput(
            f"strata has shape {stratum.shape} and type {stratum.dtype}",
            hint="give a whole number for each row, -1 for rows that are left out",
        )
    if not 0.0 < confidence < 1.0:
        raise UnusableInput(f"confidence is {confidence!r}", hint="give 0.95")
    if not gammas or not all(1.0 <= gamma < math.inf for gamma in gammas):
        raise UnusableInput(f"gammas are {list(gammas)}", hint="give factors of 1 or more")
    treated = treated_rows(checked_column(treat, "treat", len(stratum)), "treat")
    kept = np.flatnonzero(stratum >= 0)
    outcome = checked_column(np.asarray(y)[kept], "y", len(kept))
    scale = power_of_two(outcome) if len(kept) else 1.0
    outcome, treated, sets = _complete_sets(outcome / scale, treated[kept], stratum[kept])
    tail = (1.0 - confidence) / 2.0
    counts = np.bincount(sets)
    blocks = set_blocks(treated, sets)
    if (counts == 2).all():
        differences = outcome[blocks[0].rows[:, 0]] - outcome[blocks[0].rows[:, 1]]

        def p_value(gamma: float) -> float:
            sides = (signed_rank_p_value(sign * differences, gamma) for sign in (1.0, -1.0))
            return min(1.0, 2.0 * min(sides))

        def interval(gamma: float) -> tuple[float | None, float | None]:
            return interval_at(differences, gamma, tail)
    else:

        def p_value(gamma: float) -> float:
            sides = (m_p_value(sign * outcome, treated, blocks, gamma) for sign in (1.0, -1.0))
            return min(1.0, 2.0 * min(sides))

        def interval(gamma: float) -> tuple[float | None, float | None]:
            return m_interval_at(outcome, treated, blocks, gamma, tail)

    def row(gamma: float) -> GammaRow:
        low, high = (None if end is None else scale * end for end in interval(gamma))
        return GammaRow(float(gamma), p_value(gamma), low, high)

    return RosenbaumBounds(
        "signed rank" if (counts == 2).all() else "M",
        len(counts),
        tuple(map(row, gammas)),
        largest_gamma(p_value, 2.0 * tail),
        confidence,
    )


def _complete_sets(
    outcome: Floats, treated: Truths, stratum: Indices
) -> tuple[Floats, Truths, Indices]:
    """Return the rows of the sets with both arms, and the number of each row's set."""
    sets = np.unique(stratum, return_inverse=True)[1].astype(np.int64)
    counts, treated_counts = np.bincount(sets), np.bincount(sets, treated)
    has_both = (treated_counts > 0) & (treated_counts < counts)
    is_kept = has_both[sets]
    if not is_kept.any():
        raise UnusableInput(
            "no stratum has a treated row and a control", hint="give the strata of a matched design"
        )
    sets = np.unique(sets[is_kept], return_inverse=True)[1].astype(np.int64)
    treated = treated[is_kept]
    if not are_matched_sets(sets, treated.astype(np.int64)):
        raise UnusableInput(
            "a stratum has several treated rows and several controls",
            hint="use robustness_value or e_value, or a design of pairs or full matching",
        )
    return outcome[is_kept], treated, sets


class EValue(Struct, frozen=True):
    """The E-value of an estimate, and that of the end of its interval nearer to no effect.

    Examples
    --------
    >>> from equipoise_matching import e_value
    >>> value = e_value(3.9, (1.8, 8.7))
    >>> round(value.estimate, 2), round(value.interval, 2)
    (7.26, 3.0)
    """

    estimate: float
    interval: float | None
    """1 if the interval includes no effect; ``None`` without an interval."""
    ratio: float
    """The risk ratio from which the E-value was computed."""

    def sentence(self) -> str:
        """Return the strength that a hidden factor needs, in a sentence."""
        interval = ""
        if self.interval is not None:
            interval = f" (to move the interval to no effect: {significant(self.interval)})"
        return (
            "A hidden factor would explain the whole effect if it multiplied both the chance of "
            f"treatment and the risk of the outcome by {significant(self.estimate)}{interval}, "
            "beyond the measured covariates."
        )

    def methods_sentence(self) -> str:
        """Return sentences for the methods section of a paper."""
        return f"We computed the E-value (VanderWeele and Ding 2017). {self.sentence()}"

    def summary(self) -> str:
        """Return the sentence."""
        return self.sentence()

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence()

    def _repr_html_(self) -> str:
        return f"<p>{html.text(self.sentence())}</p>"


def e_value(
    effect: EffectEstimate | float,
    interval: tuple[float, float] | None = None,
    *,
    scale: str = "risk ratio",
    common: bool = False,
    standard_deviation: float | None = None,
) -> EValue:
    """Return the E-value of an effect (VanderWeele and Ding 2017, Ann. Intern. Med. 167(4)).

    With a risk ratio RR > 1 it is RR + √(RR (RR − 1)). An odds ratio or a hazard ratio of a common
    outcome, and a difference, are converted to a risk ratio first (their table 2).

    Raise `UnusableInput` for a ratio of 0 or less, or a difference without a standard deviation.

    Examples
    --------
    >>> from equipoise_matching import e_value
    >>> round(e_value(3.9).estimate, 2)
    7.26

    Parameters
    ----------
    effect, interval
        An effect of this package, or a number and its 95 % interval.
    scale
        Scale of a number: "risk ratio", "rate ratio", "odds ratio", "hazard ratio" or "difference".
    common
        Whether an outcome with an odds ratio or a hazard ratio occurs in more than 15 % of the
        rows.
    standard_deviation
        Standard deviation of the outcome, which a difference needs.
    """
    if isinstance(effect, EffectEstimate):
        scale, interval, effect = effect.scale, effect.interval, effect.estimate
    ends = () if interval is None else tuple(map(float, interval))
    values = (float(effect), *ends)
    if not all(math.isfinite(value) for value in values):
        raise UnusableInput(f"the effect is {values}", hint="give finite numbers")
    if scale in ("difference", "survival difference"):
        if standard_deviation is None or not standard_deviation > 0.0:
            raise UnusableInput(
                f"the E-value of a {scale} needs the standard deviation of the outcome",
                hint="give standard_deviation=, or estimate a risk ratio",
            )
        ratio = math.exp(0.91 * values[0] / standard_deviation)
        # 1.78 standard errors of d are the half width of the interval of the logarithm.
        error = (ends[1] - ends[0]) / (2.0 * 1.959963984540054) if ends else 0.0
        half_width = 1.78 * error / standard_deviation
        ratios = (ratio, *(ratio * math.exp(sign * half_width) for sign in (-1, 1) if ends))
    else:
        if not all(value > 0.0 for value in values):
            raise UnusableInput(f"the {scale} is {values}", hint="give ratios above 0")
        ratios = tuple(_risk_ratio(value, scale, common=common) for value in values)
    near_end = None
    if ends:
        low, high = ratios[1:]
        near_end = 1.0 if low <= 1.0 <= high else _e_value(low if low > 1.0 else high)
    return EValue(_e_value(ratios[0]), near_end, ratios[0])


def _risk_ratio(value: float, scale: str, *, common: bool) -> float:
    if scale in ("risk ratio", "rate ratio"):
        return value
    if scale == "odds ratio":
        return math.sqrt(value) if common else value
    if scale == "hazard ratio":
        if not common:
            return value
        halves = math.pow(0.5, math.sqrt(value)), math.pow(0.5, math.sqrt(1.0 / value))
        return (1.0 - halves[0]) / (1.0 - halves[1])
    raise UnusableInput(
        f"there is no scale {scale!r}",
        hint='give "risk ratio", "rate ratio", "odds ratio", "hazard ratio" or "difference"',
    )


def _e_value(ratio: float) -> float:
    ratio = max(ratio, 1.0 / ratio)
    return ratio + math.sqrt(ratio * (ratio - 1.0))
