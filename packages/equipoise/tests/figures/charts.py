"""Reading a chart: the rows of its layers, and what it says of them."""

from __future__ import annotations

from typing import Any

import altair as alt

Rows = list[dict[str, Any]]


def tables(chart: alt.LayerChart, mark: str) -> list[Rows]:
    """The rows of every layer with this mark, but of the strips behind names."""
    whole = chart.to_dict()
    datasets = whole["datasets"]
    return [
        datasets[layer.get("data", whole.get("data"))["name"]]
        for layer in whole["layer"]
        if layer["mark"]["type"] == mark and layer["mark"].get("style") != "label-strip"
    ]


def notes(chart: alt.LayerChart) -> str:
    """Description of the chart's data."""
    return " ".join(chart.to_dict()["title"]["subtitle"])
