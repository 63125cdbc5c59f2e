"""Cost by size over the law that it follows: what is left is flat, and small differences show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from equipoise.figures.building import Rows, drawn_from, framed
from equipoise.figures.by_size import lines_by_size
from equipoise.figures.quantity import metric_name, rounded
from equipoise.figures.size_values import measured_sizes, other_levels, scaling_laws
from equipoise.figures.ticks import log_ticks
from equipoise.figures.trial_values import primary_metric
from equipoise.model.result import ResultDocument
from equipoise.stats.scaling import SIMPLE_EXPONENTS, ScalingLaw, law_words

HOW_TO_READ = (
    "Each cost is divided by the same law of the size and by the first line's cost at its "
    "smallest size: a level line grows as that law does, a rising one faster, and one that stands "
    "at 2 costs twice as much as the first did. Bars are the medians' intervals."
)
HEIGHT = 260
_LOGARITHMIC_FROM = 4.0


def size_normalised(
    document: ResultDocument, factor: str, metric: str | None = None
) -> alt.LayerChart | None:
    """Draw each condition's median over a simple law of one factor.

    The law is the one nearest to the first line's fitted exponent, among those that fit every
    size where there are some. ``None`` where no line has a law.
    """
    metric = metric or primary_metric(document)
    laws = scaling_laws(document, factor, metric)
    if not laws:
        return None
    exponent, log_power = _nearest(next(iter(laws.values())))
    measured = [one for one in measured_sizes(document, factor, metric) if one[0] > 1]

    def law(size: float) -> float:
        return float(size**exponent * math.log(size) ** log_power)

    first = other_levels(measured[0][1], factor)
    size, _, summary = min(
        (one for one in measured if other_levels(one[1], factor) == first), key=lambda one: one[0]
    )
    unit = summary.median / law(size)
    rows: Rows = []
    for size, condition, summary in measured:
        low, high = (summary.median if end is None else end for end in summary.median_ci)
        over = unit * law(size)
        rows.append(
            {
                "size": size,
                "value": rounded(summary.median / over),
                "low": rounded(low / over),
                "high": rounded(high / over),
                "condition": other_levels(condition, factor),
            }
        )
    words = law_words(exponent, log_power)
    name = metric_name(metric)
    subject = name if words == "constant" else f"{name} over {words.replace('N', factor)}"
    scale, axis = _upright(
        [float(row[end]) for row in rows for end in ("low", "high") if row[end] > 0]
    )
    y_title = f"{subject}, the first is 1"
    level = drawn_from([{"value": 1.0}]).mark_rule(style="reference", aria=False)
    return framed(
        [
            level.encode(y=alt.Y("value:Q", title=y_title, scale=scale, axis=axis)),
            *lines_by_size(rows, factor, y_title, scale, axis),
        ],
        title=f"{name.capitalize()} by {factor}, normalised",
        notes=[],
        description=f"Median {subject}, by {factor}, with intervals.",
        height=HEIGHT,
    )


def _upright(bounds: Sequence[float]) -> tuple[alt.Scale, alt.Axis]:
    """Logarithmic where the values lie far apart."""
    if max(bounds) <= _LOGARITHMIC_FROM * min(bounds):
        return alt.Scale(zero=False, nice=False, padding=12), alt.Axis(format="~r")
    ticks = log_ticks(0.95 * min(bounds), 1.05 * max(bounds))
    return alt.Scale(type="log", nice=False, padding=12), alt.Axis(values=ticks, format="~r")


def _nearest(law: ScalingLaw) -> tuple[float, int]:
    """The simple law nearest to the fitted one."""
    powers = {one.log_power: one.power for one in law.exponents}
    among = law.simple or tuple((exponent, 0) for exponent in SIMPLE_EXPONENTS)
    return min(among, key=lambda one: abs(one[0] - powers[one[1]]))
