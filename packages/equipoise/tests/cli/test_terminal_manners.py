"""Colour, width and pipes: what a terminal's user expects of every command."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pexpect
import pytest
from rich.console import Console

from equipoise.report.document import Column, Histogram, Paragraph, Table
from equipoise.report.renderers.terminal import console_for, print_to
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise

COLOUR = re.compile(r"\x1b\[(?:\d+;)*[349]\d(?:;\d+)*m")
TIMES = Table(
    (
        Column("condition", "name"),
        Column("median", "number"),
        Column("95 % interval"),
        Column("spread", "number"),
        Column("peak", "number"),
        Column("shape"),
    ),
    tuple(
        (name, "11.9 ms", "11.7 ms to 14.6 ms", "±17 %", "1.71 MB", shape)
        for name, shape in {
            "sort --parallel=1 a-long-list-of-words": Histogram((1, 2), 1, 2, ("11 ms", "15 ms")),
            "sort": Histogram((1, 2), 1, 2, ("11 ms", "15 ms")),
        }.items()
    ),
)


def on_a_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    terminal = pexpect.spawn(
        ENTRY[0],
        [*ENTRY[1:], *arguments],
        cwd=str(folder),
        env={**inherited, "TERM": "xterm", **environment},
        dimensions=(40, 100),
        timeout=600,
        encoding="utf-8",
    )
    printed = str(terminal.read())
    terminal.close()
    assert terminal.exitstatus == 0, printed
    return printed


def printed_at(width: int, table: Table) -> list[str]:
    stream = io.StringIO()
    print_to(Console(file=stream, width=width, color_system=None), [table])
    return stream.getvalue().splitlines()


def test_no_color_in_the_environment_takes_the_colour_from_progress_and_result(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    compared = ("compare", "sleep 0.01", "sleep 0.05", "--blocks", "12", "--min-seconds", "0")
    assert not COLOUR.search(on_a_terminal(tmp_path, *compared, NO_COLOR="1"))
    assert COLOUR.search(on_a_terminal(tmp_path, "show"))
    assert COLOUR.search(on_a_terminal(tmp_path, "show", NO_COLOR=""))
    assert not COLOUR.search(on_a_terminal(tmp_path, "show", NO_COLOR="1"))
    assert "\x1b" not in equipoise("show").out


@pytest.mark.parametrize("width", [80, 70, 60, 50, 40])
def test_an_interval_is_whole_at_every_width_and_other_columns_give_way(width: int) -> None:
    lines = printed_at(width, TIMES)
    assert all(len(line) <= width for line in lines)
    rows = lines[1:3]
    assert all("11.9 ms  11.7 ms to 14.6 ms" in row for row in rows)
    assert "95 % interval" in lines[0]
    left_out = " ".join(line for line in lines[3:])
    for heading in ("spread", "peak", "shape"):
        assert (heading in lines[0]) is (heading not in left_out)


def test_a_column_that_a_narrow_terminal_has_no_room_for_is_named() -> None:
    assert printed_at(60, TIMES)[-1] == "not shown at this width: shape"
    assert not printed_at(100, TIMES)[3:]


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}, {"COLUMNS": "60"}])
def test_a_sentence_and_a_row_in_a_pipe_are_one_line(
    environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    sentence = "word " * 100 + "end"
    words = Table((Column("what", "text"), Column("why", "text")), ((sentence, sentence),))
    print_to(console_for(color=False), [Paragraph(sentence), words])
    printed = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert len(printed) == 3
    assert re.sub(r"\x1b\[\d*m", "", printed[0]) == sentence
