"""A number that nothing can be allocated for is refused at once, with the largest that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise

TABLE = ("--treatment", "treat", "--covariates", "x", "--quiet")
COUNTLESS = "makes 1000000000000000 or more values"
HUGE = "99999999999999999999999"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("balance", "t.csv", *TABLE, "--boot", "1000000000000"), "give at most 1000000"),
        (("balance", "t.csv", *TABLE, "--boot", HUGE), "give at most 1000000"),
        (
            ("genmatch", "t.csv", *TABLE, "--population", "100000000000"),
            "a whole number from 2 to 1000000",
        ),
        (("genmatch", "t.csv", *TABLE, "--population", HUGE), "a whole number from 2 to 1000000"),
        (
            ("genmatch", "t.csv", *TABLE, "--generations", HUGE),
            "a whole number from 1 to 1000000000",
        ),
        (("genmatch", "t.csv", *TABLE, "--wait", HUGE), "a whole number from 0 to 1000000000"),
        (("genmatch", "t.csv", *TABLE, "--boot", HUGE), "a whole number from 0 to 1000000"),
        (("match", "t.csv", *TABLE, "--threads", HUGE), "a whole number from 1 to 2^63 - 1"),
        (("compare", "true", "true", "--blocks", HUGE), "from 1 to 1000000000"),
        (("compare", "true", "true", "--min-blocks", HUGE), "from 1 to 1000000000"),
        (("os", "--blocks", HUGE), "from 1 to 1000000000"),
        (
            ("compare", "echo {n}", "-P", "n", "0", "1e999999999"),
            COUNTLESS,
        ),
        (
            ("compare", "echo {n}", "-P", "n", "0", "1e99999"),
            COUNTLESS,
        ),
        (
            ("compare", "echo {n}", "-P", "n", "0", "1e9", "-D", "1e-999999999"),
            COUNTLESS,
        ),
    ],
)
def test_an_absurd_number_is_refused_before_anything_is_allocated(
    arguments: tuple[str, ...], what: str, equipoise: Equipoise, tmp_path: Path
) -> None:
    rows = "".join(f"{unit % 2},{unit}\n" for unit in range(20))
    (tmp_path / "t.csv").write_text(f"treat,x\n{rows}", encoding="ascii")
    answer = equipoise(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert what in answer.err
