"""Effects from several imputed data sets, pooled by Rubin's rules.

With m estimates Q_l and squared errors U_l, the pooled estimate is the mean Q of the Q_l. Its
variance is T = U + (1 + 1/m) B, with the mean U of the U_l and the variance B of the Q_l (Rubin
1987, §3.1). The degrees of freedom are those of Barnard and Rubin (1999, Biometrika 86(4)), with
λ = (1 + 1/m) B/T and the degrees of freedom ν of complete data:

    1/(λ²/(m − 1) + 1/(ν_obs)),   ν_obs = (ν + 1)/(ν + 3) · ν (1 − λ).

Ratios are pooled as logarithms. Each data set has its own design: the designs are pooled after the
effect, not before it (Leyrat et al. 2019, Statistical Methods in Medical Research 28(1)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.result import EffectEstimate
from equipoise_matching.effects.variance import ErrorEstimate, with_interval
from equipoise_matching.matching.match import aligned
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput

T = TypeVar("T")


class PooledEffect(Struct, frozen=True):
    """The effect over several imputed data sets.

    Examples
    --------
    >>> from equipoise_matching import effect_of_imputations
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> x = random.normal(size=200)
    >>> treat = (x + random.normal(size=200) > 0).astype(int)
    >>> y = x + treat + random.normal(size=200)
    >>> from equipoise_matching import aipw_effect
    >>> data_sets = [x + random.normal(size=200) * 0.1 for _ in range(5)]
    >>> pooled = effect_of_imputations(data_sets, lambda x: aipw_effect(y, treat, x))
    >>> len(pooled.effects), 0 <= pooled.missing_information < 0.2
    (5, True)
    """

    effect: EffectEstimate
    """The pooled effect."""
    effects: tuple[EffectEstimate, ...]
    """The effect of each data set."""
    within: float
    """Mean squared error U of the data sets; of logarithms if the scale is a ratio."""
    between: float
    """Variance B between the data sets."""
    missing_information: float
    """Share λ of the variance that comes from the missing values."""

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values: the pooled effect and the share of missing information."""
        return [
            *(fact for fact in self.effect.facts() if fact[1]),
            ("Imputations", f"{len(self.effects)}"),
            ("Variance from missing values", f"{100.0 * self.missing_information:.3g} %"),
        ]

    def methods_sentence(self) -> str:
        """Return sentences for the methods section of a paper."""
        return (
            f"{self.effect.methods_sentence()} The estimates of {len(self.effects)} imputed data "
            "sets were pooled by Rubin's rules, with the degrees of freedom of Barnard and Rubin "
            "(1999)."
        )

    def summary(self) -> str:
        """Return the facts as text, one per line."""
        return aligned(self.facts())

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        return html.facts(self.facts())


def effect_of_imputations(
    data_sets: Iterable[T], estimate: Callable[[T], EffectEstimate]
) -> PooledEffect:
    """Estimate the effect in each imputed data set, and pool the effects by Rubin's rules.

    Raise `UnusableInput` if there are fewer than two data sets, or the effects are of different
    kinds. An error of one data set names its number, from 0.

    Examples
    --------
    >>> from equipoise_matching import aipw_effect, effect_of_imputations
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> x = random.normal(size=300)
    >>> treat = (x + random.normal(size=300) > 0).astype(int)
    >>> y = x + 2 * treat + random.normal(size=300)
    >>> is_missing = random.random(300) < 0.2
    >>> data_sets = [np.where(is_missing, random.normal(size=300), x) for _ in range(5)]
    >>> pooled = effect_of_imputations(data_sets, lambda x: aipw_effect(y, treat, x))
    >>> pooled.effect.degrees_of_freedom < 300
    True

    Real imputations come from a model with y and treat, such as IterativeImputer of scikit-learn.

    Parameters
    ----------
    data_sets
        Frames, arrays or designs, one for each imputation.
    estimate
        Function of a data set that returns its effect: it makes the design, and estimates.
    """
    effects = []
    for index, data_set in enumerate(data_sets):
        try:
            effects.append(estimate(data_set))
        except UnusableInput as error:
            raise UnusableInput(f"data set {index}: {error.what}", hint=error.hint) from error
    return pool_effects(effects)


def pool_effects(effects: Sequence[EffectEstimate]) -> PooledEffect:
    """Pool the effects of imputed data sets by Rubin's rules.

    Raise `UnusableInput` if there are fewer than two effects, or they differ in scale, estimand,
    contrast or confidence.

    Examples
    --------
    >>> from equipoise_matching import aipw_effect, pool_effects
    >>> import numpy as np
    >>> random = np.random.default_rng(4)
    >>> X = random.normal(size=(2, 200))
    >>> treat, noise = random.integers(0, 2, 200), random.normal(size=200)
    >>> pooled = pool_effects([aipw_effect(treat + noise, treat, x) for x in X])
    >>> pooled.effect.estimate == sum(effect.estimate for effect in pooled.effects) / 2
    True
    """
    if len(effects) < 2:
        raise UnusableInput(
            f"there are {len(effects)} data sets, but pooling needs at least 2",
            hint="impute several times, such as 20",
        )
    first = effects[0]
    for name in ("scale", "estimand", "contrast", "confidence"):
        kinds = {getattr(effect, name) for effect in effects}
        if len(kinds) > 1:
            raise UnusableInput(
                f"the effects differ in their {name}: {sorted(map(str, kinds))}",
                hint="estimate the same effect in each data set",
            )
    values = np.array([effect.estimate for effect in effects])
    if first.is_ratio:
        values = np.log(values)
    count = len(effects)
    within = float(np.mean([effect.se**2 for effect in effects]))
    between = float(values.var(ddof=1))
    total = within + (1.0 + 1.0 / count) * between
    share = (1.0 + 1.0 / count) * between / total if total > 0.0 else 0.0
    complete = min(effect.degrees_of_freedom for effect in effects)
    error = ErrorEstimate(
        math.sqrt(total),
        barnard_rubin_degrees_of_freedom(share, count, complete),
        f"{first.error}, pooled over {count} imputed data sets",
    )
    arm_values = None
    values_of_arms = [effect.arm_values for effect in effects if effect.arm_values is not None]
    if len(values_of_arms) == count:
        means = np.mean(values_of_arms, axis=0)
        arm_values = (float(means[0]), float(means[1]))
    fields: dict[str, Any] = {
        "estimand": first.estimand,
        "contrast": first.contrast,
        "arm_values": arm_values,
        "method": first.method,
        "design": first.design,
        "rows": min(effect.rows for effect in effects),
        "clusters": None,
        "label": first.label,
        "notes": tuple(dict.fromkeys(note for effect in effects for note in effect.notes)),
    }
    scale: Any = first.scale
    pooled = with_interval(float(values.mean()), error, scale, first.confidence, **fields)
    return PooledEffect(pooled, tuple(effects), within, between, share)


def barnard_rubin_degrees_of_freedom(share: float, count: int, complete: float) -> float:
    """Return the degrees of freedom of a pooled estimate (Barnard and Rubin 1999).

    ``share`` is λ, ``count`` the number m of data sets, and ``complete`` the degrees of freedom of
    complete data.
    """
    inverse = share**2 / (count - 1)
    if math.isfinite(complete) and share < 1.0:
        observed = (complete + 1.0) / (complete + 3.0) * complete * (1.0 - share)
        inverse += 1.0 / observed
    return 1.0 / inverse if inverse > 0.0 else math.inf
