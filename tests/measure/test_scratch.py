"""The scratch folder of a campaign: its record and its marker, while it is there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.measure.leftovers import Clearance, clear_leftovers
from equipoise.measure.scratch import MARKER, identity_in, scratch_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where scratch folders are made."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield temporary


def records(home: Path) -> list[Path]:
    return sorted((home.parent / "state" / "equipoise" / "scratch").iterdir())


def test_a_folder_is_removed_at_the_end_and_nobody_clears_it_before(home: Path) -> None:
    with scratch_folder() as folder:
        (folder / "metrics.jsonl").touch()
        (folder / "folder").mkdir()
        assert clear_leftovers() == Clearance()
        assert (folder / "metrics.jsonl").exists()
    assert list(home.iterdir()) == []
    assert records(home) == []


def test_a_folder_has_one_identity_in_its_marker_and_in_a_record_of_the_user(home: Path) -> None:
    with scratch_folder() as folder:
        (record,) = records(home)
        recorded, located = map(json.loads, record.read_text().splitlines())
        assert (folder / MARKER).read_text() == recorded["identity"] == identity_in(folder)
        assert len(bytes.fromhex(recorded["identity"])) == 16
        assert recorded["path"] == str(folder)
        status = folder.stat()
        assert located == {"device": status.st_dev, "inode": status.st_ino}
        modes = [path.stat().st_mode & 0o777 for path in (folder, record, record.parent)]
        assert modes == [0o700, 0o600, 0o700]


def test_removing_a_folder_follows_no_link(home: Path) -> None:
    bystander = home.parent / "kept"
    bystander.mkdir()
    (bystander / "file").touch()
    with scratch_folder() as folder:
        (folder / "link").symlink_to(bystander)
    assert (bystander / "file").exists()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_state_folder_that_others_can_open_is_not_used_and_named(home: Path, mode: int) -> None:
    with scratch_folder():
        pass
    state = home.parent / "state" / "equipoise" / "scratch"
    state.chmod(mode)
    with scratch_folder() as folder:
        assert records(home) == []
        (leftover,) = clear_leftovers().leftovers
        assert (leftover.path, leftover.reason) == (
            str(state),
            "other users could change or read it",
        )
    assert not os.path.lexists(folder)


def test_a_state_folder_behind_a_link_is_not_used_and_named(home: Path) -> None:
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (home.parent / "state").mkdir()
    (home.parent / "state" / "equipoise").symlink_to(elsewhere)
    with scratch_folder():
        (leftover,) = clear_leftovers().leftovers
        assert leftover.path == f"{home.parent}/state/equipoise"
    assert list(elsewhere.iterdir()) == []
