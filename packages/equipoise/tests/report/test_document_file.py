"""A document from a file is one that a campaign could have written, or it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.report.json_document import encode, read_document
from packages.equipoise.tests.documents import document_of

Change = Callable[[dict[str, Any]], None]


def comparison(**values: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        document["comparisons"][0].update(values)

    return change


def without_modes(document: dict[str, Any]) -> None:
    document["conditions"][0]["metrics"]["wall_s"]["modes"] = []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (comparison(ratio_ci=[-1, 2]), "an interval -1.0 to 2.0"),
        (comparison(ratio_ci=[2, 1]), "an interval 2.0 to 1.0"),
        (comparison(mean_ratio_ci=[0, 0]), "an interval 0.0 to 0.0"),
        (comparison(ratio=-1), "a ratio below 0"),
        (comparison(min_effect=-100), "a smallest effect of -100 percent"),
        (comparison(alpha=0), "no alpha between 0 and 1"),
        (comparison(blocks=-1), "-1 blocks"),
        (without_modes, "has no mode"),
    ],
    ids=["below 0", "crossed", "empty", "ratio", "effect", "alpha", "blocks", "modes"],
)
def test_a_number_that_no_campaign_computes_is_named(
    change: Change, what: str, tmp_path: Path
) -> None:
    document = json.loads(encode(document_of()))
    change(document)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UnusableInput, match="has an impossible value") as refusal:
        read_document(path)
    assert what in refusal.value.what
    assert refusal.value.hint is not None


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    path.write_bytes(encode(document_of()))
    assert encode(read_document(path)) == path.read_bytes()


def test_a_document_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"schema": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(UnusableInput, match="nested too deeply"):
        read_document(path)
