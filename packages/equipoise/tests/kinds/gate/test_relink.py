"""`equipoise gate --relink`: each block has programs that were linked anew."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import MadeRepository, repository

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
int first(int x) { return 3 * x + 1; }
int second(int x) { return x ^ 5; }
int third(int x) { return x - 7; }
int fourth(int x);
int main(void) {
    FILE *log = fopen(getenv("LOG"), "a");
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += first(i) + second(i) + third(i) + fourth(i);
    fprintf(log, "%s %ld %ld %ld\\n", REVISION, (long)((char *)second - (char *)first),
            (long)((char *)third - (char *)first), (long)((char *)fourth - (char *)first));
    return fclose(log);
}
"""
MAKEFILE = """\
CFLAGS = -O1 -fno-inline
bench: program.o fourth.o
\t$(CC) -o bench program.o fourth.o
"""
needs_lld = pytest.mark.skipif(
    shutil.which("ld.lld") is None and shutil.which("rustc") is None,
    reason="misses ld.lld (package lld)",
)
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
    """A C program of two files; the later revision differs in a word that it prints."""
    project = repository(tmp_path / "project")
    project.write("Makefile", MAKEFILE)
    project.write("fourth.c", "int fourth(int x) { return x & 3; }\n")
    for revision in ("old", "new"):
        project.write("program.c", f'#define REVISION "{revision}"\n{PROGRAM}')
        project.commit()
        project.git("tag", revision)
    return project


@pytest.fixture
def gate(project: MadeRepository, gate: Gate) -> Gate:
    """Run one gate in the repository."""
    return partial(gate, project)


@needs_lld
def test_each_block_has_functions_in_another_order(gate: Gate, log: Path) -> None:
    blocks = 8
    answer = gate(
        "--baseline", "old", "--relink", "6", f"--blocks={blocks}", *BUILT, "--", "./bench"
    )
    assert answer.status in (0, 1), answer
    result = json.loads(answer.out)
    assert result["gate"]["relinking"]["min_links"] == 6
    assert "LLD" in result["gate"]["relinking"]["linker"]
    assert result["gate"]["relinking"]["files"] == [["bench"], ["bench"]]
    lines = log.read_text().splitlines()
    assert Counter(line.split()[0] for line in lines) == {"old": blocks, "new": blocks}
    # Four functions have 24 orders, so eight draws of one revision cannot all be alike.
    for revision in ("old", "new"):
        places = {line for line in lines if line.startswith(revision)}
        assert len(places) >= 4


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
def test_a_revision_against_itself_has_two_links_in_each_block(gate: Gate, log: Path) -> None:
    words = ("--baseline", "new", "--candidate", "new", "--relink", "1", "--blocks=6", *BUILT)
    assert gate(*words, "--", "./bench").status in (0, 1)
    lines = log.read_text().splitlines()
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    assert len(pairs) == 6
    assert sum(one != other for one, other in pairs) >= 3


def test_without_a_build_it_is_refused(gate: Gate) -> None:
    answer = gate("--baseline", "old", "--relink", "6", "--", "./bench")
    assert answer.status == 2
    assert (
        "--relink links the programs of a build again, but this gate builds nothing" in answer.err
    )


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
