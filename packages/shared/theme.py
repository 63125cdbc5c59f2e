"""The look of charts: the palette, the shapes, and the light and the dark theme.

A chart uses styles (``reference``, ``negligible``, …) in place of colours, so that it works with
both themes.
"""

from __future__ import annotations

from typing import Any, Literal

Theme = Literal["light", "dark"]
PALETTE = ("#1f83c4", "#d55e00", "#b0508c", "#5aa02c", "#8f7420", "#75808f")
"""Colours after Okabe and Ito (2008), with a contrast of at least 3 to both backgrounds. The first
colours differ for every kind of colour blindness."""
SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")
"""Shapes of the conditions, so that colour is never the only difference."""
BACKGROUND: dict[Theme, str] = {"light": "#ffffff", "dark": "#14181d"}
"""Colour behind a chart."""
_TEXT: dict[Theme, str] = {"light": "#1b2026", "dark": "#e8ebee"}
_MUTED: dict[Theme, str] = {"light": "#5b6570", "dark": "#a3acb6"}
"""Colour of titles and labels of axes."""
_GRID: dict[Theme, str] = {"light": "#d0d5da", "dark": "#39434c"}
"""Colour of the lines behind a chart."""
_AXIS: dict[Theme, str] = {"light": "#818b95", "dark": "#707b86"}
"""Colour of lines and ticks of axes, with a contrast of at least 3 (WCAG 2.1, 1.4.11)."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
WIDTH = 720
"""Width of a chart in pixels."""


def color_of(index: int) -> str:
    """Return the colour of the condition at this position in the plan."""
    return PALETTE[index % len(PALETTE)]


LABEL_STRIP_PIXELS = 20
"""Height of the strip behind a name."""


def shape_of(index: int) -> str:
    """Return the shape of the condition at this position in the plan."""
    return SHAPES[index % len(SHAPES)]


def configuration(theme: Theme) -> dict[str, Any]:
    """Return the Vega-Lite configuration of one theme."""
    text, muted, grid, axis = _TEXT[theme], _MUTED[theme], _GRID[theme], _AXIS[theme]
    return {
        "background": BACKGROUND[theme],
        "font": FONT,
        "view": {"stroke": None},
        "title": {
            "color": text,
            "subtitleColor": muted,
            "anchor": "start",
            "fontSize": 15,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 10,
        },
        "axis": {
            "labelColor": muted,
            "titleColor": muted,
            "titleFontWeight": "normal",
            "titleFontSize": 12,
            "labelFontSize": 12,
            "gridColor": grid,
            "domainColor": axis,
            "tickColor": axis,
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "titlePadding": 8,
        },
        "legend": {"labelColor": text, "titleColor": muted, "labelFontSize": 12},
        "style": {
            "reference": {"color": muted, "strokeDash": [5, 3], "strokeWidth": 1.5},
            "negligible": {"color": muted, "fillOpacity": 0.13},
            "label": {"color": text, "fontSize": 13, "fontWeight": "bold"},
            # The background around the letters of a label.
            "label-ground": {
                "color": BACKGROUND[theme],
                "stroke": BACKGROUND[theme],
                "strokeWidth": 6,
                "strokeJoin": "round",
            },
            # The background of the strip with a name, which hides the lines of the chart.
            "label-strip": {"color": BACKGROUND[theme], "strokeWidth": LABEL_STRIP_PIXELS},
            "median": {"color": BACKGROUND[theme], "stroke": text, "strokeWidth": 2},
            "median-interval": {"color": text, "strokeWidth": 3},
        },
    }
