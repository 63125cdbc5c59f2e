"""Builds of programs: of levels, of revisions, and in several layouts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from equipoise.measure.abandoned import BUILD_VARIABLE
from equipoise.measure.builds import build_levels, build_revision
from equipoise.model.errors import ConditionFailed, UnusableInput
from packages.equipoise.tests.measure.processes import is_running
from packages.equipoise.tests.payloads import LONG, PAYLOADS

Usage = namedtuple("Usage", "total used free")


def build(line: str, tree: Path) -> None:
    build_revision(line, tree, tree, os.environ, "the baseline")


def test_a_line_runs_in_the_folder_of_its_revision(tmp_path: Path) -> None:
    build('pwd > where; printf %s "$EQUIPOISE_BUILD" >> where', tmp_path)
    assert (tmp_path / "where").read_text() == f"{tmp_path}\n{tmp_path}"


def test_uncommitted_files_are_named_as_the_usual_reason(tmp_path: Path) -> None:
    with pytest.raises(
        ConditionFailed, match="cannot be built: exit status 4 of .*no such"
    ) as caught:
        build("echo no such file; exit 4", tmp_path)
    assert "not committed" in str(caught.value.hint)


def test_on_a_full_disk_the_hint_is_to_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(10**9, 10**9, 4096))
    with pytest.raises(ConditionFailed) as caught:
        build("exit 1", tmp_path)
    assert caught.value.hint == (
        f"the disk of {tmp_path} is full: set EQUIPOISE_BUILDS to a folder on another disk"
    )


BACKGROUND = (
    "sleep 1000 & echo $! >> pids; "
    "setsid sleep 1001 & echo $! >> pids; "
    "(setsid sh -c 'sleep 1002 & echo $! >> pids' &); "
    "while [ $(wc -l < pids) -lt 3 ]; do sleep 0.01; done; "
)
"""Starts three processes: in its group, in another session, and without a parent."""


def background_of(tree: Path) -> list[int]:
    pids = [int(line) for line in (tree / "pids").read_text().split()]
    assert len(pids) == 3
    return pids


def test_background_processes_of_a_failed_build_end_with_it(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match="exit status 4"):
        build(BACKGROUND + "exit 4", tmp_path)
    assert not any(map(is_running, background_of(tmp_path)))


def test_a_failed_build_of_another_folder_is_not_taken_for_this_one(tmp_path: Path) -> None:
    other = {**os.environ, BUILD_VARIABLE: str(tmp_path / "other")}
    with subprocess.Popen(["sleep", "1003"], env=other, cwd=tmp_path) as bystander:
        with pytest.raises(ConditionFailed):
            build("exit 4", tmp_path)
        survived = bystander.poll() is None
        bystander.kill()
    assert survived


def test_background_processes_of_a_successful_build_continue(tmp_path: Path) -> None:
    build(BACKGROUND + "exit 0", tmp_path)
    pids = background_of(tmp_path)
    went_on = [is_running(pid) for pid in pids]
    for pid in filter(is_running, pids):
        os.kill(pid, signal.SIGKILL)
    assert went_on == [True, True, True]


def test_a_failed_build_of_a_level_does_not_wait_for_its_background_processes(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConditionFailed, match="much cannot be built: exit status 5"):
        build_levels(
            {"much": BACKGROUND + "exit 5"}, tmp_path / "builds", os.environ, str(tmp_path)
        )
    assert not any(map(is_running, background_of(tmp_path)))


ENVIRONMENT = {"PATH": os.environ["PATH"]}
AS_A_FOLDER = [name for name in PAYLOADS if "/" not in name and name not in (".", "..")]


def test_a_folder_that_a_shell_would_obey_is_in_no_line(tmp_path: Path) -> None:
    tried = 0
    for name in AS_A_FOLDER:
        home = tmp_path / name
        try:
            builds = build_levels({"a": ": {build}"}, home, ENVIRONMENT, str(tmp_path))
        except UnusableInput as refusal:
            assert "{build} stands for" in refusal.what
            assert "$EQUIPOISE_BUILD" in (refusal.hint or "")
            tried += 1
        else:
            assert builds["a"].startswith(f"{home}/")
    assert tried > len(AS_A_FOLDER) / 2
    assert not list(tmp_path.rglob("made"))


def test_in_such_a_folder_the_variable_still_names_it(tmp_path: Path) -> None:
    home = tmp_path / "$(touch made)"
    line = 'touch "$EQUIPOISE_BUILD/program"'
    builds = build_levels({"a": line}, home, ENVIRONMENT, str(tmp_path))
    assert (Path(builds["a"]) / "program").is_file()
    assert not list(tmp_path.rglob("made"))


@pytest.mark.parametrize("level", ["../../a b", LONG, "größer" * 60, "-n", "\x1b[31m"])
def test_any_name_of_a_level_has_its_own_folder(level: str, tmp_path: Path) -> None:
    builds = build_levels({level: "true"}, tmp_path, ENVIRONMENT, str(tmp_path))
    assert Path(builds[level]).parent == tmp_path
