"""`equipoise gate --relink`: each block has programs that were linked anew."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.kinds.gate.terms import GatePlan
from equipoise.model.record import Draw
from equipoise.model.revisions import Relinking
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_analysis import decision_of, gate_of
from packages.equipoise.tests.linked_programs import linked_project, needs_lld, places_of
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import MadeRepository

PAGE_BYTES = 4096
BUILT = ("--build", "make -s", "--warmup", "0", "--json", "-")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program of each trial writes the places of its functions."""
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("EQUIPOISE_BUILDS", str(tmp_path / "builds"))
    return log


@pytest.fixture
def project(tmp_path: Path, scratch: Path, log: Path) -> MadeRepository:
    """Two revisions that differ in a word that they print."""
    return linked_project(tmp_path / "project", (("old", 0), ("new", 0)))


@pytest.fixture
def gate(project: MadeRepository, gate: Gate) -> Gate:
    """Run one gate in the repository."""
    return partial(gate, project)


@needs_lld
def test_each_block_has_functions_in_another_order(gate: Gate, log: Path) -> None:
    blocks = 8
    words = ("--baseline", "old", "--relink", "6", f"--blocks={blocks}", *BUILT)
    answer = gate(*words, "--", "./bench")
    assert answer.status in (0, 1), answer
    result = json.loads(answer.out)
    assert result["gate"]["relinking"]["min_links"] == 6
    assert "LLD" in result["gate"]["relinking"]["linker"]
    assert result["gate"]["relinking"]["files"] == [["bench"], ["bench"]]
    lines = log.read_text().splitlines()
    assert Counter(line.split()[0] for line in lines) == {"old": blocks, "new": blocks}
    # Four functions have 24 orders, so eight draws of one revision cannot all be alike.
    assert all(len(places_of(log, revision)) >= 4 for revision in ("old", "new"))


def test_a_forecast_of_the_time_counts_the_links(tmp_path: Path) -> None:
    link_s = 5.0
    stage = Stage(tmp_path / "ledger", medians=(0.010, 0.0102))

    def link(draw: Draw, position: int) -> None:
        stage.clock.seconds += link_s if position == 0 else 0.0

    stage.runner.before_trial = link
    plan = gate_of(blocks=8)
    assert isinstance(plan.terms, GatePlan)
    shortages = []
    for relinking in (None, Relinking("LLD", 6, (("bench",), ("bench",)))):
        stage.start(replace(plan, terms=replace(plan.terms, relinking=relinking)))
        gate = decision_of(stage)
        assert gate is not None
        assert gate.shortage is not None
        shortages.append(gate.shortage.block_s)
    assert shortages[0] < 0.1
    assert shortages[1] == pytest.approx(link_s + shortages[0], rel=0.01)


@needs_lld
def test_the_builds_are_as_before_and_are_used_again(gate: Gate, tmp_path: Path, log: Path) -> None:
    words = ("--baseline", "old", "--relink", "1", "--blocks=6", *BUILT, "--", "./bench")
    answers = []
    for _ in range(2):
        assert gate(*words).status in (0, 1)
        programs = sorted((tmp_path / "builds").glob("*/tree/project/bench"))
        assert len(programs) == 2
        log.unlink()
        for program in programs:
            finished([str(program)], check=True)
        answers.append((log.read_text(), [program.stat().st_ino for program in programs]))
        assert not list((tmp_path / "builds").glob("*/links/*-0"))
    assert answers[0] == answers[1]


@needs_lld
def test_both_revisions_of_a_block_have_one_layout(
    gate: Gate, project: MadeRepository, log: Path
) -> None:
    program = (project.path / "program.c").read_text()
    project.write(
        "program.c", program.replace("int second(", "int more(int x) { return -x; }\nint second(")
    )
    project.write(
        "fourth.c", "int another(int x) { return ~x; }\nint fourth(int x) { return x & 3; }\n"
    )
    project.commit()
    words = ("--baseline", "new", "--relink", "1", "--blocks=6", *BUILT)
    assert gate(*words, "--", "./bench").status in (0, 1)
    # A function that a commit adds moves others at most by whole pages.
    places = [
        [int(number) % PAGE_BYTES for number in line.split()[1:]]
        for line in log.read_text().splitlines()
    ]
    assert places[::2] == places[1::2]
    assert len(set(map(tuple, places))) >= 3


def test_without_a_build_it_is_refused(gate: Gate) -> None:
    answer = gate("--baseline", "old", "--relink", "6", "--", "./bench")
    assert answer.status == 2
    assert "--relink links the programs of a build again, but nothing is built" in answer.err


@needs_lld
def test_a_build_that_links_nothing_is_refused(gate: Gate) -> None:
    script = r"printf '#!/bin/sh\nexit 0\n' > bench && chmod +x bench"
    answer = gate("--baseline", "old", "--relink", "6", "--build", script, "--", "./bench")
    assert answer.status == 2
    assert "linked no program" in answer.err


def test_without_lld_it_is_refused_with_the_package(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "make", "cc", "env"):
        path = shutil.which(name)
        assert path is not None
        (programs / name).symlink_to(path)
    monkeypatch.setenv("PATH", os.fspath(programs))
    answer = gate("--baseline", "old", "--relink", "6", *BUILT, "--", "./bench")
    assert answer.status == 2
    assert "needs the linker lld" in answer.err
    assert "the package lld" in answer.err
