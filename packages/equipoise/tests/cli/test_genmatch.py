"""``equipoise genmatch`` as a user has it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pexpect
import pytest

from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise, document
from packages.equipoise.tests.clusters import local_cluster
from packages.matching.tests.matching.golden import GOLDEN

ARGUMENTS = ("--treatment", "treat", "--covariates", "a,b,c,d", "--seed", "3")
QUICK = ("--population", "20", "--generations", "3", "--hard-limit")


@pytest.fixture
def table(tmp_path: Path) -> str:
    """The discrete data of R's answers."""
    shutil.copy(GOLDEN / "data_disc.csv", tmp_path / "disc.csv")
    return "disc.csv"


def test_genmatch_prints_weights_effect_and_balance_and_nothing_else(
    equipoise: Equipoise, table: str
) -> None:
    answer = equipoise("genmatch", table, "--outcome", "y", *ARGUMENTS, *QUICK, "--verbose")
    assert answer.status == 0, answer.err
    assert answer.err == ""
    assert re.search(
        r"Weights of the standardised covariates\ncovariate +weight\na +\d", answer.out
    )
    for words in ("Smallest p-value", "Estimate", "sdiff %", "smallest p-value of balance was"):
        assert words in answer.out


def test_quiet_prints_nothing_and_writes_the_document(equipoise: Equipoise, table: str) -> None:
    answer = equipoise("genmatch", table, *ARGUMENTS, *QUICK, "--quiet", "--json", "found.json")
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert json.loads((equipoise.folder / "found.json").read_text())["weights"]


def test_the_options_reach_the_search(equipoise: Equipoise, table: str) -> None:
    from equipoise_matching import match
    from equipoise_matching.matching.gen_match import gen_match

    frame = pandas.read_csv(GOLDEN / "data_disc.csv")
    x = frame[["a", "b", "c", "d"]].astype(float)
    how: dict[str, Any] = {
        "estimand": "ATE",
        "m": 2,
        "exact": [False, True, False, False],
        "caliper": 2.0,
        "weights": frame["w"],
        "r_compatible": True,
    }
    expected = gen_match(
        frame["treat"],
        x,
        x[["a", "b"]].assign(product=x["a"] * x["b"]),
        population=14,
        generations=2,
        wait_generations=1,
        hard_generation_limit=True,
        loss=2,
        boot=12,
        seed=3,
        **how,
    )
    result = document(
        equipoise(
            *("genmatch", table, *ARGUMENTS, "--outcome", "y", "--estimand", "ATE", "--m", "2"),
            *("--exact", "b", "--caliper", "2", "--weights", "w", "--r-compatible"),
            *("--balance", "a + b + a:b", "--population", "14", "--generations", "2"),
            *("--wait", "1", "--hard-limit", "--loss", "2", "--boot", "12", "--json", "-"),
        )
    )
    assert result["schema"] == "equipoise.genmatch/1"
    assert list(result["weights"].values()) == expected.weights.tolist()
    assert result["fitness"] == expected.fitness.tolist()
    assert [row["weights"] for row in result["history"]] == [
        generation.parameters.tolist() for generation in expected.history
    ]
    effect = match(frame["y"], frame["treat"], x, metric=expected.to_metric(), **how)
    assert result["effect"]["estimate"] == effect.estimate
    assert result["effect"]["se"] == effect.se
    assert [row["variable"] for row in result["balance"][::2]] == ["a", "b", "a:b"]


def test_a_formula_names_covariates_and_a_seed_gives_one_document(
    equipoise: Equipoise, table: str
) -> None:
    by_formula = ("--formula", "treat ~ a + b + c + d", "--seed", "3")
    one, two, other = (
        equipoise("genmatch", table, *arguments, *QUICK, "--json", "-").out
        for arguments in (ARGUMENTS, by_formula, (*by_formula[:2], "--seed", "4"))
    )
    assert one == two != ""
    assert json.loads(other)["weights"] != json.loads(one)["weights"]


