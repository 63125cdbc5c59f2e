"""``equipoise match`` and ``equipoise balance`` as a user has them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas
import pytest

from tests.cli.conftest import Equipoise, Said
from tests.matching.r_balance import GOLDEN

COLUMNS = ("--treatment", "treat", "--covariates", "a,b,c,d")


@pytest.fixture
def table(tmp_path: Path) -> str:
    """The discrete data of R's answers, as CSV and Parquet."""
    shutil.copy(GOLDEN / "data_disc.csv", tmp_path / "disc.csv")
    pandas.read_csv(tmp_path / "disc.csv").to_parquet(tmp_path / "disc.parquet")
    return "disc.csv"


def document(said: Said) -> dict[str, object]:
    assert said.status == 0, said.err
    parsed: dict[str, object] = json.loads(said.out)
    return parsed


def test_match_prints_the_effect_and_the_balance(equipoise: Equipoise, table: str) -> None:
    said = equipoise("match", table, "--outcome", "y", *COLUMNS)
    assert said.status == 0, said.err
    for words in ("ATT", "sdiff %", "smallest p-value before", "smallest p-value after"):
        assert words in said.out


def test_csv_and_parquet_and_formula_give_one_document(equipoise: Equipoise, table: str) -> None:
    common = ("--outcome", "y", "--json", "-")
    csv, parquet, formula = (
        document(equipoise("match", *arguments, *common))
        for arguments in (
            (table, *COLUMNS),
            ("disc.parquet", *COLUMNS),
            (table, "--formula", "treat ~ a + b + c + d"),
        )
    )
    assert csv["schema"] == "equipoise.match/1"
    assert csv == parquet == formula


def test_match_works_without_an_outcome(equipoise: Equipoise, table: str) -> None:
    found = document(equipoise("match", table, *COLUMNS, "--json", "-"))
    assert found["estimate"] is None
    assert found["pairs"]


def test_the_options_reach_the_engine(equipoise: Equipoise, table: str) -> None:
    from equipoise.matching.match import match

    frame = pandas.read_csv(GOLDEN / "data_disc.csv")
    expected = match(
        frame["y"].to_numpy(),
        frame["treat"].to_numpy(),
        frame[["a", "b", "c", "d"]].to_numpy(dtype=float),
        estimand="ATE",
        m=2,
        metric="mahalanobis",
        exact=[False, True, False, False],
        caliper=2.0,
        weights=frame["w"].to_numpy(),
        variance_neighbors=2,
        variance="sample",
        bias_adjust=True,
        r_compatible=True,
    )
    found = document(
        equipoise(
            *("match", table, *COLUMNS, "--outcome", "y", "--estimand", "ATE", "--m", "2"),
            *("--metric", "mahalanobis", "--exact", "b", "--caliper", "2", "--weights", "w"),
            *("--variance-neighbors", "2", "--variance", "sample", "--bias-adjust"),
            *("--r-compatible", "--json", "-"),
        )
    )
    assert found["estimate"] == expected.estimate
    assert found["se"] == expected.se
    assert found["n_dropped"] == expected.n_dropped


def test_a_propensity_score_can_be_matched_on(equipoise: Equipoise, table: str) -> None:
    from equipoise.matching.match import match
    from equipoise.matching.propensity import propensity_score

    frame = pandas.read_csv(GOLDEN / "data_disc.csv")
    score = propensity_score("treat ~ a + b + c + d", frame).score
    expected = match(frame["y"].to_numpy(), frame["treat"].to_numpy(), score[:, None])
    asked = ("match", table, *COLUMNS, "--outcome", "y", "--propensity", "--json", "-")
    assert document(equipoise(*asked))["estimate"] == pytest.approx(expected.estimate, rel=1e-9)


def test_balance_before_matching_is_that_of_r(equipoise: Equipoise, table: str) -> None:
    asked = ("balance", table, *COLUMNS, "--unmatched", "--boot", "0", "--json", "-")
    found = document(equipoise(*asked))
    assert found["schema"] == "equipoise.balance/1"
    assert found["smallest_p_after"] is None
    rows = found["balance"]
    assert isinstance(rows, list)
    r = json.loads((GOLDEN / "balance.json").read_text())["disc"]["before"]
    assert [row["sdiff"] for row in rows] == pytest.approx([one["sdiff"] for one in r[:4]])


def test_one_seed_gives_one_balance(equipoise: Equipoise, table: str) -> None:
    asked = ("balance", table, *COLUMNS, "--boot", "50", "--seed", "7", "--json", "-")
    assert equipoise(*asked).out == equipoise(*asked).out != ""


def test_the_love_plot_is_written(equipoise: Equipoise, table: str, tmp_path: Path) -> None:
    said = equipoise("balance", table, *COLUMNS, "--boot", "0", "--plot", "love.html")
    assert said.status == 0, said.err
    assert "after matching" in (tmp_path / "love.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("match", "gone.csv", *COLUMNS), "gone.csv: there is no such file"),
        (("match", "disc.xlsx", *COLUMNS), "no table is read from '.xlsx'"),
        (("match", "disc.csv", "--treatment", "treat"), "--covariates is missing"),
        (("match", "disc.csv", "--covariates", "a"), "--treatment is missing"),
        (("match", "disc.csv", *COLUMNS, "--formula", "treat ~ a"), "itself"),
        (("match", "disc.csv", *COLUMNS, "--outcome", "z"), "no column z"),
        (("match", "disc.csv", *COLUMNS, "--exact", "z"), "--exact: z is not matched on"),
        (("match", "disc.csv", *COLUMNS, "--caliper", "1,2"), "2 numbers for 4 covariates"),
        (("match", "disc.csv", *COLUMNS, "--caliper", "nan"), "nan"),
        (("match", "disc.csv", *COLUMNS, "--bias-adjust"), "no outcome"),
        (("balance", "disc.csv", *COLUMNS, "--boot", "3"), "boot=3"),
        (("balance", "disc.csv", *COLUMNS, "--plot", "no/love.html"), "there is no folder"),
        (("balance", "disc.csv", "--treatment", "a", "--covariates", "b"), "neither 0 nor 1"),
        (("balance", "ragged.csv", *COLUMNS), "ragged.csv"),
        (("balance", "twice.csv", *COLUMNS), "more than one column a"),
        (("balance", "empty.csv", *COLUMNS), "no row"),
        (("balance", "gaps.csv", "--treatment", "t", "--covariates", "x"), "missing in row 1"),
        (("balance", "noise.parquet", *COLUMNS), "noise.parquet"),
    ],
)
def test_bad_input_is_one_line_and_a_mend(
    equipoise: Equipoise, table: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "gaps.csv").write_text("t,x\n1,2\n0,\n1,4\n0,1\n")
    (tmp_path / "noise.parquet").write_bytes(b"no parquet")
    (tmp_path / "disc.xlsx").write_bytes(b"")
    said = equipoise(*arguments)
    assert said.status == 2
    assert said.out == ""
    assert words in said.err
    assert len(said.err.splitlines()) <= 2
