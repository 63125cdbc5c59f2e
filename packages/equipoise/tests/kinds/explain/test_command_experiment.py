"""`equipoise why` tries interventions on both conditions, and reports what they close."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from equipoise.kinds.explain.terms import experiment_of
from equipoise.ledger import open_for_reading
from equipoise.model.record import RunRecord
from packages.equipoise.tests.cli.conftest import Equipoise, result_of
from packages.equipoise.tests.measure.killed_campaign import killed_campaign
from packages.equipoise.tests.schema import valid_result
from packages.equipoise.tests.why.planted.pairs import SOURCES

PAUSES = ("sleep 0.001", "sh -c 'sleep ${PAUSE:-0.03}'")
FEW_OBSERVATIONS = ("--sources", "system_calls", "--repetitions", "2")
SHORT = ("--try", "short:PAUSE=0.001")


@pytest.fixture
def gap(equipoise: Equipoise, tmp_path: Path) -> str:
    """The run of a campaign whose gap is called."""
    named = ("-n", "quick", "-n", "pausing", "--seed", "5", "--blocks", "14", "--warmup", "0")
    answer = equipoise("compare", *PAUSES, *named, "--quiet")
    assert answer.status == 0, answer.err
    return last(tmp_path).id


def last(folder: Path) -> RunRecord:
    with open_for_reading(folder / ".equipoise" / "ledger.db") as ledger:
        return ledger.read_run("last")


def why_of(text: str) -> list[Any]:
    return [cause for cause in valid_result(text)["why"] if cause["cause"] == "tried_by_user"]


def test_a_user_s_intervention_is_a_campaign_that_resumes_and_is_shown(
    equipoise: Equipoise, tmp_path: Path, gap: str
) -> None:
    """Three blocks cannot call a gap, so there is no share, but a reason."""
    others = ("--only", "never_mmap", "--try-command", "broken=false")
    answer = equipoise("why", gap, *others, *SHORT, *FEW_OBSERVATIONS, "--blocks", "3")
    assert answer.status == 0, answer.err
    assert "testing by interventions on both: " in answer.err
    assert "undecided after 3 blocks of this campaign" in answer.out
    assert "broken: a condition with this change failed: exit status 1" in answer.out
    assert "No tested intervention closes the gap" in answer.out
    record = last(tmp_path)
    assert experiment_of(record.plan).run == gap
    assert [condition.name for condition in record.plan.conditions[4:6]] == [
        "quick, with short",
        "pausing, with short",
    ]
    assert sum(draw.phase == "measured" for draw in record.draws) == 3
    entries = why_of(equipoise("show", gap, "--json", "-").out)
    assert [entry["evidence"]["intervention"] for entry in entries] == [
        "never_mmap",
        "short",
        "broken",
    ]
    assert {(entry["status"], entry["share_of_gap"]) for entry in entries} == {("open", None)}
    # The last run is the test itself; `why` then explains the gap that it tested.
    left = killed_campaign()
    repeated = equipoise("why", "last", "--json", "-", *FEW_OBSERVATIONS)
    assert why_of(repeated.out) == entries
    assert f"campaign {record.id} has already tested the causes" in repeated.err
    assert f"removed the folder of a killed campaign: {left}" in repeated.err
    assert not left.exists()
    resumed = equipoise("resume", record.id, "--blocks", "5", "--quiet")
    assert resumed.status == 0, resumed.err
    assert sum(draw.phase == "measured" for draw in last(tmp_path).draws) == 5


def test_an_impossible_intervention_is_refused_before_anything_runs(
    equipoise: Equipoise, tmp_path: Path, gap: str
) -> None:
    for arguments, named in (
        (("--try", "PAUSE"), "is not of the form NAME:KEY=VALUE"),
        (("--try-command", "x=no-such-program-anywhere"), "no-such-program-anywhere"),
        (
            ("--min-blocks", "9", "--blocks", "3"),
            "the minimum of 9 blocks is above the maximum of 3",
        ),
        (("--only", "crystal_ball"), "--only crystal_ball: there is no such intervention"),
        ((*SHORT, "--try", "short:PAUSE=1"), "two interventions are called short"),
        (("--try", "jemalloc:PAUSE=1"), "two interventions are called jemalloc"),
    ):
        answer = equipoise("why", gap, *arguments)
        assert (answer.status, answer.out) == (2, "")
        assert named in answer.err
    assert last(tmp_path).observations == ()


@pytest.mark.parametrize(
    ("program", "few", "many", "status"),
    [("pieces", "65536", "1", "not reachable"), ("bytes", "buffered", "unbuffered", "confirmed")],
)
def test_small_reads_are_confirmed_by_stdio_s_buffers_only_where_these_reach_them(
    equipoise: Equipoise, tmp_path: Path, program: str, few: str, many: str, status: str
) -> None:
    """The same reads of one byte: by read(2) itself, and through stdio without its buffer."""
    source = SOURCES / f"{program}.c"
    subprocess.run(["cc", "-O1", "-fno-builtin", "-o", tmp_path / program, source], check=True)
    (tmp_path / "large").write_bytes(bytes(100_000))
    commands = (f"{tmp_path / program} {tmp_path / 'large'} 100000 {size}" for size in (few, many))
    compared = equipoise("compare", *commands, "--quiet")
    assert compared.status == 0, compared.err
    tried = ("--only", "large_buffers", *FEW_OBSERVATIONS)
    answer = equipoise("why", "last", *tried, "--json", "-", "--budget", "60")
    result = result_of(answer)
    (cause,) = (cause for cause in result["why"] if cause["cause"] == "tiny_reads")
    (test,) = cause["tested"]
    assert (cause["status"], test["outcome"]) == (status, status)
    if status == "not reachable":
        assert test["unchanged_evidence"].startswith(
            "read(2) was called as often as before: 100,00"
        )
        assert f"cannot reach the cause ({test['unchanged_evidence']})" in cause["summary"]
        assert (test["blocks"], test["share"], test["unknown_because"]) == (0, None, None)
        assert "large_buffers cannot reach the cause (read(2) was called" in answer.err
    else:
        assert test["unchanged_evidence"] is None
