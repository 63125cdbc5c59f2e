"""Clusters that Equipoise starts keep their files where no other user can put any."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.cluster.address import LocalWorkers
from equipoise.cluster.connection import ClusterAccess, cluster_client
from equipoise.cluster.worker import DASK_FOLDER
from equipoise.files.state import private_folder
from equipoise.model.errors import UnusableInput

pytest.importorskip("distributed")

STRANGER = 65_534


def import_path() -> list[str]:
    """Return the folders from which a process imports modules."""
    return sys.path


def folder_of(dask_worker: Any) -> str:
    """Return the folder in which a worker keeps its files."""
    return str(dask_worker.local_directory)


def folder_of_scheduler(dask_scheduler: Any) -> str:
    """Return the folder in which a scheduler keeps its files."""
    return str(dask_scheduler.local_directory)


def writable_by_others(folder: str) -> bool:
    """Return whether another user could put a file into a folder or make the folder."""
    path = Path(folder).absolute()
    while not path.exists():
        path = path.parent
    status = path.stat()
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) or status.st_uid not in (
        0,
        os.geteuid(),
    )


def test_a_local_cluster_imports_from_no_folder_that_another_user_can_write() -> None:
    with cluster_client(ClusterAccess(LocalWorkers("local:1", 1))) as client:
        scheduler_runs: Callable[..., Any] = client.run_on_scheduler
        paths = [sys.path, scheduler_runs(import_path), *client.run(import_path).values()]
        folders = [scheduler_runs(folder_of_scheduler), *client.run(folder_of).values()]
    private = str(private_folder(DASK_FOLDER))
    assert len(folders) == 2
    assert all(folder.startswith(private + os.sep) for folder in folders)
    assert [folder for path in paths for folder in path if writable_by_others(folder)] == []


def planted() -> bool:
    """Return whether a module of another user can be imported."""
    return importlib.util.find_spec("planted_by_another_user") is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_planted_files_are_not_imported_and_planted_links_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    own.write_text("precious")
    shared.mkdir()
    shared.chmod(0o1777)
    # Where Dask would keep its files by itself.
    folder = shared / "dask-scratch-space"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "planted_by_another_user.py").touch()
    for lock in ("global.lock", "purge.lock"):
        (folder / lock).symlink_to(own)
    for path in (folder, *folder.iterdir()):
        os.chown(path, STRANGER, -1, follow_symlinks=False)
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with cluster_client(ClusterAccess(LocalWorkers("local:1", 1))) as client:
        scheduler_runs: Callable[..., Any] = client.run_on_scheduler
        found = [planted(), scheduler_runs(planted), *client.run(planted).values()]
    assert found == [False, False, False]
    assert own.read_text() == "precious"


def test_the_private_folder_is_refused_where_others_can_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = private_folder(DASK_FOLDER)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    with pytest.raises(UnusableInput, match="other users could change or read it"):
        private_folder(DASK_FOLDER)


def test_a_link_in_the_place_of_the_private_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "equipoise").mkdir(mode=0o700)
    (tmp_path / "equipoise" / DASK_FOLDER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnusableInput, match="private folder"):
        private_folder(DASK_FOLDER)
