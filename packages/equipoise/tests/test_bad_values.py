"""A bad value gets the same error on the command line and in Python, before any trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.shared.spelling import command_line_spelling
from packages.equipoise.tests.cli.conftest import Answer, equipoise

__all__ = ["equipoise"]

MAX_SEED = 2**63 - 1

BAD_NUMBERS = [
    ("blocks", -1, "from 1 to 1000000000"),
    ("blocks", 0, "from 1 to 1000000000"),
    ("blocks", 10**12, "from 1 to 1000000000"),
    ("min_blocks", 0, "from 1 to 1000000000"),
    ("min_seconds", -1, "from 0 up"),
    ("budget", float("nan"), "above 0"),
    ("budget", float("inf"), "above 0"),
    ("budget", 0.0, "above 0"),
    ("precision", -2.0, "above 0"),
    ("alpha", 0, "above 0 and at most 0.5"),
    ("alpha", 1, "above 0 and at most 0.5"),
    ("alpha", float("nan"), "above 0 and at most 0.5"),
    ("min_effect", -1.0, "from 0 to 1000"),
    ("min_effect", 1001, "from 0 to 1000"),
    ("timeout", 0, "above 0"),
    ("timeout", float("inf"), "above 0"),
    ("warmup", -1, "from 0 to 1000"),
    ("seed", -1, f"from 0 to {MAX_SEED}"),
    ("seed", MAX_SEED + 1, f"from 0 to {MAX_SEED}"),
    ("layouts", 1, "from 2 to 1000"),
]


def python_error(ledger: Path, *commands: Any, **values: Any) -> tuple[str, str | None]:
    """Return the message and the hint that ``eq.compare`` raises."""
    with pytest.raises(eq.EquipoiseError) as caught:
        eq.compare(*(commands or ("true", "true")), ledger=ledger, **values)
    assert not ledger.exists()
    return caught.value.what, caught.value.hint


def printed_error(answer: Answer) -> tuple[str, str | None]:
    """Return the error that the command line prints, and its hint."""
    assert answer.status == 2, answer
    what, _, hint = answer.err.strip().partition("\n  hint: ")
    return what.removeprefix("equipoise: "), hint


@pytest.mark.parametrize(("name", "value", "accepted"), BAD_NUMBERS)
def test_a_number_out_of_range(
    equipoise: Any, tmp_path: Path, name: str, value: float, accepted: str
) -> None:
    what, hint = python_error(tmp_path / "l.db", **{name: value})
    assert what == f"{name}={value} is out of range"
    assert hint is not None
    assert hint.endswith(accepted)
    option = f"--{name.replace('_', '-')}"
    printed, printed_hint = printed_error(equipoise("compare", "true", "true", option, str(value)))
    assert (printed, printed_hint) == (f"{option} {value} is out of range", hint)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [("blocks", 1.5, "whole number"), ("alpha", "small", "number"), ("seed", "x", "whole number")],
)
def test_values_that_are_not_numbers_are_refused(
    equipoise: Any, tmp_path: Path, name: str, value: Any, kind: str
) -> None:
    what, hint = python_error(tmp_path / "l.db", **{name: value})
    assert what == f"{name}={value} is not a {kind}"
    answer = equipoise("compare", "true", "true", f"--{name}", str(value))
    assert printed_error(answer) == (f"--{name} {value} is not a {kind}", hint)


@pytest.mark.parametrize(
    ("python", "line", "named"),
    [
        ({"metrics": ("wall_s", "")}, ["--metrics", "wall_s,"], "a name in the list of metrics"),
        ({"metrics": (" ",)}, ["--metrics", " "], "a name in the list of metrics"),
        ({"min_blocks": 9, "blocks": 8}, ["--min-blocks", "9", "--blocks", "8"], "minimum of 9"),
        ({"names": ("a", "b", "c")}, ["-n", "a", "-n", "b", "-n", "c"], "3 names for 2 commands"),
        ({"environments": {3: {"A": "1"}}}, ["--env", "3:A=1"], "names no condition: '3'"),
        ({"environments": {1: {"": "1"}}}, ["--env", "1:=1"], "not of the form WHICH:KEY=VALUE"),
        ({"aslr": "on"}, ["--aslr", "on"], "but there are no layouts"),
        ({"layouts": 2, "aslr": "x"}, ["--layouts", "2", "--aslr", "x"], "there is no such choice"),
        ({"layouts": 8, "blocks": 9}, ["--layouts", "8", "--blocks", "9"], "too few for 8 layouts"),
    ],
)
def test_options_that_make_no_plan(
    equipoise: Any, tmp_path: Path, python: dict[str, Any], line: list[str], named: str
) -> None:
    error = python_error(tmp_path / "l.db", **python)
    assert named in error[0]
    assert "--" not in f"{error}"
    with command_line_spelling():
        error = python_error(tmp_path / "l.db", **python)
    assert printed_error(equipoise("compare", "true", "true", *line)) == error


@pytest.mark.parametrize(
    ("commands", "named"),
    [
        ((), "compare needs a command"),
        (("true", ""), "a command is empty"),
        (("true", "no-such-program"), "there is no program 'no-such-program'"),
        (("true", "echo 'a"), "cannot split the command"),
    ],
)
def test_commands_that_make_no_plan(
    equipoise: Any, tmp_path: Path, commands: tuple[str, ...], named: str
) -> None:
    ledger = tmp_path / "l.db"
    with pytest.raises(eq.EquipoiseError) as caught:
        eq.compare(*commands, ledger=ledger)
    assert named in caught.value.what
    assert printed_error(equipoise("compare", *commands)) == (caught.value.what, caught.value.hint)


def test_no_metric_at_all(tmp_path: Path) -> None:
    what, hint = python_error(tmp_path / "l.db", metrics=())
    assert what == "no metric is named"
    assert hint is not None


def test_an_unknown_metric_is_refused_by_the_first_trial(equipoise: Any, tmp_path: Path) -> None:
    with pytest.raises(eq.EquipoiseError) as caught:
        eq.compare("true", "true", metrics=("speed",), seed=1, ledger=tmp_path / "l.db")
    assert "has no speed" in caught.value.what
    answer = equipoise("compare", "true", "true", "--metrics", "speed", "--seed", "1")
    assert printed_error(answer) == (caught.value.what, caught.value.hint)


def test_a_repeated_name_counts_once(tmp_path: Path) -> None:
    result = eq.compare(
        *("true", "true"),
        names=("a", "a"),
        metrics=("wall_s", "user_s", "wall_s"),
        blocks=2,
        ledger=tmp_path / "l.db",
    )
    assert [condition.name for condition in result.document.conditions] == ["a", "a (2)"]
    assert [comparison.metric for comparison in result.document.comparisons] == ["wall_s", "user_s"]
