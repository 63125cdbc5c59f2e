"""Charts of one program: a histogram of its times, and its times by its steps."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import numpy as np

from equipoise.figures.gallery import Figure
from equipoise.figures.quantity import rounded, unit_of
from equipoise.shared.chart_parts import chart_of, frame, layer, point
from equipoise.shared.theme import color_of
from equipoise.stats.arrays import FloatArray
from equipoise_studies.builtin.tratt2019.analysis import MIN_RUNS, PROGRAMS, STEPS, TIME
from equipoise_studies.study_data import StudyData

HOW_TO_READ_HISTOGRAM = (
    "The number of runs by their time. In a flat histogram every time in the range is equally "
    "likely; the dashed rule is the minimum, the solid rule the median."
)
HOW_TO_READ_STEPS = "One point for each run: its steps and its time."
BINS = 40
"""Number of bars of a histogram."""
MAX_POINTS = 2000
"""Maximum number of points in a chart, one for each run."""


def figures(data: StudyData) -> Iterator[Figure]:
    """Yield a histogram of each program, and its time by its steps."""
    for name, levels in PROGRAMS:
        values, steps = data.values(TIME, **levels), data.values(STEPS, **levels)
        if len(values) < MIN_RUNS:
            continue
        file = "_".join(levels.values())
        yield Figure(f"histogram_{file}", HOW_TO_READ_HISTOGRAM, histogram(name, values))
        if len(steps) == len(values) and np.ptp(steps) > 0:
            yield Figure(f"steps_{file}", HOW_TO_READ_STEPS, by_steps(name, steps, values))


def histogram(name: str, values: FloatArray) -> alt.LayerChart:
    """Draw a histogram of times; ``values`` of shape (n,), in seconds."""
    divisor, unit = unit_of("search_s", float(np.median(values)))
    scaled = values / divisor
    # Times above the upper end are cut: a few disturbed runs would stretch the range too far.
    high = float(np.quantile(scaled, 0.995))
    inside = scaled[scaled <= high]
    counts, edges = np.histogram(inside, bins=BINS, range=(float(scaled.min()), high))
    rows = [
        {"from": rounded(float(low)), "to": rounded(float(high)), "none": 0, "runs": int(count)}
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    beyond = len(scaled) - len(inside)
    # A bar with two ends in x needs two ends in y.
    bars = chart_of(rows).mark_bar(color=color_of(0))
    numbers = {"minimum": scaled.min(), "median": np.median(scaled)}
    rules = chart_of(
        [{"at": rounded(float(at)), "number": number} for number, at in numbers.items()]
    )
    dash = alt.StrokeDash(
        "number:N",
        scale=alt.Scale(domain=list(numbers), range=[[4, 4], [1, 0]]),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke"),
    )
    return frame(
        [
            bars.encode(
                x=alt.X(
                    "from:Q", title=f"time of the searches, in {unit}", scale=alt.Scale(zero=False)
                ),
                x2="to:Q",
                y=alt.Y("none:Q", title="runs", axis=alt.Axis(tickMinStep=1, format="d")),
                y2="runs:Q",
                tooltip=["runs:Q"],
            ),
            rules.mark_rule(strokeWidth=1.5).encode(x="at:Q", strokeDash=dash),
        ],
        title=f"{name}: {len(values):,} runs",
        notes=[f"{beyond} {'run' if beyond == 1 else 'runs'} beyond the right edge"]
        if beyond
        else [],
        description=f"Histogram of the search times of {name}.",
        height=260,
    )


def by_steps(name: str, steps: FloatArray, values: FloatArray) -> alt.LayerChart:
    """Draw seconds by steps; both arrays have shape (n,)."""
    divisor, unit = unit_of("search_s", float(np.median(values)))
    stride = max(1, -(-len(values) // MAX_POINTS))
    rows = [
        {"steps": rounded(float(count)), "time": rounded(float(time / divisor))}
        for count, time in zip(steps[::stride], values[::stride], strict=True)
    ]
    marks = point(size=12, opacity=0.5, color=color_of(0))
    x = alt.X("steps:Q", title="steps", axis=alt.Axis(format="~s"))
    y = alt.Y("time:Q", title=f"time of the searches, in {unit}")
    return frame(
        [layer(rows, marks, x=x, y=y)],
        title=f"{name}: time by steps",
        notes=[f"one run in {stride} is drawn"] if stride > 1 else [],
        description=f"Scatter plot of search time by number of steps of {name}.",
        height=260,
    )
