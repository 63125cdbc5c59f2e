"""Bisections and histories whose commits are linked again for each block."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages.equipoise.tests.cli.conftest import Answer, RunIn
from packages.equipoise.tests.linked_programs import linked_project, needs_lld, places_of
from packages.equipoise.tests.repositories import MadeRepository

pytestmark = needs_lld
REVISIONS = (("first", 2), ("second", 2), ("third", 20), ("fourth", 20))
BUILT = ("--build", "make -s", "--relink", "--quiet", "--ledger", "../ledger.db", "--json")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program of each trial writes the places of its functions."""
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("EQUIPOISE_BUILDS", str(tmp_path / "builds"))
    return tmp_path / "log"


@pytest.fixture
def project(tmp_path: Path, scratch: Path, log: Path) -> MadeRepository:
    """Four revisions, of which the third is much slower than the second."""
    return linked_project(tmp_path / "project", REVISIONS)


@pytest.fixture
def run(project: MadeRepository, run_in: RunIn) -> Callable[..., Answer]:
    """Run one command in the repository."""
    return lambda *words: run_in(project.path, *words)


def document(answer: Answer) -> Any:
    assert answer.status == 0, answer
    return json.loads(answer.out)


def test_a_bisection_names_the_commit_across_links(run: Callable[..., Answer], log: Path) -> None:
    result = document(run("bisect", "--good", "first", *BUILT, "-", "--", "./bench"))
    assert [culprit["subject"] for culprit in result["bisect"]["culprits"]] == ["third"]
    assert len(places_of(log, "third")) >= 4


def test_an_interrupted_bisection_goes_on_with_links(run: Callable[..., Answer], log: Path) -> None:
    document(run("bisect", "--good", "first", "--blocks", "4", *BUILT, "-", "--", "./bench"))
    log.unlink()
    result = document(
        run("resume", "last", "--ledger", "../ledger.db", "--blocks", "200", "--json", "-")
    )
    assert [culprit["subject"] for culprit in result["bisect"]["culprits"]] == ["third"]
    assert len(places_of(log, "third")) >= 3


def test_a_history_has_links_of_each_block(run: Callable[..., Answer], log: Path) -> None:
    words = ("history", "--from", "first", "--blocks", "12", *BUILT, "-", "--", "./bench")
    result = document(run(*words))
    assert [revision["subject"] for revision in result["history"]["revisions"]][-1] == "fourth"
    assert len(places_of(log, "first")) >= 4


@pytest.mark.parametrize("words", [("bisect", "--good"), ("history", "--from")])
def test_without_a_build_it_is_refused(words: tuple[str, str], run: Callable[..., Answer]) -> None:
    answer = run(*words, "first", "--relink", "--", "./bench")
    assert answer.status == 2
    assert "--relink links the programs of a build again, but nothing is built" in answer.err
