"""`equipoise os` and what it needs, as a user has it: real probes, as few as can be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema

from equipoise.ledger import open_for_reading
from equipoise.report.json_document import schema
from equipoise_studies.primitives.rows import LATENCY_METRIC
from packages.equipoise.tests.cli.conftest import Equipoise

DOCS = Path(__file__).resolve().parents[4] / "docs" / "reference" / "primitives.md"
SHORT = ("os", "--only", "null_call,pipe_same_cpu", "--quick", "--warmup", "0", "--seed", "7")


def test_rows_are_measured_in_several_processes_and_compared_with_repeats(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    first = equipoise(*SHORT, "--blocks", "6", "--json", "there.json", "--verbose")
    assert first.status == 0, first.err
    assert re.search(r"null_call .* ns .*to.* 6\b", first.out), first.out
    document = json.loads((tmp_path / "there.json").read_text())
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert document["run"]["command_line"] == (
        "equipoise os --only null_call,pipe_same_cpu --quick --warmup 0 --seed 7 --blocks 6"
    )
    assert [condition["name"] for condition in document["conditions"]] == [
        "null_call",
        "pipe_same_cpu",
    ]
    for condition in document["conditions"]:
        assert condition["trials"] == 6
        low, high = condition["metrics"][LATENCY_METRIC]["median_ci"]
        assert 0 < low <= condition["metrics"][LATENCY_METRIC]["median"] <= high
    rows = [row for row in document["trials"] if row["analysed"]]
    assert len(rows) == 12
    # Every batch is kept.
    assert all(len(row["iterations"][LATENCY_METRIC]) == 7 for row in rows)

    shown = equipoise("show", "last", "--against", "there.json", "--json", "-")
    assert shown.status == 0, shown.err
    held = json.loads(shown.out)["against"]
    assert held["run"] == document["run"]["id"]
    assert [row["ratio"] for row in held["rows"]] == [1.0, 1.0]
    assert held["differences"] == []

    document["environment"]["kernel"] = "2.4.20"
    (tmp_path / "there.json").write_text(json.dumps(document))
    refused = equipoise(*SHORT, "--against", "there.json", "--allow", "boot_parameters")
    assert (refused.status, refused.out) == (2, "")
    assert "kernel: 2.4.20, " in refused.err
    # It is known before anything is measured.
    with open_for_reading(tmp_path / ".equipoise" / "ledger.db") as ledger:
        assert [run.id for run in ledger.runs()] == [document["run"]["id"]]


def test_finished_campaign_continues_if_more_blocks_are_requested(
    equipoise: Equipoise,
) -> None:
    begun = equipoise("os", "--only", "null_call", "--quick", "--warmup", "0", "--blocks", "1")
    assert begun.status == 0, begun.err
    resumed = equipoise("resume", "last", "--blocks", "2", "--min-blocks", "2", "--json", "-")
    assert resumed.status == 0, resumed.err
    document = json.loads(resumed.out)
    assert document["run"]["blocks"] == 2
    assert document["against"] is None


def test_impossible_request_is_refused_before_anything_runs(equipoise: Equipoise) -> None:
    for arguments, answer in (
        (("--only", "nul_call"), "did you mean null_call?"),
        (("--only", "null_call,"), "empty name"),
        (("--against", "nowhere.json"), "nowhere.json"),
        (("--blocks", "2", "--min-blocks", "3"), "minimum of 3 blocks"),
    ):
        answered = equipoise("os", *arguments)
        assert answered.status == 2
        assert answer in answered.err and "hint: " in answered.err
        assert answered.out == ""


def test_list_shows_which_probes_work_on_this_host(equipoise: Equipoise) -> None:
    listed = equipoise("list", "probes")
    assert listed.status == 0, listed.err
    assert re.search(r"^null_call .*yes", listed.out, re.MULTILINE), listed.out


def test_the_example_of_a_probe_in_a_study_runs(equipoise: Equipoise, tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "fork.toml").write_text(example, encoding="utf-8")
    ran = equipoise(
        *("run", "fork.toml", "--factor", "size=1048576", "--warmup", "0"),
        *("--blocks", "1", "--json", "-"),
    )
    assert ran.status == 0, ran.err
    document = json.loads(ran.out)
    assert [comparison["metric"] for comparison in document["comparisons"]] == [LATENCY_METRIC]
    assert all(LATENCY_METRIC in condition["metrics"] for condition in document["conditions"])
