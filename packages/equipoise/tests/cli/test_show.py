"""`equipoise show A B`: two campaigns of the ledger held against each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.ledger import open_for_writing
from equipoise.model.plan import Plan
from equipoise.model.record import Draw
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.plans import plan_of, trial_of


def record(
    path: Path, plan: Plan, kernel: str, *, factor: float = 1.0, timed_out: int | None = None
) -> str:
    """A campaign of thirty blocks, later than all others; its trials take ``factor`` times as long.

    In block ``timed_out`` the second condition timed out.
    """
    with open_for_writing(path, durable=False) as ledger:
        started_at = 1.7e9 + 1000 * len(ledger.runs())
        run_id = ledger.begin_run(plan, {"kernel": kernel, "boot_id": kernel}, started_at)
        for block in range(1, 31):
            draw = Draw("measured", block, (0, 1) if block % 2 else (1, 0), 0)
            ledger.record_draw(run_id, draw)
            for place in (0, 1):
                wall = factor * (1.0 + 0.1 * draw.order[place] + 0.01 * (block * 7 % 5))
                late = block == timed_out and draw.order[place] == 1
                ended = "timed out after 1 s" if late else None
                trial = trial_of(draw, place, wall, failure=ended, timed_out=late)
                ledger.record_trial(run_id, trial)
        ledger.end_segment(run_id, 1, started_at + 100, "decided")
    return run_id


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def shown(equipoise: Equipoise, *arguments: str) -> dict[str, Any]:
    answer = equipoise("show", *arguments, "--ledger", "ledger.db", "--json", "-")
    assert answer.status == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def test_the_second_campaign_is_held_against_the_first(equipoise: Equipoise, ledger: Path) -> None:
    there = record(ledger, plan_of("a", "b"), "6.1")
    here = record(ledger, plan_of("a", "b"), "6.1", factor=1.5)
    document = shown(equipoise, there, here)
    assert document["run"]["id"] == here
    held = document["against"]
    assert held["run"] == there
    assert [(row["name"], row["metric"]) for row in held["rows"]] == [
        ("a", "wall_s"),
        ("b", "wall_s"),
    ]
    assert [row["ratio"] for row in held["rows"]] == pytest.approx([1.5, 1.5])
    assert [row["changed"] for row in held["rows"]] == [True, True]
    assert "not interleaved" in held["scope"]
    screen = equipoise("show", there, "last", "--ledger", "ledger.db").out
    assert f"Against run {there}" in screen and "costs more" in screen


def test_differences_are_refused_in_one_line_and_allowed_by_name_with_a_warning(
    equipoise: Equipoise, ledger: Path
) -> None:
    runs = [record(ledger, plan_of("a", "b"), kernel) for kernel in ("6.1", "6.8")]
    for allowed in ((), ("--allow", "cpu_model")):
        answer = equipoise("show", *runs, *allowed, "--ledger", "ledger.db")
        assert (answer.status, answer.out) == (2, "")
        assert "different environments (kernel: 6.1, 6.8)" in answer.err
        assert "or allow the difference with --allow kernel" in answer.err
    document = shown(equipoise, *runs, "--allow", "kernel")
    assert [
        warning["summary"] for warning in document["warnings"] if warning["code"] == "environment"
    ] == ["the campaigns differ in kernel (6.1, 6.8), which was allowed"]


def test_a_stored_result_is_listed_with_what_differs_and_refused_only_when_asked(
    equipoise: Equipoise, ledger: Path, tmp_path: Path
) -> None:
    there = record(ledger, plan_of("a", "b"), "6.1")
    (tmp_path / "there.json").write_text(json.dumps(shown(equipoise, there)), encoding="utf-8")
    record(ledger, plan_of("a", "b"), "6.8")
    arguments = ("last", "--against", "there.json")
    document = shown(equipoise, *arguments)
    assert [difference["name"] for difference in document["against"]["differences"]] == ["kernel"]
    assert "environment" not in [warning["code"] for warning in document["warnings"]]
    refused = equipoise("show", *arguments, "--allow", "cpu_model", "--ledger", "ledger.db")
    assert refused.status == 2
    assert "--allow kernel" in refused.err


def test_a_condition_with_a_trial_that_timed_out_has_no_ratio(
    equipoise: Equipoise, ledger: Path
) -> None:
    there = record(ledger, plan_of("a", "b"), "6.1", timed_out=4)
    here = record(ledger, plan_of("a", "b"), "6.1")
    rows = {row["name"]: row for row in shown(equipoise, there, here)["against"]["rows"]}
    assert rows["a"]["ratio"] == pytest.approx(1.0)
    assert rows["b"]["ratio"] is None
    assert rows["b"]["unknown"] == "there: 1 of 30 trials have no wall_s above 0"


def test_a_condition_of_another_name_is_found_by_its_command(
    equipoise: Equipoise, ledger: Path
) -> None:
    there = plan_of("a", "b")
    renamed = (replace(there.conditions[0], name="before"), there.conditions[1])
    runs = [
        record(ledger, plan, "6.1", factor=factor)
        for plan, factor in ((there, 1.0), (replace(there, conditions=renamed), 2.0))
    ]
    rows = shown(equipoise, *runs)["against"]["rows"]
    assert [row["name"] for row in rows] == ["before", "b"]
    assert rows[0]["ratio"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("last", "last", "--pool"), "remove --pool"),
        (("last", "--allow", "kernel"), "--allow needs a second result"),
    ],
)
def test_arguments_that_make_no_question_are_refused(
    equipoise: Equipoise, ledger: Path, arguments: tuple[str, ...], words: str
) -> None:
    record(ledger, plan_of("a", "b"), "6.1")
    answer = equipoise("show", *arguments, "--ledger", "ledger.db")
    assert answer.status == 2
    assert words in answer.err
