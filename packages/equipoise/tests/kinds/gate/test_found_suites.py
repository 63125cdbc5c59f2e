"""`equipoise gate` without a command: the suite of the folder, against the default branch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.repositories import MadeRepository, repository

CARGO = """#!/bin/sh
test "$2" = --no-run && exit 0
printf 'test sum ... bench:  %s ns/iter (+/- 1)\\n' "$(cat nanoseconds)"
"""


@pytest.fixture
def project(tmp_path: Path) -> MadeRepository:
    """A package with a benchmark that is slower on the branch `change` than on `main`."""
    made = repository(tmp_path / "project")
    made.git("checkout", "-q", "-B", "main")
    made.write("bin/cargo", CARGO, executable=True)
    made.write("Cargo.toml", '[package]\nname = "p"\n[[bench]]\nname = "sum"\n')
    made.write("nanoseconds", "1,000")
    made.commit()
    made.git("checkout", "-q", "-b", "change")
    made.write("nanoseconds", "1,300")
    made.commit()
    return made


def path_with(project: MadeRepository) -> str:
    return f"{project.path / 'bin'}:{os.environ['PATH']}"


def test_the_suite_and_the_baseline_are_found_and_the_full_line_is_printed(
    project: MadeRepository, gate: Gate
) -> None:
    project.git("checkout", "-q", "main")
    project.write("nanoseconds", "2")
    project.commit()
    project.git("checkout", "-q", "change")
    answer = gate(project, "--json", "-", PATH=path_with(project))
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    # The later commit of main is not in the change, so the baseline is the commit before it.
    assert (row["benchmark"], row["ratio"]) == ("sum", pytest.approx(1.3))
    fork = project.git("merge-base", "main", "change").strip()
    assert "Cargo.toml has a [[bench]], so this gate is: equipoise gate" in answer.err
    assert f"--baseline {fork}" in answer.err
    assert "-- cargo bench" in answer.err


def test_a_ci_service_names_the_branch_to_compare_with(project: MadeRepository, gate: Gate) -> None:
    project.git("update-ref", "refs/remotes/origin/stable", "change")
    options = ("--blocks", "1", "--json", "-")
    answer = gate(project, *options, PATH=path_with(project), GITHUB_BASE_REF="stable")
    assert document(answer)["gate"]["rows"][0]["ratio"] == pytest.approx(1.0)
    assert "baseline and candidate are the same commit" in answer.out


def test_a_repository_without_a_default_branch_needs_a_baseline(
    project: MadeRepository, gate: Gate
) -> None:
    project.git("branch", "-q", "-D", "main")
    answer = gate(project, PATH=path_with(project))
    assert answer.status == 2
    assert "has no branch origin/main or origin/master or main or master" in answer.err
    assert "--baseline REV" in answer.err


def test_a_folder_without_a_suite_is_refused(tmp_path: Path, gate: Gate) -> None:
    made = repository(tmp_path / "project")
    made.write("file", "")
    made.commit()
    answer = gate(made)
    assert answer.status == 2
    assert "there is no suite of asv, cargo, " in answer.err
