"""The iterations of every trial of one condition."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from equipoise.figures.building import drawn_from, framed
from equipoise.figures.quantity import rounded, unit_of
from equipoise.figures.theme import color_of
from equipoise.stats.arrays import FloatArray

HOW_TO_READ = (
    "One line for each process, one point for each iteration. A warm-up falls to a level line; "
    "lines that step up and down have no steady state."
)
HEIGHT = 260
MOST_POINTS = 400
"""Of each line: longer series show the median of so many stretches."""
MOST_LINES = 10


def iterations(name: str, trials: Sequence[FloatArray]) -> alt.LayerChart:
    """Draw the series; each of shape (n,), in seconds."""
    divisor, unit = unit_of("iteration_s", float(np.median(trials[0])))
    stretch = max(1, -(-max(map(len, trials)) // MOST_POINTS))
    rows = [
        {
            "iteration": 1 + begin,
            "time": rounded(float(np.median(one[begin : begin + stretch])) / divisor),
            "trial": str(number),
        }
        for number, one in enumerate(trials[:MOST_LINES], 1)
        for begin in range(0, len(one), stretch)
    ]
    notes = [f"each point is the median of {stretch} iterations"] if stretch > 1 else []
    if len(trials) > MOST_LINES:
        notes.append(f"the first {MOST_LINES} of {len(trials)} trials are drawn")
    return framed(
        [
            drawn_from(rows)
            .mark_line(strokeWidth=1, opacity=0.7, color=color_of(0))
            .encode(
                x=alt.X("iteration:Q", title="iteration", scale=alt.Scale(nice=False)),
                y=alt.Y(
                    "time:Q",
                    title=f"time of an iteration, in {unit} (logarithmic scale)",
                    scale=alt.Scale(type="log", nice=False, padding=12),
                    axis=alt.Axis(format="~r", tickCount=6),
                ),
                detail="trial:N",
            )
        ],
        title=f"{name.replace('_', ' on ')}: {len(trials)} processes",
        notes=notes,
        description=f"Time of each iteration of {name} in each process.",
        height=HEIGHT,
    )
