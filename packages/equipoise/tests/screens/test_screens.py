"""The screens of eleven commands in the usual case, at 80 columns: a text file in this folder each.

Read the text files to see every screen. `make snapshots` renews them by syrupy's option, or for
these alone: ``python -m pytest --snapshot-update packages/equipoise/tests/screens``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from rich.console import Console

from equipoise.cli.doctor import examination_document
from equipoise.cli.main import run
from equipoise.kinds.explain.command import explanation_document
from equipoise.kinds.gate.report import gate_document
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.builders.runs import runs_document
from equipoise.report.document import Document
from equipoise.report.renderers import terminal
from equipoise.report.renderers.terminal import print_document
from equipoise.shared.spelling import command_line_spelling
from equipoise.why.gap import choose_gap
from packages.equipoise.tests.screens import results

FOLDER = Path(__file__).parent
COLUMNS = 80
MAX_LINES = 20
MAX_WORDS = 25


class Screen(Struct, frozen=True):
    """A command line, and the function that prints its screen."""

    command: str
    print: Callable[[], None]

    @property
    def name(self) -> str:
        """The name of the command."""
        return self.command.split()[1]


def print_result(document: ResultDocument) -> None:
    """Print the result of a campaign."""
    report = ReportInput(document, ledger=Path(".equipoise/ledger.db"))
    show(campaign_document(report))


def show(document: Document) -> None:
    """Print a document as every command does."""
    print_document(document, color=False)


def print_explanation() -> None:
    """Print why one of two commands is slower."""
    record, document = results.explained()
    show(explanation_document(document, choose_gap(record)))


def run_on(write: Callable[[Path], None], command: str) -> Callable[[], None]:
    """Return a function that writes the table that a command line names, and runs the line."""

    def print_answer() -> None:
        words = command.split()[1:]
        write(Path(words[1]))
        assert run(words) == 0

    return print_answer


OBSERVE = (
    "equipoise observe ci.csv --treatment version=2.0:1.0 --outcome wall_s "
    "--covariates load,host_type"
)
MATCH = "equipoise match people.csv --treatment treat --outcome re78 --covariates age,educ,re75"
SCREENS = (
    Screen(
        "equipoise compare 'gzip -6 log' 'gzip -7 log'",
        lambda: print_result(results.compared()[1]),
    ),
    Screen(
        "equipoise gate --baseline main --suite bench.toml",
        lambda: show(gate_document(results.gated())),
    ),
    Screen(
        "equipoise verify --baseline main --build make -- ./bench",
        lambda: print_result(results.verified()),
    ),
    Screen(
        "equipoise bisect --good v1.0 --bad HEAD -- ./bench",
        lambda: print_result(results.bisected()),
    ),
    Screen(
        "equipoise history --from v1.0 --build make -- ./bench",
        lambda: print_result(results.historied()),
    ),
    Screen("equipoise why last", print_explanation),
    Screen(OBSERVE, run_on(results.write_log, OBSERVE)),
    Screen(MATCH, run_on(results.write_people, MATCH)),
    Screen("equipoise os --quick", lambda: print_result(results.primitives())),
    Screen("equipoise list", lambda: show(runs_document(results.listed()))),
    Screen("equipoise doctor", lambda: show(examination_document(results.examined()))),
)


@pytest.fixture(autouse=True)
def _host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in an empty folder, with the time of Greenwich."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


Print = Callable[[Screen, int], list[str]]
"""Prints a screen on a terminal of so many columns, and returns its lines."""


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Print:
    """Return a function that prints a screen and returns its lines."""

    def print_screen(screen: Screen, columns: int) -> list[str]:
        def console_for(color: bool, *, stderr: bool = False) -> Console:
            plain: dict[str, Any] = {
                "no_color": True,
                "highlight": False,
                "markup": False,
                "emoji": False,
            }
            return Console(width=columns, stderr=stderr, **plain)

        monkeypatch.setattr(terminal, "console_for", console_for)
        with command_line_spelling():
            screen.print()
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return print_screen


def sentences(lines: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of lines that are whole paragraphs; a row of a table is none."""
    for line in lines:
        if "  " not in line.strip():
            yield from re.split(r"(?<=[.?!]) ", line.strip())


def word_count(sentence: str) -> int:
    """Return the number of words of a sentence; a number and its unit are one."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_screen_has_the_answer_its_evidence_and_nothing_that_breaks_lines(
    screen: Screen, printed: Print, pytestconfig: pytest.Config
) -> None:
    lines = printed(screen, COLUMNS)
    shown = "\n".join((f"$ {screen.command}", "", *lines, ""))
    file = FOLDER / f"{screen.name}.txt"
    if pytestconfig.getoption("update_snapshots"):
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")
    assert len(lines) <= MAX_LINES
    assert [line for line in lines if len(line) > COLUMNS] == []
    unbroken = printed(screen, 10 * COLUMNS)
    assert [sentence for sentence in sentences(unbroken) if word_count(sentence) > MAX_WORDS] == []


def test_every_text_file_is_the_screen_of_a_command() -> None:
    names = {file.stem for file in FOLDER.glob("*.txt")}
    assert names == {screen.name for screen in SCREENS}
