"""The command line as a user has it, in a folder of its own.

Most tests call it in this process, where it is imported once; a process of its own is for those
about processes: signals, limits, what is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.campaign.plans import compare_plan
from equipoise.cli import compare
from equipoise.cli.command_line import typed_command
from equipoise.cli.compare import CompareRequest
from equipoise.cli.main import run
from equipoise.cli.options.declaration import read_request
from equipoise.model.plan import Plan
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import MadeRepository
from packages.equipoise.tests.schema import valid_result

ENTRY = (sys.executable, "-m", "equipoise.cli")


@dataclass(frozen=True)
class Answer:
    """Answer of one command line."""

    status: int
    out: str
    err: str


def document(answer: Answer) -> dict[str, Any]:
    """Return the JSON document that the command wrote to stdout."""
    assert answer.status == 0, answer.err
    parsed: dict[str, Any] = json.loads(answer.out)
    return parsed


def result_of(answer: Answer) -> Any:
    """Return the result document that the command wrote to stdout, held against the schema."""
    assert answer.status == 0, answer.err
    return valid_result(answer.out)


def compared(equipoise: Equipoise, *arguments: str) -> Any:
    """Return the result of ``equipoise compare``, held against the schema."""
    return result_of(equipoise("compare", *arguments, "--json", "-"))


def plan_from(line: list[str]) -> Plan:
    """The plan of a command line."""
    context = compare.command.make_context("compare", list(line))
    request = read_request(CompareRequest, context.params)
    plan, _ = compare_plan(request.normalized().options)
    with context:
        return replace(plan, command_line=typed_command(seed=plan.seed))


def compare_request(*line: str) -> CompareRequest:
    """The request of a command line."""
    context = compare.command.make_context("compare", list(line))
    return read_request(CompareRequest, context.params)


@dataclass(frozen=True)
class Equipoise:
    """Run one ``equipoise`` command line in a folder."""

    folder: Path
    call: Callable[..., Answer]

    def __call__(self, *arguments: str, environment: dict[str, str] | None = None) -> Answer:
        return self.call(*arguments, environment=environment)


Gate = Callable[..., Answer]
RunIn = Callable[..., Answer]


@pytest.fixture
def equipoise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Equipoise:
    """Run one ``equipoise`` command line in ``tmp_path``."""

    def call(*arguments: str, environment: dict[str, str] | None = None) -> Answer:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            status = run(arguments)
        answer = capfd.readouterr()
        return Answer(status, answer.out, answer.err)

    return Equipoise(tmp_path, call)


@pytest.fixture
def run_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunIn:
    """Run one ``equipoise`` command line in a folder."""

    def call(folder: Path, *arguments: str) -> Answer:
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            status = run(arguments)
        answer = capsys.readouterr()
        return Answer(status, answer.out, answer.err)

    return call


@pytest.fixture
def equipoise_process(tmp_path: Path) -> Equipoise:
    """The same in a process of its own."""

    def call(*arguments: str, environment: dict[str, str] | None = None) -> Answer:
        done = finished(
            [*ENTRY, *arguments],
            cwd=tmp_path,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    return Equipoise(tmp_path, call)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, Sequence[str]], str]:
    """Write an executable shell script into ``tmp_path`` and return its path."""

    def write(name: str, lines: Sequence[str]) -> str:
        path = tmp_path / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where private folders are made; whoever makes one must leave it empty."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    # TMPDIR was read when this process began.
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("EQUIPOISE_BUILDS", str(tmp_path / "builds"))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def gate(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Gate:
    """Run one ``equipoise gate`` in a repository, in this process: it is imported once."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def call(made: MadeRepository, *words: str, **environment: str) -> Answer:
        with monkeypatch.context() as patch:
            patch.chdir(made.path)
            for name, value in environment.items():
                patch.setenv(name, value)
            status = run(["gate", *words])
        answer = capsys.readouterr()
        return Answer(status, answer.out, answer.err)

    return call
