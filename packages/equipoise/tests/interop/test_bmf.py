"""Bencher Metric Format: names, measures, values and bounds."""

from __future__ import annotations

import json

import jsonschema
from msgspec.structs import replace

from equipoise.interop.series.bencher import to_metric_format
from packages.equipoise.tests.documents import HOSTILE, document_of

# As https://bencher.dev/docs/reference/bencher-metric-format has it.
SCHEMA = {
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "number"},
                        "lower_value": {"type": "number"},
                        "upper_value": {"type": "number"},
                    },
                    "required": ["value"],
                }
            },
        }
    },
}


def test_medians_and_their_intervals_are_measures() -> None:
    document = document_of("a", HOSTILE)
    written = json.loads(to_metric_format(document))
    jsonschema.validate(written, SCHEMA)
    assert list(written) == ["a", HOSTILE]
    wall = document.conditions[0].metrics["wall_s"]
    low, high = wall.median_ci
    assert written["a"]["wall_s"] == {
        "value": wall.median,
        "lower_value": low,
        "upper_value": high,
    }


def test_the_primary_time_is_latency_in_nanoseconds() -> None:
    document = document_of("a", "b")
    written = json.loads(to_metric_format(document))
    assert written["a"]["latency"]["value"] == document.conditions[0].metrics["wall_s"].median * 1e9


def test_unknown_values_are_left_out() -> None:
    document = document_of("a", "b")
    first = document.conditions[0]
    wall = replace(first.metrics["wall_s"], median_ci=(None, None))
    memory = replace(first.metrics["wall_s"], median=float("inf"))
    changed = replace(first, metrics={"wall_s": wall, "max_rss_bytes": memory})
    written = json.loads(to_metric_format(replace(document, conditions=(changed,))))
    assert written == {
        "a": {"latency": {"value": wall.median * 1e9}, "wall_s": {"value": wall.median}}
    }
