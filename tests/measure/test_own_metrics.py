"""What a workload reports itself is read line by line, and what cannot be read is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.measure.own_metrics import read
from equipoise.model.trial import Sample
from tests.payloads import LONG, PAYLOADS


def written(folder: Path, text: str) -> Path:
    file = folder / "metrics.jsonl"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_workload_that_reports_nothing_has_no_samples(tmp_path: Path) -> None:
    assert read(tmp_path / "absent.jsonl").samples == ()
    assert read(tmp_path / "absent.jsonl").problem is None


def test_trial_and_iteration_values_are_read_with_their_units(tmp_path: Path) -> None:
    own = read(
        written(
            tmp_path,
            '{"metric": "latency_s", "value": 0.5}\n\n'
            '{"metric": "rate", "value": 3, "iteration": 7, "unit": "1/s", "better": "higher"}\n',
        )
    )
    assert own.problem is None
    assert own.samples == (
        Sample("latency_s", 0.5),
        Sample("rate", 3.0, 7, "1/s", "higher"),
    )


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    own = read(written(tmp_path, '{"metric": "a", "value": 1}\nnonsense\n{"metric": "b", "va'))
    assert own.samples == (Sample("a", 1.0),)
    assert own.problem is not None
    assert own.problem.startswith("line 2 of its metrics cannot be read")


def test_a_value_that_is_no_number_is_named(tmp_path: Path) -> None:
    own = read(written(tmp_path, '{"metric": "a", "value": "fast"}\n'))
    assert own.samples == ()
    assert own.problem is not None


def test_a_value_that_is_not_finite_is_named(tmp_path: Path) -> None:
    own = read(written(tmp_path, '{"metric": "a", "value": 1e999}\n'))
    assert own.samples == ()
    assert own.problem is not None


@pytest.mark.parametrize("metric", ["wall_s", "max_rss_bytes"])
def test_what_is_measured_cannot_be_reported_instead(metric: str, tmp_path: Path) -> None:
    lines = f'{{"metric": "{metric}", "value": 9}}\n{{"metric": "b", "value": 1}}\n'
    own = read(written(tmp_path, lines))
    assert own.samples == (Sample("b", 1.0),)
    assert (
        own.problem == f"line 1 of its metrics is named {metric}, which Equipoise measures itself"
    )


def test_any_other_name_is_kept_as_it_is(tmp_path: Path) -> None:
    names = [*(name for name in PAYLOADS if "\udcff" not in name), LONG, "a\0b", ""]
    lines = "".join(json.dumps({"metric": one, "value": 1, "unit": one}) + "\n" for one in names)
    own = read(written(tmp_path, lines))
    assert own.problem is None
    assert [(one.metric, one.unit) for one in own.samples] == [(one, one) for one in names]
