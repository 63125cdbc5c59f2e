"""Messages on a campaign that failed, on failures that are ignored, and of nothing at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.campaign.plans import compare_plan
from equipoise.design.commands import CompareOptions
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cli.conftest import Equipoise

MEASURED = ("compare", "true", "true", "--blocks", "2", "--quiet", "--allow-concurrent")
FAILING = ("compare", "true", "sh -c 'echo no words >&2; exit 3'", "--allow-concurrent")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("cat text | wc", "|"),
        ("sort text > sorted", ">"),
        ("sort <text", "<text"),
        ("true && true", "&&"),
        ("cd folder; make", "folder;"),
        ("make 2>&1", "2>&1"),
    ],
)
def test_a_command_that_needs_a_shell_names_the_option(line: str, word: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        compare_plan(CompareOptions((line, "true")))
    assert refused.value.what == f"`{word}` in {line!r} needs a shell"
    assert "add -S" in str(refused.value.hint)


@pytest.mark.parametrize("word", ["$HOME", "~/words", "$(cat words)", "`cat", "a$NAME"])
def test_words_that_only_a_shell_expands_name_the_option(word: str) -> None:
    with pytest.raises(UnusableInput, match="needs a shell") as refused:
        compare_plan(CompareOptions((f"echo {word}", "true")))
    assert "add -S" in str(refused.value.hint)


def test_a_pattern_that_names_files_is_refused_unless_a_shell_runs_it_or_it_is_quoted(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    (tmp_path / "first words").touch()
    once = ("--blocks", "1", "--quiet", "--allow-concurrent")
    for line in ("ls *words", "ls 'first '*"):
        refused = equipoise("compare", line, "true", *once)
        assert refused.status == 2
        assert "is a pattern for file names here, which needs a shell" in refused.err
        assert "hint: add -S" in refused.err
        assert equipoise("compare", line, "true", *once, "-S").status == 0
    for line in ("echo '*words'", r"expr 2 \* 3", "echo *.none", "awk '{print $1}'", "echo a$"):
        assert equipoise("compare", line, "true", *once).status == 0


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        (["python3", "-c", "import json"], "python3 -c"),
        (["true", "sh", "-c", "exit 0"], "sh -c"),
    ],
)
def test_an_interpreter_without_quotes_is_refused_before_anything_runs(
    arguments: list[str], whole: str, equipoise: Equipoise, tmp_path: Path
) -> None:
    answer = equipoise("compare", *arguments, "--blocks", "1")
    assert answer.status == 2
    assert "-c after" in answer.err and "means --cleanup here" in answer.err
    assert "put the whole command in quotes" in answer.err and whole in answer.err
    assert not list(tmp_path.iterdir())


def test_the_cleanup_of_a_command_is_taken_as_always(equipoise: Equipoise, tmp_path: Path) -> None:
    words = ("compare", "true", "-c", "touch cleaned", "-n", "sh", "--blocks", "1", "--quiet")
    assert equipoise(*words, "--allow-concurrent").status == 0
    assert (tmp_path / "cleaned").exists()


def test_an_option_of_a_command_without_quotes_has_a_hint(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "ls", "-l")
    assert answer.status == 2
    assert "put the whole command in quotes" in answer.err
    assert "Did you mean" in equipoise("compare", "ls", "--blokcs", "3").err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("compair", "did you mean compare?"),
        ("Bisect", "did you mean bisect?"),
        ("lst", "did you mean list?"),
        ("sleep 1", "to measure it: equipoise compare 'sleep 1'"),
        ("xyzzy", "see equipoise --help"),
    ],
)
def test_a_mistyped_command_names_the_one_that_is_like_it(
    typed: str, hint: str, equipoise: Equipoise
) -> None:
    answer = equipoise(typed)
    assert answer.status == 2
    assert f"there is no command {typed!r}\n  hint: {hint}" in answer.err


@pytest.mark.parametrize(
    "line",
    ["true '|' x", 'true "a \\" | b"', "true \\| x", "true a|b", "true --filter='x; y'", "true {}"],
)
def test_quoted_words_go_to_the_program(line: str) -> None:
    plan, _ = compare_plan(CompareOptions((line, "true")))
    assert plan.conditions[0].name == line
    shell, _ = compare_plan(CompareOptions(("true | true", "true"), shell="/bin/sh"))
    assert shell.conditions[0].command[-1] == "true | true"


def test_a_campaign_that_failed_before_its_first_block_is_not_the_last(
    equipoise: Equipoise,
) -> None:
    assert equipoise(*MEASURED).status == 0
    assert equipoise(*FAILING, "--quiet").status == 3
    runs = json.loads(equipoise("list", "--json", "-").out)
    assert [run["stopped_because"] for run in runs] == ["block limit", "a condition failed"]
    last = json.loads(equipoise("show", "last", "--json", "-").out)
    assert last["run"]["id"] == runs[0]["id"]
    named = json.loads(equipoise("show", runs[1]["id"], "--json", "-").out)
    assert named["run"]["id"] == runs[1]["id"]


def test_a_failed_campaign_tells_the_reason_first(equipoise: Equipoise, tmp_path: Path) -> None:
    assert equipoise(*FAILING, "-n", "a", "-n", "b").status == 3
    # Without another one, it is the last.
    first, hint, *rest = equipoise("show").out.splitlines()
    assert first == "The campaign ended early: b failed: exit status 3; stderr: no words"
    assert hint.startswith("hint: correct the command")
    assert not any("b failed" in line for line in rest)
    assert equipoise("report", "last", "-o", "page.html").status == 0
    page = (tmp_path / "page.html").read_text()
    heading = page[page.index("<h1") : page.index("</h1>")]
    assert "b failed: exit status 3; stderr: no words" in heading


def test_failures_that_are_ignored_are_counted(equipoise: Equipoise) -> None:
    options = ("--blocks", "4", "--allow-concurrent", "-n", "a", "-n", "b")
    told = equipoise("compare", "true", "false", "-i", *options)
    assert told.status == 0
    assert "warning: b failed in 4 of 4 trials (exit status 1)" in told.out
    plain = equipoise("compare", "true", "true", "-i", *options)
    assert "failed in" not in plain.out


def test_a_folder_without_a_ledger_has_no_campaigns(equipoise: Equipoise, tmp_path: Path) -> None:
    listed = equipoise("list")
    assert listed.status == 0
    assert listed.out.startswith("no campaigns yet: there is no ledger at ")
    assert json.loads(equipoise("list", "--json", "-").out) == []
    assert equipoise("list", "--json", "runs.json").status == 0
    assert json.loads((tmp_path / "runs.json").read_bytes()) == []
    # A ledger that is named must be there.
    assert equipoise("list", "--ledger", "other.db").status == 2


def test_every_list_has_a_json_form(equipoise: Equipoise) -> None:
    studies = json.loads(equipoise("list", "studies", "--json", "-").out)
    assert {"allocators", "tratt2019"} <= {entry["name"] for entry in studies}
    allocators = json.loads(equipoise("list", "allocators", "--json", "-").out)
    glibc = next(entry for entry in allocators if entry["name"] == "glibc")
    assert glibc["available"] == "yes"
