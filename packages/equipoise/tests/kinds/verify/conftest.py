"""Repositories with a program and a change of it, and ``equipoise verify`` in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from equipoise.cli.main import run
from packages.equipoise.tests.cli.conftest import Answer
from packages.equipoise.tests.repositories import MadeRepository, repository
from packages.equipoise.tests.schema import valid_result

SLOW = "sleep 0.15"
"""What a baseline does and a faster candidate does not: far more than any noise of a host."""
FEW_BLOCKS = ("--blocks=9", "--min-seconds=0", "--warmup=0", "--allow-concurrent")

Verify = Callable[..., Answer]
Project = Callable[..., MadeRepository]


def result_in(answer: Answer) -> Any:
    """The section of a verification in the document on stdout, held against the schema."""
    assert answer.out, answer.err
    return valid_result(answer.out)["verify"]


@pytest.fixture
def verify(scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Iterator[Verify]:
    """Run one ``equipoise verify`` in a repository."""

    def call(made: MadeRepository, *words: str) -> Answer:
        with monkeypatch.context() as patch:
            patch.chdir(made.path)
            status = run(["verify", *words])
        answer = capsys.readouterr()
        return Answer(status, answer.out, answer.err)

    yield call


@pytest.fixture
def changed(tmp_path: Path) -> Project:
    """Make a repository whose program is changed from one shell script to another."""

    def make(before: str, after: str, **files: str) -> MadeRepository:
        made = repository(tmp_path / "project")
        made.write(".gitignore", ".equipoise\n")
        for name, content in files.items():
            made.write(name, content)
        for tag, lines in (("old", before), ("new", after)):
            made.write("program", f"#!/bin/sh\n{lines}\n", executable=True)
            made.commit()
            made.git("tag", tag)
        return made

    return make


@pytest.fixture
def answer_to(verify: Verify, changed: Project) -> Callable[..., tuple[int, Any]]:
    """Exit status and result of one change of a shell script, in few blocks."""

    def ask(before: str, after: str, *options: str) -> tuple[int, Any]:
        made = changed(before, after)
        words = ("--baseline", "old", *FEW_BLOCKS, *options, "--json", "-", "--", "./program")
        answer = verify(made, *words)
        return answer.status, result_in(answer)

    return ask
