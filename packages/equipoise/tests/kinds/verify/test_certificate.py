"""The certificate of a speed-up: checked, replayed here and in a clone, and refused if changed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from equipoise.kinds.verify.analysis import intervals_overlap
from packages.equipoise.tests.kinds.verify.conftest import (
    FEW_BLOCKS,
    SLOW,
    Project,
    Verify,
    result_in,
)
from packages.equipoise.tests.repositories import MadeRepository

REPLAY = ("--allow-concurrent", "--json", "-")


@pytest.fixture
def certificate(verify: Verify, changed: Project, tmp_path: Path) -> tuple[MadeRepository, Path]:
    """A repository with a true speed-up, and its certificate."""
    made = changed(f"{SLOW}\necho right", "echo right")
    file = tmp_path / "certificate"
    words = ("--baseline", "old", *FEW_BLOCKS, "--certificate", str(file), "--", "./program")
    answer = verify(made, *words)
    assert answer.status == 0, answer
    return made, file


def test_it_replicates_in_the_same_repository_and_in_a_clone(
    certificate: tuple[MadeRepository, Path], verify: Verify, tmp_path: Path
) -> None:
    made, file = certificate
    made.git("clone", "--quiet", str(made.path), str(tmp_path / "clone"))
    for repository in (made, MadeRepository(tmp_path / "clone")):
        answer = verify(repository, "--replay", str(file), *REPLAY)
        assert answer.status == 0, answer
        replay = result_in(answer)["replay"]
        assert replay["replicates"] is True
        assert replay["earlier"]["different_builds"] == []
        assert "the certificate runs its command: ./program" in answer.err
        # A replay leaves nothing next to the file.
        assert sorted(tmp_path.glob("certificate*")) == [file]


def test_a_replay_has_another_seed(
    certificate: tuple[MadeRepository, Path], verify: Verify
) -> None:
    made, file = certificate
    with closing(sqlite3.connect(file, isolation_level=None)) as ledger:
        ((plan,),) = ledger.execute("SELECT plan FROM run")
    answer = verify(made, "--replay", str(file), *REPLAY)
    assert json.loads(answer.out)["run"]["seed"] != json.loads(plan)["seed"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE trial SET wall_s = wall_s / 2 WHERE condition = 1", "was changed"),
        ("UPDATE draw SET padding_bytes = padding_bytes + 1 WHERE block = 2", "was changed"),
        (
            "UPDATE run SET plan = replace(plan, '\"min_effect\":1.0', '\"min_effect\":2.0')",
            "was changed",
        ),
        ("UPDATE observation SET source = 'other'", "is not a certificate"),
    ],
)
def test_a_changed_certificate_is_refused(
    certificate: tuple[MadeRepository, Path], verify: Verify, change: str, problem: str
) -> None:
    made, file = certificate
    with closing(sqlite3.connect(file, isolation_level=None)) as ledger:
        # A ledger refuses updates; somebody who changes it puts the triggers back.
        query = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        triggers = ledger.execute(query).fetchall()
        for name, _ in triggers:
            ledger.execute(f"DROP TRIGGER {name}")
        assert ledger.execute(change).rowcount > 0
        for _, statement in triggers:
            ledger.execute(statement)
    answer = verify(made, "--replay", str(file), *REPLAY)
    assert answer.status == 2, answer
    assert problem in answer.err


def test_another_file_is_not_a_certificate(
    certificate: tuple[MadeRepository, Path], verify: Verify, tmp_path: Path
) -> None:
    made, _ = certificate
    ledger = made.path / ".equipoise" / "ledger.db"
    copy = tmp_path / "copy"
    shutil.copy(ledger, copy)
    words = ("--baseline", "old", *FEW_BLOCKS, "--", "./program")
    assert verify(made, *words).status == 0
    for file in (ledger, tmp_path / "absent"):
        assert verify(made, "--replay", str(file), *REPLAY).status == 2


def test_a_repository_without_the_commits_is_refused(
    certificate: tuple[MadeRepository, Path], verify: Verify, tmp_path: Path
) -> None:
    _, file = certificate
    other = MadeRepository(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "--quiet")
    other.write("file", "")
    other.commit()
    answer = verify(other, "--replay", str(file), *REPLAY)
    assert answer.status == 2
    assert "there is no such commit" in answer.err


def test_a_build_that_differs_is_said(
    verify: Verify, changed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = changed(f"{SLOW}\necho right", "echo right")
    file = tmp_path / "certificate"
    build = 'cp program built; echo ": $(date +%s%N)" >> built'
    words = ("--baseline", "old", "--build", build, *FEW_BLOCKS, "--certificate", str(file))
    assert verify(made, *words, "--", "./built").status == 0
    monkeypatch.setenv("EQUIPOISE_BUILDS", str(tmp_path / "builds-2"))
    answer = verify(made, "--replay", str(file), *REPLAY)
    assert answer.status == 0, answer
    replay = result_in(answer)["replay"]
    assert replay["earlier"]["different_builds"] == ["baseline built", "candidate built"]


def test_only_a_certified_speed_up_of_commits_gets_a_certificate(
    verify: Verify, changed: Project, tmp_path: Path
) -> None:
    made = changed("echo right", f"{SLOW}\necho right")
    file = tmp_path / "certificate"
    words = ("--baseline", "old", *FEW_BLOCKS, "--certificate", str(file), "--", "./program")
    assert verify(made, *words).status == 1
    assert not file.exists()
    made.write("program", "#!/bin/sh\necho other\n", executable=True)
    refused = verify(made, *words)
    assert refused.status == 2
    assert "uncommitted changes" in refused.err


def test_a_replay_takes_no_other_question(
    certificate: tuple[MadeRepository, Path], verify: Verify
) -> None:
    made, file = certificate
    answer = verify(made, "--replay", str(file), "--baseline", "old")
    assert answer.status == 2
    assert "--baseline" in answer.err


def test_intervals_overlap_if_they_have_a_common_point() -> None:
    assert intervals_overlap((0.5, 0.6), (0.6, 0.7))
    assert intervals_overlap((0.5, None), (0.9, 1.0))
    assert intervals_overlap((None, None), (0.9, 1.0))
    assert not intervals_overlap((0.5, 0.6), (0.7, 0.8))
    assert not intervals_overlap((0.7, 0.8), (0.5, 0.6))
