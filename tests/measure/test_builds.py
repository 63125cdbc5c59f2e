"""A revision is built by a line for the shell; what fails is told with its mend."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from equipoise.measure.builds import build_revision
from equipoise.model.errors import ConditionFailed

Usage = namedtuple("Usage", "total used free")


def built(line: str, tree: Path) -> None:
    build_revision(line, tree, tree, os.environ, "the baseline")


def test_a_line_runs_in_the_folder_of_its_revision(tmp_path: Path) -> None:
    built('pwd > where; printf %s "$EQUIPOISE_BUILD" >> where', tmp_path)
    assert (tmp_path / "where").read_text() == f"{tmp_path}\n{tmp_path}"


def test_what_is_not_committed_is_the_usual_reason(tmp_path: Path) -> None:
    with pytest.raises(
        ConditionFailed, match="cannot be built: exit status 4: .*no such"
    ) as caught:
        built("echo no such file; exit 4", tmp_path)
    assert "not committed" in str(caught.value.mend)


def test_on_a_full_disk_that_is_what_is_to_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(10**9, 10**9, 4096))
    with pytest.raises(ConditionFailed) as caught:
        built("exit 1", tmp_path)
    assert caught.value.mend == (
        f"the disk of {tmp_path} is full: set TMPDIR to a folder of one with room"
    )