def test_without_an_outcome_there_is_no_effect(equipoise: Equipoise, table: str) -> None:
    result = document(equipoise("genmatch", table, *ARGUMENTS, *QUICK, "--json", "-"))
    assert result["effect"] is None
    assert result["pairs"]


def test_the_course_of_the_search_is_drawn(equipoise: Equipoise, table: str) -> None:
    answer = equipoise("genmatch", table, *ARGUMENTS, *QUICK, "--plot", "course.svg")
    assert answer.status == 0, answer.err
    assert "Balance along the search" in (equipoise.folder / "course.svg").read_text()


def test_a_scheduler_evaluates_and_changes_nothing(equipoise: Equipoise, table: str) -> None:
    arguments = ("genmatch", table, *ARGUMENTS, *QUICK, "--json", "-")
    with local_cluster(1, equipoise.folder / "dask") as address:
        there = equipoise(*arguments, "--cluster", address)
    assert there.status == 0, there.err
    assert there.out == equipoise(*arguments).out


def test_a_scheduler_that_nobody_runs_is_named(equipoise: Equipoise, table: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        answer = equipoise("genmatch", table, *ARGUMENTS, "--cluster", address)
    assert answer.status == 2
    assert f"the scheduler at {address} cannot be reached" in answer.err
    assert "hint: start a scheduler with `dask scheduler`" in answer.err
    assert len(answer.err.splitlines()) == 2


def test_the_help_says_what_trust_a_scheduler_needs(equipoise: Equipoise) -> None:
    answer = " ".join(equipoise("genmatch", "--help").out.split())
    assert "can run code as you" in answer
    assert "--tls-ca FILE.pem" in answer


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--exact", "z"), "--exact: there is no covariate z"),
        (("--balance", "a + nothing"), "nothing"),
        (("--population", "1"), "population"),
        (("--fitness", "best"), "best"),
        (("--by", "a"), "No such option '--by'"),
        (("--cluster", "garbage"), "'garbage' is not the address of a scheduler"),
        (("--cluster", "tls://h:1", "--tls-ca", "x"), "these are missing: --tls-cert, --tls-key"),
        (("--cluster", "tcp://192.0.2.1:8786"), "is unprotected"),
        (("--cluster", "ssh:nowhere.txt"), "the file nowhere.txt with the hosts"),
        (("--insecure",), "--insecure is given without --cluster"),
        (("--tls-key", "x"), "TLS files are given without --cluster"),
        (("--plot", "missing/course.svg"), "missing"),
    ],
)
def test_unusable_input_is_named(
    equipoise: Equipoise, table: str, arguments: tuple[str, ...], told: str
) -> None:
    answer = equipoise("genmatch", table, *ARGUMENTS, *arguments)
    assert answer.status == 2
    assert told in answer.err
    assert answer.out == ""


@pytest.fixture
def endless(tmp_path: Path) -> Any:
    """A search on a terminal that would go on for hours."""
    generator = np.random.default_rng(2)
    columns = {name: generator.normal(size=300) for name in "abcd"}
    treat = generator.uniform(size=300) < 0.4
    pandas.DataFrame({"treat": treat.astype(int), **columns}).to_csv(tmp_path / "many.csv")
    limits = ("--population", "500", "--generations", "100000", "--wait", "100000")
    terminal = pexpect.spawn(
        ENTRY[0],
        [*ENTRY[1:], "genmatch", "many.csv", *ARGUMENTS, *limits],
        cwd=str(tmp_path),
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
        dimensions=(40, 120),
        timeout=600,
        encoding="utf-8",
    )
    yield terminal
    terminal.close(force=True)


def test_a_terminal_shows_the_generation_the_best_and_the_time_left_and_ctrl_c_ends_it(
    endless: Any,
) -> None:
    endless.expect(r"generation [1-9]\d*/100000, smallest p \d\.[\d]+(e-\d+)?, at most [\d:]+ left")
    endless.sendintr()
    endless.expect(pexpect.EOF)
    assert "Traceback" not in str(endless.before)
    endless.close()
    assert endless.exitstatus == 130
