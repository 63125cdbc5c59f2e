"""Folders of the user in the temporary folder survive a campaign and `doctor`, and are named."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder


def test_folders_that_look_like_ours_survive_a_campaign_and_doctor(
    equipoise: Equipoise, temporary: Path
) -> None:
    notes, probe = temporary / "equipoise-notes", temporary / "equipoise-probe-mine"
    for folder in (notes, probe):
        folder.mkdir()
        (folder / "owner").write_text("me")
    with subprocess.Popen(["sleep", "300"], cwd=notes) as works:
        try:
            answer = equipoise("compare", "true", "true", "--blocks", "1", "--warmup", "0")
            assert answer.status == 0, answer.err
            assert equipoise("doctor").status == 0
            assert works.poll() is None
        finally:
            works.kill()
    assert (notes / "owner").read_text() == (probe / "owner").read_text() == "me"
    assert sorted(temporary.iterdir()) == [notes, probe]


def test_the_folder_of_a_probe_that_cannot_be_proven_to_be_ours_is_named_by_doctor(
    equipoise: Equipoise, temporary: Path
) -> None:
    probe = temporary / "equipoise-probe-aB3dE6"
    probe.mkdir()
    answer = equipoise("doctor", "--quiet")
    assert f"equipoise: left alone: {probe}: " in answer.err
    assert "remove it yourself if nothing in it is yours" in answer.err
    assert probe.is_dir()


def test_a_campaign_names_in_one_line_a_private_folder_that_it_cannot_use(
    equipoise: Equipoise, temporary: Path
) -> None:
    private = temporary / f"equipoise-{os.geteuid()}"
    private.mkdir()
    os.chmod(private, 0o777)
    answer = equipoise("compare", "true", "true", "--blocks", "1", "--warmup", "0")
    assert answer.status == 0, answer.err
    (line,) = [line for line in answer.err.splitlines() if str(private) in line]
    assert line == (
        f"equipoise: left alone: {private}: other users own it or can write to it; "
        "see `equipoise doctor`"
    )
    assert list(temporary.iterdir()) == [private]
    assert list(private.iterdir()) == []
