"""The scratch folder of a campaign and its lock, while the campaign runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.measure.leftovers import Clearance, clear_leftovers
from equipoise.measure.scratch import identity_of, is_identity, let_others_enter, scratch_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that contains scratch folders."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    yield temporary


def test_a_folder_is_removed_at_the_end_and_not_earlier(home: Path) -> None:
    with scratch_folder() as folder:
        (folder / "metrics.jsonl").touch()
        (folder / "folder").mkdir()
        assert clear_leftovers() == Clearance()
        assert (folder / "metrics.jsonl").exists()
    assert list(home.iterdir()) == []


def test_campaigns_of_a_user_share_one_private_folder_and_have_a_lock_each(home: Path) -> None:
    with scratch_folder() as first, scratch_folder() as second:
        (private,) = home.iterdir()
        assert private == home / f"equipoise-{os.geteuid()}"
        locks = [private / f"{folder.name}.lock" for folder in (first, second)]
        assert sorted(private.iterdir()) == sorted([first, second, *locks])
        modes = [path.stat().st_mode & 0o777 for path in (private, first, locks[0])]
        assert modes == [0o700, 0o700, 0o600]
        assert json.loads(locks[0].read_text())["host"] == os.uname().nodename
    assert list(home.iterdir()) == []


def test_the_identity_of_a_campaign_is_the_name_of_its_folder(home: Path) -> None:
    with scratch_folder() as folder:
        assert identity_of(folder) == folder.name
    assert is_identity(identity_of(home))
    assert identity_of(home) != identity_of(home)


def test_removing_a_folder_follows_no_link(home: Path) -> None:
    bystander = home.parent / "kept"
    bystander.mkdir()
    (bystander / "file").touch()
    with scratch_folder() as folder:
        (folder / "link").symlink_to(bystander)
    assert (bystander / "file").exists()
    assert list(home.iterdir()) == []


def test_a_folder_that_others_may_enter_can_still_not_be_listed_or_changed(home: Path) -> None:
    with scratch_folder() as folder:
        let_others_enter(folder)
        modes = [path.stat().st_mode & 0o777 for path in (folder.parent, folder)]
        assert modes == [0o711, 0o711]
        with scratch_folder() as other:
            assert other.parent == folder.parent
    assert list(home.iterdir()) == []


def is_open_to_others(private: Path) -> None:
    private.mkdir()
    private.chmod(0o777)


def belongs_to_another(private: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    private.mkdir(mode=0o700)
    os.chown(private, 54321, -1)


def is_a_link(private: Path) -> None:
    (private.parent.parent / "elsewhere").mkdir(mode=0o700)
    private.symlink_to(private.parent.parent / "elsewhere")


def is_a_file(private: Path) -> None:
    private.touch()


@pytest.mark.parametrize(
    "plant", [is_open_to_others, belongs_to_another, is_a_link, is_a_file], ids=lambda p: p.__name__
)
def test_a_campaign_has_another_folder_if_a_stranger_took_the_name(
    home: Path, plant: object
) -> None:
    private = home / f"equipoise-{os.geteuid()}"
    assert callable(plant)
    plant(private)
    planted = os.lstat(private)
    with scratch_folder() as folder:
        assert folder.parent != private
        assert folder.parent.parent == home
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        (leftover,) = clear_leftovers().leftovers
        assert leftover.path == str(private)
        assert "TMPDIR" in leftover.hint
        assert folder.is_dir()
    assert list(home.iterdir()) == [private]
    assert os.lstat(private).st_mtime_ns == planted.st_mtime_ns
    elsewhere = home.parent / "elsewhere"
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []
