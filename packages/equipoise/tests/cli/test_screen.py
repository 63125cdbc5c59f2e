"""The progress and the screen, seen through a pseudo-terminal."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pexpect
import pytest

from equipoise.cli.writing import folder_name
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise
from packages.equipoise.tests.payloads import LONG, PAYLOADS


@pytest.mark.parametrize("columns", [80, 120])
def test_compare_shows_its_progress_and_its_screen_on_a_terminal(
    columns: int, tmp_path: Path
) -> None:
    terminal = pexpect.spawn(
        ENTRY[0],
        [*ENTRY[1:], "compare", "sleep 0.03", "sleep 0.1", "-n", "quick", "-n", "slow"],
        cwd=str(tmp_path),
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm"},
        dimensions=(40, columns),
        timeout=600,
        encoding="utf-8",
    )
    terminal.expect(r"earliest possible[\s\S]{1,20}verdict: block 7")
    terminal.expect("warming up")
    terminal.expect(r"block \d+, at most \d:\d\d left")
    terminal.expect("slow: interval still open")
    terminal.expect("slower: ")
    terminal.expect(pexpect.EOF)
    screen = without_escapes(str(terminal.before))
    terminal.close()
    assert terminal.exitstatus == 0
    rows = {line.split()[0]: line for line in screen.splitlines() if line.split()}
    assert re.search(r"\d ms .* to .* ms +±.* MB .*[▁▂▃▄▅▆▇█]", rows["quick"])
    assert [line for line in screen.splitlines() if len(line) > columns] == []
    assert "slow is slower than quick" in screen
    assert "stopped by: verdict" in screen


STUDY = """
[study]
name = "naps"
[workload]
command = ["sleep", "{seconds}"]
[factors.seconds]
levels = [0.01, 0.012, 0.03, 0.04, 0.05, 0.06]
[measure]
min_effect = 0.001
blocks = 14
"""


def test_a_study_says_how_long_it_takes_and_shows_where_each_comparison_stands(
    tmp_path: Path,
) -> None:
    (tmp_path / "naps.toml").write_text(STUDY, encoding="utf-8")
    terminal = pexpect.spawn(
        ENTRY[0],
        [*ENTRY[1:], "run", "naps.toml"],
        cwd=str(tmp_path),
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
        dimensions=(30, 120),
        timeout=600,
        encoding="utf-8",
    )
    terminal.expect(r"6 conditions, \d+ ms a block: first verdicts after about \d")
    terminal.expect("so far")
    terminal.expect("seconds=0.012")
    terminal.expect("5 comparisons: ")
    terminal.expect(pexpect.EOF)
    screen = without_escapes(str(terminal.before))
    terminal.close()
    assert terminal.exitstatus == 0
    assert "against baseline" in screen
    assert all(len(line) <= 120 for line in screen.splitlines())


def without_escapes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


COMMANDS = ("true", "sleep 0.01", "sleep 0.02")
LIMITS = ("--blocks", "8", "--allow-concurrent")


def test_a_ranking_is_printed_unless_it_is_off(equipoise: Equipoise) -> None:
    on = equipoise("compare", *COMMANDS, *LIMITS, "--ranking", "on")
    assert on.status == 0
    assert "the fastest" in on.out
    off = equipoise("compare", *COMMANDS, *LIMITS, "--ranking", "off")
    assert off.status == 0
    assert "the fastest" not in off.out


def test_a_ranking_over_layouts_is_refused_with_a_hint(equipoise: Equipoise) -> None:
    refused = equipoise("compare", *COMMANDS, "--layouts", "2", "--ranking", "on")
    assert refused.status == 2
    assert "3 conditions cannot be ranked with --layouts" in refused.err
    assert "hint: give --ranking off" in refused.err


@pytest.mark.parametrize("run_id", [*PAYLOADS, LONG], ids=lambda name: name[:20])
def test_the_id_of_a_document_never_leads_out_of_the_folder(run_id: str, tmp_path: Path) -> None:
    folder = tmp_path / folder_name(1, run_id)
    folder.mkdir()
    assert folder.resolve().parent == tmp_path.resolve()


def test_an_id_of_ours_is_kept() -> None:
    assert folder_name(2, "20261121-223452-cbe6") == "2-20261121-223452-cbe6"
