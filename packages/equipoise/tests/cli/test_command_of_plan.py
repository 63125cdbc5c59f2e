"""The command that a page shows makes the very same plan again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.design.command_line import command_of_plan
from packages.equipoise.tests.cli.conftest import plan_from


def test_the_words_leave_out_where_the_result_goes_and_keep_what_was_typed() -> None:
    words = ["true", "--report", "a.html", "--export-json=b", "-n", "a", "-w2", "--json", "-"]
    line = command_of_plan(plan_from([*words, "-i=1,2", "-nb", "false", "--seed", "3"]))
    assert str(line).partition(" && ")[2] == (
        "equipoise compare true false --command-name a --command-name b --warmup 2 "
        "--ignored-exits 1,2 --seed 3"
    )


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-n", "one", "-n", "two"],
        ["--prepare", "sync; echo 'a b'", "--setup", "x", "--setup", "y", "--cleanup", "true"],
        ["--env", "2:LD_PRELOAD=lib a.so", "--env", "1:X=1=2"],
        ["--blocks", "77", "--min-blocks", "12", "--budget", "0.5", "--precision", "1.25"],
        ["--tail", "2.5"],
        ["--alpha", "0.01", "--min-effect", "0", "--timeout", "3", "--warmup", "0"],
        ["--washout", "--ignore-failure", "--output", "count"],
        ["--shell", "default", "--output", "inherit"],
        ["--output", "out.txt", "--input", "in.txt"],
        ["-L", "size", "1,2"],
        ["-L", "size", "1,2", "--control", "-n", "a b"],
        ["--metrics", "max_rss_bytes,wall_s", "--control"],
        ["--adjust"],
        ["--layouts", "3", "--aslr", "drawn"],
        ["--layouts", "6", "--blocks", "40", "--aslr", "off"],
        ["--control", "-n", "one", "-n", "two", "--env", "1:X=1"],
    ],
    ids=lambda options: " ".join(options) or "nothing",
)
def test_a_plan_comes_back_from_its_command(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("")
    commands = ["sleep {size}", "sleep 9"] if "-L" in options else ["sleep 1", "sleep '2 3'"]
    plan = plan_from([*options, "--seed", "5", *commands])
    changed, folder, joined, *words = shlex.split(str(command_of_plan(plan)))
    assert (changed, folder, joined) == ("cd", str(tmp_path), "&&")
    assert words[:2] == ["equipoise", "compare"]
    assert plan_from(words[2:]) == plan


def test_it_begins_in_the_folder_of_the_campaign() -> None:
    plan = plan_from(["true", "false"])
    moved = replace(plan, measure=replace(plan.measure, working_folder="/a folder/it's"))
    assert str(command_of_plan(moved)).startswith("cd '/a folder/it'\"'\"'s' && equipoise compare ")
