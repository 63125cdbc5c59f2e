"""Messages while a long computation runs."""

from __future__ import annotations

import io
import sys

import pytest

from equipoise.cli.work_bars import status_line
from packages.equipoise.tests.payloads import PAYLOADS


class Terminal(io.StringIO):
    """Takes itself for one."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_a_column_in_brackets_is_no_mark_up_and_no_escape_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    with status_line(quiet=False, color=False) as tell:
        for name in (*PAYLOADS, "[bold]last[/bold]"):
            tell(name)
        screen.write("[/]")
    shown = screen.getvalue()
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown


def test_where_nobody_watches_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with status_line(quiet=True, color=False) as tell:
        tell("anything")
    assert capsys.readouterr().err == ""
