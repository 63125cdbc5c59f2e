"""The estimate of an effect, and the estimates of several contrasts or subgroups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from equipoise_matching.matching.match import aligned
from equipoise_matching.report import UNKNOWN, TextTable
from equipoise_matching.shared import html
from equipoise_matching.shared.extras import Library, frame_of
from equipoise_matching.shared.numbers import joined, significant

if TYPE_CHECKING:
    import pandas
    import polars

RATIOS = frozenset({"risk ratio", "odds ratio", "rate ratio", "hazard ratio"})
"""Scales whose value without an effect is 1, and whose error is that of the logarithm."""
POPULATIONS = {"ATT": "the treated", "ATC": "the controls", "ATE": "all", "ATO": "the overlap"}
"""Whom an estimand averages over, in a sentence."""


class EffectEstimate(Struct, frozen=True, kw_only=True):
    """A contrast of two arms, with its standard error, interval and p-value.

    Examples
    --------
    >>> from equipoise_matching import aipw_effect
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(400, 2))
    >>> treat = (random.random(400) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    >>> effect = aipw_effect(X.sum(axis=1) + 2 * treat + random.normal(size=400), treat, X)
    >>> effect.interval[0] < 2 < effect.interval[1]
    True
    """

    estimate: float
    """Treated minus control, or the ratio of treated to control."""
    se: float
    """Standard error of the estimate; of its logarithm if the scale is a ratio."""
    interval: tuple[float, float]
    p_value: float
    """Two-sided p-value of no effect."""
    scale: str
    """``difference``, ``risk ratio`` or another name of ``Scale``."""
    estimand: str
    contrast: tuple[str, str]
    """The arm, and the arm that it is compared with."""
    arm_values: tuple[float, float] | None = None
    """Mean, risk or chance of survival under each arm of ``contrast``, in the target population."""
    confidence: float = 0.95
    """Chance with which an interval has the true effect."""
    degrees_of_freedom: float = math.inf
    """Degrees of freedom of Student's t, from which interval and p-value come."""
    method: str
    """How the estimate was computed."""
    error: str
    """How the standard error was computed."""
    design: str = ""
    """Name of the design."""
    rows: int
    """Number of rows of both arms."""
    clusters: int | None = None
    label: str = ""
    """Subgroup, if the effect is that of a subgroup."""
    adjusted_p_value: float | None = None
    """p-value under the false-discovery rate of several subgroups or contrasts."""
    notes: tuple[str, ...] = ()
    """Sentences that limit the estimate."""

    @property
    def is_ratio(self) -> bool:
        """Whether the scale is a ratio, so that 1 means no effect."""
        return self.scale in RATIOS

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values: the effect, its error and how both were computed."""
        facts = [("Subgroup", self.label)] if self.label else []
        facts += [
            (self.scale.capitalize(), f"{self.estimate:.5g}"),
            (f"{100 * self.confidence:.4g} % interval", self.interval_text()),
            ("Error of the logarithm" if self.is_ratio else "Standard error", f"{self.se:.5g}"),
            ("p-value", f"{self.p_value:.3g}"),
        ]
        if self.adjusted_p_value is not None:
            facts.append(("Adjusted p-value", f"{self.adjusted_p_value:.3g}"))
        if self.arm_values is not None:
            facts += [
                (f"Under {name}", f"{value:.5g}")
                for name, value in zip(self.contrast, self.arm_values, strict=True)
            ]
        size = f"{self.rows}"
        if self.clusters is not None:
            size = f"{size} in {self.clusters} clusters"
        return [
            *facts,
            ("Estimand", self.estimand),
            ("Design", self.design),
            ("Method", self.method),
            ("Error", self.error),
            ("Rows", size),
            *(("Note", note) for note in self.notes),
        ]

    def interval_text(self) -> str:
        """Return the interval as text."""
        return " to ".join(f"{end:.5g}" for end in self.interval)

    def summary(self) -> str:
        """Return the facts as text, one per line."""
        return aligned([fact for fact in self.facts() if fact[1]])

    def methods_sentence(self) -> str:
        """Return sentences for the methods section of a paper, with the result."""
        population = POPULATIONS.get(self.estimand, "the weighted sample")
        design = f" after {self.design}" if self.design else ""
        comparison = f"the {self.scale} of {self.contrast[0]} and {self.contrast[1]}"
        interval = " to ".join(significant(end) for end in self.interval)
        p_value = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return (
            f"We estimated {comparison}{design} by {self.method}, averaged over {population} "
            f"({self.estimand}). Standard errors are {self.error}. The {self.scale} is "
            f"{significant(self.estimate)} ({100 * self.confidence:.4g} % confidence interval "
            f"{interval}; {p_value})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, with the interval as two numbers."""
        low, high = self.interval
        names = [name for name in self.__struct_fields__ if name not in ("interval", "contrast")]
        fields = {name: getattr(self, name) for name in names}
        return {"arm": self.contrast[0], "reference": self.contrast[1]} | fields | {
            "low": low, "high": high
        }  # fmt: skip

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        return html.facts([fact for fact in self.facts() if fact[1]])


class EffectEstimates(Struct, frozen=True):
    """Several effects: of each pair of arms, or of each subgroup."""

    effects: tuple[EffectEstimate, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[EffectEstimate]:
        """Return the effects in order."""
        return iter(self.effects)

    def __len__(self) -> int:
        """Return the number of effects."""
        return len(self.effects)

    def __getitem__(self, index: int) -> EffectEstimate:
        """Return one effect."""
        return self.effects[index]

    def of(self, label: str) -> EffectEstimate:
        """Return the effect of a subgroup; raise `KeyError` for an unknown label."""
        by_label = {effect.label: effect for effect in self.effects}
        return by_label[label]

    def rows(self) -> list[dict[str, Any]]:
        """Return a mapping for each effect."""
        return [effect.to_dict() for effect in self.effects]

    def to_frame(self, library: Library = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """Return ``rows()`` as a data frame."""
        return frame_of([{**row, "notes": "; ".join(row["notes"])} for row in self.rows()], library)

    def table(self) -> TextTable:
        """Return the effects as a table, with a row for each."""
        has_label = any(effect.label for effect in self.effects)
        scale = self.effects[0].scale
        headings = (
            "subgroup" if has_label else "contrast", scale, "low", "high", "p", "adjusted p", "rows"
        )  # fmt: skip
        rows = tuple(
            (
                effect.label or " - ".join(effect.contrast),
                *(f"{value:.4g}" for value in (effect.estimate, *effect.interval)),
                f"{effect.p_value:.3g}",
                UNKNOWN if effect.adjusted_p_value is None else f"{effect.adjusted_p_value:.3g}",
                f"{effect.rows}",
            )
            for effect in self.effects
        )
        return TextTable(headings, rows, "Effects", self.notes)

    def summary(self) -> str:
        """Return the table as text, and the notes below it."""
        return "\n".join((self.table().to_text(), *self.notes))

    def methods_sentence(self) -> str:
        """Return sentences for the methods section of a paper."""
        first = self.effects[0]
        labels = joined([effect.label or " and ".join(effect.contrast) for effect in self.effects])
        return (
            f"We estimated the {first.scale} for {labels} by {first.method}. "
            f"Standard errors are {first.error}. {' '.join(self.notes)}"
        ).rstrip()

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<div>{self.table().to_html()}</div>"
