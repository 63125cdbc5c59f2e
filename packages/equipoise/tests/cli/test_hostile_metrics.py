"""A program under test cannot stop a campaign by what it does to its metrics file."""

from __future__ import annotations

import json

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise

GOOD = r'echo "{\"metric\": \"good\", \"value\": 1}" >> $EQUIPOISE_METRICS'
QUICKLY = ("--blocks", "2", "--warmup", "0", "--json", "-")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ln -s /dev/zero $EQUIPOISE_METRICS", "its metrics file is a symbolic link"),
        ("mkfifo $EQUIPOISE_METRICS", "its metrics file is a FIFO"),
        ("mkdir -p $EQUIPOISE_METRICS/full", "its metrics file is a folder"),
        ("rm -r ${EQUIPOISE_METRICS%/*}", "the folder of its metrics file was removed"),
    ],
)
def test_the_trials_own_times_count_though_its_metrics_are_unknown(
    line: str, why: str, equipoise: Equipoise
) -> None:
    answer = equipoise("compare", f"sh -c '{line}'", f"sh -c '{GOOD}'", *QUICKLY)
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    assert document["conditions"][0]["metrics"]["wall_s"]["median"] > 0
    hostile = [trial for trial in document["trials"] if trial["metrics"] == {}]
    assert [trial["analysed"] for trial in hostile] == [True, True]
    assert all(why in trial["unknown"]["metrics"] for trial in hostile)
    assert [trial["metrics"] for trial in document["trials"] if trial not in hostile] == [
        {"good": 1}
    ] * 2
    assert [warning["code"] for warning in document["warnings"]].count("own_metrics") == 1


def test_a_line_that_no_ledger_could_keep_is_left_out_with_a_warning(equipoise: Equipoise) -> None:
    line = r'echo "{\"metric\": \"b\", \"value\": 1, \"iteration\": 9223372036854775808}"'
    answer = equipoise(
        "compare",
        f"sh -c '{GOOD}; {line} >> $EQUIPOISE_METRICS'",
        "true",
        *QUICKLY,
    )
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    assert document["conditions"][0]["metrics"]["good"]["median"] == 1
    (warning,) = [warning for warning in document["warnings"] if warning["code"] == "own_metrics"]
    assert "line 2 of its metrics cannot be read" in warning["summary"]


def test_a_primary_metric_that_cannot_be_read_is_missing_for_a_named_reason(
    equipoise: Equipoise,
) -> None:
    answer = equipoise(
        "compare",
        "sh -c 'mkdir $EQUIPOISE_METRICS'",
        f"sh -c '{GOOD}'",
        *("--metrics", "good", "--blocks", "2", "--warmup", "0"),
    )
    assert answer.status == 2
    assert "has no good: its metrics file is a folder, not a regular file" in answer.err
