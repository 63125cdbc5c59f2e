"""Reports and figures of match, balance, genmatch and observe, in every form."""

from __future__ import annotations

import csv
import io
import json
import shlex
import shutil
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise
from packages.matching.tests.matching.golden import GOLDEN

COLUMNS = ("--treatment", "treat", "--covariates", "a,b,c,d")
QUICK = ("--population", "10", "--generations", "1", "--hard-limit")


@pytest.fixture(autouse=True)
def table(tmp_path: Path) -> None:
    """The discrete data of R's answers."""
    shutil.copy(GOLDEN / "data_disc.csv", tmp_path / "disc.csv")


def again_in(report: Path) -> list[str]:
    """The words of the command that a report in Markdown ends with."""
    return shlex.split(report.read_text(encoding="utf-8").splitlines()[-2])


@pytest.mark.parametrize(
    "words",
    [
        ("match", "disc.csv", *COLUMNS, "--outcome", "y", "--exact", "b", "--m=2", "--no-ties"),
        ("match", "disc.csv", "--formula", "treat ~ a + I(b**2)", "--caliper", "0.5,1"),
        ("balance", "disc.csv", *COLUMNS, "--boot", "10", "--propensity"),
        ("balance", *COLUMNS, "--unmatched", "--no-ks", "--boot", "0", "--", "-disc.csv"),
        ("genmatch", "disc.csv", *COLUMNS, "--outcome", "y", *QUICK),
        (
            *("observe", "disc.csv", "--treatment", "treat=1:0", "--outcome", "y", "--difference"),
            *("--cluster", "none", "--covariates", "a,b", "--method", "mahalanobis"),
        ),
    ],
    ids=["match", "formula", "balance", "unmatched", "genmatch", "observe"],
)
def test_the_command_at_the_end_of_a_report_gives_the_same_numbers_again(
    equipoise: Equipoise, tmp_path: Path, words: tuple[str, ...]
) -> None:
    shutil.copy(tmp_path / "disc.csv", tmp_path / "-disc.csv")
    first = equipoise(words[0], "--report", "first.md", "--json", "first.json", *words[1:])
    assert first.status == 0, first.err
    program, *repeated = again_in(tmp_path / "first.md")
    assert program == "equipoise"
    assert "first.json" not in repeated
    second = equipoise(repeated[0], "--json", "second.json", *repeated[1:])
    assert second.status == 0, second.err
    documents = [
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("first", "second")
    ]
    assert documents[0] == documents[1]


def test_match_says_in_markdown_how_it_matched(equipoise: Equipoise, tmp_path: Path) -> None:
    arguments = ("match", "disc.csv", *COLUMNS, "--outcome", "y", "--by", "d", "--estimand", "ATE")
    answer = equipoise(
        *arguments, "--no-replace", "--weights", "w", "--quiet", "--report", "found.md"
    )
    assert answer.status == 0, answer.err
    text = (tmp_path / "found.md").read_text(encoding="utf-8")
    for words in (
        "Each unit is matched with its nearest of the other arm in a, b, c, d",
        "each match is used once, in the order of the rows",
        "only among rows that agree in d",
        "Rows are weighted by w",
        "takes the pairs as independent",
        "**Strata**",
    ):
        assert words in text


def test_the_numbers_are_a_table_with_the_effect_the_covariates_and_the_weights(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    arguments = ("genmatch", "disc.csv", *COLUMNS, "--outcome", "y", *QUICK, "--seed", "1")
    result = json.loads(equipoise(*arguments, "--json", "-", "--report", "found.csv").out)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "found.csv").read_text(encoding="utf-8"))))
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in ("effect", "weight")}
    assert float(by_kind["effect"][1]["estimate"]) == result["effect"]["estimate"]
    assert {row["name"]: float(row["weight"]) for row in by_kind["weight"]} == result["weights"]
    assert [row["sdiff"] for row in rows if row["kind"] == "covariate"] == [
        "" if row["sdiff"] is None else str(row["sdiff"]) for row in result["balance"]
    ]


def test_figures_are_written_each_in_three_forms(equipoise: Equipoise, tmp_path: Path) -> None:
    arguments = ("--treatment", "treat", "--covariates", "a", "--outcome", "y", "--quiet")
    assert equipoise("match", "disc.csv", *arguments, "--figures", "drawn").status == 0
    drawn = {path.name for path in (tmp_path / "drawn").iterdir()}
    assert drawn == {
        f"{name}.{ending}"
        for name in ("effect", "balance", "distribution", "quantiles")
        for ending in ("html", "svg", "png")
    }


@pytest.mark.parametrize("command", ["match", "balance", "genmatch"])
@pytest.mark.parametrize("report", ["page.txt", "no/where.html", "disc.csv"])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    equipoise: Equipoise, tmp_path: Path, command: str, report: str
) -> None:
    answer = equipoise(command, "disc.csv", *COLUMNS, "--report", report, "--json", "found.json")
    assert answer.status == 2
    assert "hint: " in answer.err
    assert not (tmp_path / "found.json").exists()
