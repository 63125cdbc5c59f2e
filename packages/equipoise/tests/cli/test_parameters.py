"""`-L` and `-P` on real programs: at each value the candidates against the first command."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise, compared

Script = Callable[[str, Sequence[str]], str]

COUNT = "i=0; while [ $i -lt $(($1 * {times})) ]; do i=$((i + 1)); done"
FEW = ("--blocks", "8", "--warmup", "0", "--budget", "30", "--seed", "4")


@pytest.fixture
def programs(script: Script) -> None:
    script("sm", [COUNT.format(times=1)])
    # So much larger that no other work of the host hides it in eight blocks.
    script("lg", [COUNT.format(times=10)])


def document_of(equipoise: Equipoise, *arguments: str) -> Any:
    return compared(equipoise, *arguments, *FEW)


@pytest.mark.usefixtures("programs")
def test_at_each_value_a_command_is_compared_with_the_first_at_that_value(
    equipoise: Equipoise,
) -> None:
    document = document_of(equipoise, "./sm {n}", "./lg {n}", "-L", "n", "2000,6000", "--control")
    assert [
        (comparison["baseline"], comparison["candidate"]) for comparison in document["comparisons"]
    ] == [
        ("sm, n=2000", "lg, n=2000"),
        ("sm, n=6000", "lg, n=6000"),
    ]
    assert [comparison["stratum"] for comparison in document["comparisons"]] == [
        {"n": "2000"},
        {"n": "6000"},
    ]
    assert all(comparison["ratio"] > 1.5 for comparison in document["comparisons"])
    assert document["control"]["comparison"]["baseline"] == "sm, n=2000"


@pytest.mark.usefixtures("programs")
def test_the_screen_labels_each_row_by_program_and_value_and_reads_a_scaling_law(
    equipoise: Equipoise,
) -> None:
    arguments = ("./sm {n}", "./lg {n}", "-P", "n", "4000", "8000", "-D", "4000")
    answer = equipoise("compare", *arguments, *FEW)
    above, _, rest = answer.out.partition("condition  ")
    table, _, below = rest.partition("\n\n")
    rows = [line.split("  ")[0] for line in table.splitlines()[1:]]
    assert rows == ["sm, n=4000", "lg, n=4000", "sm, n=8000", "lg, n=8000"]
    assert "lg is slower than sm" in above + below
    assert "wall_s by n (N)" in below
    assert "command lg" in below


@pytest.mark.usefixtures("programs")
def test_values_of_one_command_are_read_as_a_scaling_law_on_every_form(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    arguments = ("./sm {n}", "-L", "n", "4000,8000,16000", "--report", "page.md")
    answer = equipoise("compare", *arguments, *FEW)
    assert "wall_s by n (N)" in answer.out
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    (law,) = (line for line in text.splitlines() if line.startswith("| all |"))
    # Not how long it takes, which depends on the host, but by which power: some more than none.
    assert 0.2 < float(law.split("|")[2].split()[0]) < 1.8
    equipoise("report", "last", "-o", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "wall_s by n (N)" in page
    document = json.loads(equipoise("show", "--json", "-").out)
    assert {comparison["baseline"] for comparison in document["comparisons"]} == {"./sm 4000"}


@pytest.mark.usefixtures("programs")
def test_the_export_for_hyperfine_has_the_parameters_and_no_name_of_ours(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    document_of(
        equipoise, "./sm {n}", "./lg {n}", "-L", "n", "10,20", "--export-json", "hyperfine.json"
    )
    results = json.loads((tmp_path / "hyperfine.json").read_text())["results"]
    assert [result["parameters"] for result in results] == [{"n": "10"}, {"n": "20"}] * 2


def test_a_setup_that_the_next_value_would_undo_runs_before_each_trial_and_this_is_said(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    answer = equipoise(
        *("compare", "cp state seen", "-L", "branch", "main,fast"),
        *("--setup", "echo {branch} > state", "--conclude", "echo {branch} >> expected"),
        *("--prepare", "cat state >> states", *FEW),
    )
    assert answer.status == 0, answer.err
    states = (tmp_path / "states").read_text().split()
    assert states == (tmp_path / "expected").read_text().split()
    assert len(states) == 16
    assert (
        "--setup ran before each trial: it contains {branch}, which no command does" in answer.out
    )
