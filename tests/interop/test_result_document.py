"""A result document that was written is read back; anything else is refused with its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.interop.result_document import read_result
from equipoise.model.errors import UnusableInput
from equipoise.report.json_document import encode
from tests.documents import document_of


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    document = document_of(blocks=8)
    file = tmp_path / "result.json"
    file.write_bytes(encode(document))
    found = read_result(file)
    assert found.run.id == document.run.id
    assert [one.name for one in found.conditions] == [one.name for one in document.conditions]
    assert len(found.trials) == len(document.trials)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no result document"),
        (b'{"schema": 3}', "no result document"),
        (b"\xff\xfe", "no result document"),
        (
            b'{"schema": "equipoise.result/9", "run": {"id": "a", "study": "os", "started": ""}, '
            b'"environment": {}, "conditions": [], "trials": []}',
            "equipoise.result/9",
        ),
    ],
)
def test_what_is_no_result_document_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(UnusableInput) as refused:
        read_result(file)
    assert "other.json" in refused.value.what and said in refused.value.what


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="no.json"):
        read_result(tmp_path / "no.json")
