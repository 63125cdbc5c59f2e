"""The progress and the screen, seen through a pseudo-terminal."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pexpect
import pytest

from tests.cli.conftest import ENTRY


@pytest.mark.parametrize("columns", [80, 120])
def test_compare_shows_its_progress_and_its_screen_on_a_terminal(
    columns: int, tmp_path: Path
) -> None:
    terminal = pexpect.spawn(
        ENTRY[0],
        [*ENTRY[1:], "compare", "sleep 0.03", "sleep 0.05", "-n", "quick", "-n", "slow"],
        cwd=str(tmp_path),
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm"},
        dimensions=(40, columns),
        timeout=60,
        encoding="utf-8",
    )
    terminal.expect(r"earliest possible[\s\S]{1,20}verdict: block 8")
    terminal.expect("warming up")
    terminal.expect(r"block \d+/200, at most \d:\d\d left")
    terminal.expect("slow: interval still open")
    terminal.expect("condition")
    terminal.expect(pexpect.EOF)
    screen = without_escapes(str(terminal.before))
    terminal.close()
    assert terminal.exitstatus == 0
    rows = {line.split()[0]: line for line in screen.splitlines() if line.split()}
    assert re.search(r"\d ms .* to .* ms +±.* MB .*[▁▂▃▄▅▆▇█]", rows["quick"])
    assert all(len(line) <= columns for line in screen.splitlines())
    assert "slow is slower than quick" in screen
    assert "stopped by: verdict" in screen


def without_escapes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
