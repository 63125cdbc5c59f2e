"""``equipoise match`` and ``equipoise balance`` as a user has them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pexpect
import psutil
import pytest

from packages.equipoise.tests.cli.conftest import ENTRY, Answer, Equipoise, document
from packages.equipoise.tests.programs import finished
from packages.matching.tests.matching.golden import GOLDEN

COLUMNS = ("--treatment", "treat", "--covariates", "a,b,c,d")


@pytest.fixture
def table(tmp_path: Path) -> str:
    """The discrete data of R's answers, as CSV and Parquet."""
    shutil.copy(GOLDEN / "data_disc.csv", tmp_path / "disc.csv")
    pandas.read_csv(tmp_path / "disc.csv").to_parquet(tmp_path / "disc.parquet")
    return "disc.csv"


def test_a_process_of_its_own_says_what_this_one_says(equipoise: Equipoise, table: str) -> None:
    arguments = ("match", table, "--outcome", "y", *COLUMNS, "--json", "-")
    own = finished([*ENTRY, *arguments], cwd=equipoise.folder)
    assert Answer(own.returncode, own.stdout, own.stderr) == equipoise(*arguments)


def test_a_match_loads_neither_ledger_nor_campaign(table: str, tmp_path: Path) -> None:
    arguments = ["match", table, "--outcome", "y", *COLUMNS]
    program = f"""
import sys
from equipoise.cli.main import run
assert run({arguments!r}) == 0
print(*sys.modules)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "equipoise_matching.matching.match" in loaded
    assert not [
        name for name in loaded if name.startswith(("equipoise.ledger", "equipoise.campaign"))
    ]


def test_match_prints_the_effect_and_the_balance(equipoise: Equipoise, table: str) -> None:
    answer = equipoise("match", table, "--outcome", "y", *COLUMNS, "--verbose")
    assert answer.status == 0, answer.err
    for words in ("ATT", "sdiff %", "smallest p-value of balance was 0.000776 (a, t) before"):
        assert words in answer.out


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
    result = document(equipoise("match", table, *COLUMNS, "--json", "-"))
    assert result["estimate"] is None
    assert result["pairs"]


def test_the_options_reach_the_engine(equipoise: Equipoise, table: str) -> None:
    from equipoise_matching.matching.match import match

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
    result = document(
        equipoise(
            *("match", table, *COLUMNS, "--outcome", "y", "--estimand", "ATE", "--m", "2"),
            *("--metric", "mahalanobis", "--exact", "b", "--caliper", "2", "--weights", "w"),
            *("--variance-neighbors", "2", "--variance", "sample", "--bias-adjust"),
            *("--r-compatible", "--json", "-"),
        )
    )
    assert result["estimate"] == expected.estimate
    assert result["se"] == expected.se
    assert result["n_dropped"] == expected.n_dropped


def test_a_propensity_score_can_be_matched_on(equipoise: Equipoise, table: str) -> None:
    from equipoise_matching.matching.match import match
    from equipoise_matching.matching.propensity import propensity_score

    frame = pandas.read_csv(GOLDEN / "data_disc.csv")
    score = propensity_score("treat ~ a + b + c + d", frame).score
    expected = match(frame["y"].to_numpy(), frame["treat"].to_numpy(), score[:, None])
    arguments = ("match", table, *COLUMNS, "--outcome", "y", "--propensity", "--json", "-")
    assert document(equipoise(*arguments))["estimate"] == pytest.approx(expected.estimate, rel=1e-9)


def test_match_by_a_column_matches_inside_its_strata(equipoise: Equipoise, table: str) -> None:
    from equipoise_matching import match_by

    frame = pandas.read_csv(GOLDEN / "data_disc.csv")
    expected = match_by(
        frame["y"], frame["treat"], frame[["a", "c"]], frame[["b", "d"]], estimand="ATE"
    )
    arguments = (
        *("match", table, "--treatment", "treat", "--covariates", "a,c", "--outcome", "y"),
        *("--by", "b,d", "--estimand", "ATE"),
    )
    result = document(equipoise(*arguments, "--json", "-"))
    assert result["estimate"] == expected.estimate
    assert result["se"] == expected.se
    assert result["by"] == ["b", "d"]
    strata = result["strata"]
    assert isinstance(strata, list)
    assert [stratum["values"] for stratum in strata] == [
        list(stratum.values) for stratum in expected.strata
    ]
    assert f"{len(strata)} of b, d" in equipoise(*arguments, "--verbose").out


def test_balance_by_a_column_is_that_of_its_match(equipoise: Equipoise, table: str) -> None:
    arguments = (table, *COLUMNS, "--by", "b", "--json", "-")
    matched = document(equipoise("match", *arguments))
    balanced = document(equipoise("balance", *arguments, "--no-ks"))
    after = [
        [row["sdiff"] for row in found["balance"] if row["when"] == "after"]
        for found in (matched, balanced)
    ]
    assert after[0] == after[1]


def test_quiet_prints_nothing_but_the_document(equipoise: Equipoise, table: str) -> None:
    assert equipoise("match", table, *COLUMNS, "--quiet") == Answer(0, "", "")
    assert document(equipoise("match", table, *COLUMNS, "--quiet", "--json", "-"))["pairs"]


def test_nothing_but_the_result_goes_into_a_pipe(equipoise: Equipoise, table: str) -> None:
    answer = equipoise("match", table, *COLUMNS, "--outcome", "y")
    assert answer.err == ""
    assert "\x1b" not in answer.out


def long_match(folder: Path) -> tuple[str, ...]:
    """A match that takes longer than anybody waits: no tree helps in so many dimensions."""
    rows = 200_000
    x = np.random.default_rng(1).normal(size=(rows, 16)).astype(np.float32)
    columns = {f"x{place}": x[:, place] for place in range(16)}
    frame = pandas.DataFrame({"t": np.arange(rows) % 2, **columns})
    frame.to_parquet(folder / "long.parquet")
    covariates = ",".join(columns)
    return ("match", "long.parquet", "--treatment", "t", "--covariates", covariates)


def test_a_long_match_shows_the_time_left_on_a_terminal_and_stops_at_once_when_told(
    tmp_path: Path,
) -> None:
    arguments = long_match(tmp_path)
    terminal = pexpect.spawn(
        ENTRY[0],
        [*ENTRY[1:], *arguments, "--threads", "1", "--estimand", "ATE"],
        cwd=str(tmp_path),
        env={**os.environ, "TERM": "xterm"},
        dimensions=(40, 100),
        timeout=600,
        encoding="utf-8",
    )
    terminal.expect(r"matching[\s\S]*%[\s\S]*\d:\d\d[\s\S]*left")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130


def test_a_long_match_in_a_pipe_stops_at_once_when_told(tmp_path: Path) -> None:
    arguments = long_match(tmp_path)
    running = subprocess.Popen(
        [*ENTRY, *arguments, "--estimand", "ATE", "--no-replace", "--threads", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process = psutil.Process(running.pid)
    while running.poll() is None and process.cpu_times().user < 3.0:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=600)
    assert (running.returncode, out, err.strip()) == (130, "", "")


def test_balance_before_matching_is_that_of_r(equipoise: Equipoise, table: str) -> None:
    arguments = ("balance", table, *COLUMNS, "--unmatched", "--boot", "0", "--json", "-")
    result = document(equipoise(*arguments))
    assert result["schema"] == "equipoise.balance/1"
    assert result["smallest_p_after"] is None
    rows = result["balance"]
    assert isinstance(rows, list)
    r = json.loads((GOLDEN / "balance.json").read_text())["disc"]["before"]
    assert [row["sdiff"] for row in rows] == pytest.approx([row["sdiff"] for row in r[:4]])


def test_one_seed_gives_one_balance(equipoise: Equipoise, table: str) -> None:
    arguments = ("balance", table, *COLUMNS, "--boot", "50", "--seed", "7", "--json", "-")
    assert equipoise(*arguments).out == equipoise(*arguments).out != ""


def test_the_love_plot_is_written(equipoise: Equipoise, table: str, tmp_path: Path) -> None:
    answer = equipoise("balance", table, *COLUMNS, "--boot", "0", "--plot", "love.html")
    assert answer.status == 0, answer.err
    assert "after matching" in (tmp_path / "love.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("match", "gone.csv", *COLUMNS), "gone.csv: there is no such file"),
        (
            ("match", "disc.xlsx", *COLUMNS),
            "a table cannot be read from a file with the ending '.xlsx'",
        ),
        (("match", "disc.csv", "--treatment", "treat"), "--covariates is missing"),
        (("match", "disc.csv", "--covariates", "a"), "--treatment is missing"),
        (
            ("match", "disc.csv", *COLUMNS, "--formula", "treat ~ a"),
            "--formula cannot be combined with",
        ),
        (("match", "disc.csv", "--formula", "treat ~ a +* b"), "Operator `+*` is incorrectly used"),
        (
            ("match", "disc.csv", "--treatment", "treat", "--covariates", "treat,a"),
            "treat is both the treatment and a covariate",
        ),
        (("match", "disc.csv", *COLUMNS, "--outcome", "z"), "no column z"),
        (("match", "disc.csv", *COLUMNS, "--by", "z"), "no column z"),
        (("match", "disc.csv", *COLUMNS, "--by", "a,,b"), "an empty name"),
        (
            ("match", "disc.csv", *COLUMNS, "--by", "a", "--common-support"),
            "cannot be used with --by",
        ),
        (
            ("match", "disc.csv", *COLUMNS, "--by", "a", "--bias-adjust", "--outcome", "y"),
            "cannot be used with --by",
        ),
        (("match", "disc.csv", *COLUMNS, "--exact", "z"), "--exact: there is no covariate z"),
        (("match", "disc.csv", *COLUMNS, "--caliper", "1,2"), "2 numbers for 4 covariates"),
        (("match", "disc.csv", *COLUMNS, "--caliper", "nan"), "nan"),
        (("match", "disc.csv", *COLUMNS, "--bias-adjust"), "needs an outcome"),
        (("balance", "disc.csv", *COLUMNS, "--boot", "3"), "boot=3"),
        (("balance", "disc.csv", *COLUMNS, "--plot", "no/love.html"), "there is no folder"),
        (("balance", "disc.csv", "--treatment", "a", "--covariates", "b"), "neither 0 nor 1"),
        (("balance", "ragged.csv", *COLUMNS), "ragged.csv: line 3 has 1 cells"),
        (("balance", "twice.csv", *COLUMNS), "more than one column a"),
        (("balance", "empty.csv", *COLUMNS), "no row"),
        (("balance", "gaps.csv", "--treatment", "t", "--covariates", "x"), "missing in row 1"),
        (("balance", "noise.parquet", *COLUMNS), "noise.parquet"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(
    equipoise: Equipoise, table: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "gaps.csv").write_text("t,x\n1,2\n0,\n1,4\n0,1\n")
    (tmp_path / "noise.parquet").write_bytes(b"no parquet")
    (tmp_path / "disc.xlsx").write_bytes(b"")
    answer = equipoise(*arguments)
    assert answer.status == 2
    assert answer.out == ""
    assert words in answer.err
    assert len(answer.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {}),
        (("--r-compatible",), {"r_compatible": True}),
        (("--variance-neighbors", "0"), {"variance_neighbors": 0}),
        (("--r-compatible", "--variance-neighbors", "3"), {}),
    ],
)
@pytest.mark.parametrize("by", [False, True])
def test_the_command_has_the_defaults_of_match_for_the_variance(
    equipoise: Equipoise, table: str, given: tuple[str, ...], named: dict[str, Any], by: bool
) -> None:
    from equipoise_matching import match, match_by

    if "3" in given:
        named = {"r_compatible": True, "variance_neighbors": 3}
    frame = pandas.read_csv(GOLDEN / "data_disc.csv")
    units = (frame["y"], frame["treat"], frame[["a", "c"]].to_numpy(dtype=float))
    expected = match_by(*units, frame["b"], ties=True, **named) if by else match(*units, **named)
    asked = ("match", table, "--treatment", "treat", "--covariates", "a,c", "--outcome", "y")
    result = document(equipoise(*asked, *(("--by", "b") if by else ()), *given, "--json", "-"))
    assert result["se"] == expected.se
    assert result["variance_neighbors"] == expected.variance_neighbors
    assert result["n_without_neighbors"] == expected.n_without_neighbors
    assert expected.variance_neighbors == (
        named.get("variance_neighbors", 0 if "r_compatible" in named else 2)
    )
