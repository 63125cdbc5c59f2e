"""A fleet in every command that reads a ledger, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise import api
from equipoise.kinds.fleet.terms import FleetDocument
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.fleets import (
    THREE,
    ScriptedHost,
    fleet_record,
    identity_of,
    record_fleet,
)
from packages.equipoise.tests.schema import valid_result


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where `equipoise` looks for a ledger."""
    return tmp_path / ".equipoise" / "ledger.db"


@pytest.fixture
def fleet(ledger: Path) -> str:
    """The run of a fleet of three hosts."""
    return record_fleet(ledger, fleet_record())


def test_the_fleet_is_shown_whole_and_each_host_alone(equipoise: Equipoise, fleet: str) -> None:
    whole = equipoise("show")
    assert whole.status == 0, whole.err
    assert whole.out.startswith("slower: Over the 3 asked hosts: b is slower than a")
    assert "Other campaigns" not in whole.out
    document = valid_result(equipoise("show", "last", "--json", "-").out)
    assert document["run"]["id"] == fleet
    alone = equipoise("show", document["fleet"]["hosts"][1]["run"], "--verbose")
    assert "scope: across processes, in this campaign on this host" in alone.out
    assert "Other campaigns" not in alone.out


def test_the_python_interface_shows_a_fleet(fleet: str, ledger: Path) -> None:
    result = api.show(fleet, ledger=ledger)
    assert "What would one more host show?" in result._repr_html_()
    assert isinstance(result.document, FleetDocument)
    assert len(result.document.comparisons[0].hosts) == 3


def test_the_list_counts_no_campaign_of_another_host(equipoise: Equipoise, ledger: Path) -> None:
    ada, bea, cleo = THREE
    record = fleet_record((ada, bea, replace(cleo, identity=identity_of("another host"))))
    asked = fleet_record(THREE)
    fleet = record_fleet(ledger, replace(record, plan=asked.plan))
    lines = equipoise("list").out.splitlines()[3:]
    assert [line.split()[0] == fleet for line in lines] == [True, False]
    assert "2 hosts" in lines[0] and " 160 " in lines[0]
    hosts = valid_result(equipoise("show", fleet, "--json", "-").out)["fleet"]["hosts"]
    assert [host["trials"] for host in hosts] == [80, 80, 0]


def test_the_list_folds_the_hosts_into_the_line_of_their_fleet(
    equipoise: Equipoise, fleet: str
) -> None:
    heading, line = equipoise("list").out.splitlines()[2:]
    assert "host" in heading.split()
    assert line.startswith(fleet) and "3 hosts" in line and " 240 " in line
    first, *others = equipoise("list", "--all").out.splitlines()[3:]
    assert first.startswith(fleet)
    assert [line.split()[3] for line in others] == ["ada", "bea", "cleo"]
    assert all(line.startswith("  2026") for line in others)
    entries = json.loads(equipoise("list", "--all", "--json", "-").out)
    assert [entry["hosts"] for entry in entries] == [3, None, None, None]
    assert [entry["part_of"] for entry in entries] == [None, fleet, fleet, fleet]


def test_campaigns_of_several_hosts_are_pooled_by_the_host_that_measured_them(
    equipoise: Equipoise, fleet: str
) -> None:
    answer = equipoise("show", fleet, "--pool")
    assert answer.status == 0, answer.err
    assert "across 3 campaigns on 3 boots of 2 kernels and 3 hosts" in answer.out
    assert "replicates are hosts of equal weight" in answer.out
    written = json.loads(equipoise("show", fleet, "--pool", "--json", "-").out)
    assert [campaign["host"] for campaign in written["campaigns"]] == ["ada", "bea", "cleo"]
    assert written["hosts"] == written["comparisons"][0]["pooled"]["replicates"] == 3


def test_tables_of_a_report_have_the_hosts(equipoise: Equipoise, fleet: str) -> None:
    for ending in ("tex", "csv"):
        answer = equipoise("report", "-o", f"fleet.{ending}")
        assert answer.status == 0, answer.err
        text = (equipoise.folder / f"fleet.{ending}").read_text()
        assert all(name in text for name in ("ada", "bea", "cleo")), ending
    header, mean, *rows = (equipoise.folder / "fleet.csv").read_text().splitlines()
    assert header.startswith("run,study,baseline,candidate,metric,host,of,ratio")
    assert "mean over the asked hosts" in mean
    assert len(rows) == 3


def test_an_export_has_a_row_for_each_trial_with_its_host(equipoise: Equipoise, fleet: str) -> None:
    assert equipoise("export", "-o", "trials.json").status == 0
    rows = json.loads((equipoise.folder / "trials.json").read_text())
    assert len(rows) == 240
    assert {(row["host"], row["host_kernel"]) for row in rows} == {
        ("ada", "6.1.0"),
        ("bea", "6.1.0"),
        ("cleo", "5.10.0"),
    }
    for row in rows:
        assert (row["ratio_to_baseline"] is None) == (row["condition"] == "a")
        assert row["host_memory_bytes"] == 16_000_000_000


def test_observe_reads_the_export_and_compares_hosts_with_one_kernel_and_the_other(
    equipoise: Equipoise, ledger: Path
) -> None:
    hosts = [
        ScriptedHost(
            f"host {place}",
            effect=0.08 if place % 2 else 0.02,
            blocks=5,
            environment={"kernel": "6.1.0" if place % 2 else "5.10.0"},
        )
        for place in range(24)
    ]
    record_fleet(ledger, fleet_record(hosts, noise=0.005))
    assert equipoise("export", "-o", "trials.csv").status == 0
    answer = equipoise(
        *("observe", "trials.csv", "--treatment", "host_kernel=6.1.0:5.10.0"),
        *(
            "--outcome",
            "ratio_to_baseline",
            "--exact",
            "host_cpu_model",
            "--covariates",
            "host_cpus",
        ),
        *("--cluster", "host", "--missing", "drop", "--one-unit", "--json", "-"),
    )
    assert answer.status == 0, answer.err
    result = json.loads(answer.out)
    low, high = result["matched"]["effect"]["ratio_ci"]
    assert low < 1.0618 < high


def test_the_example_of_the_page_is_the_output_of_the_command(
    equipoise: Equipoise, fleet: str
) -> None:
    lines = {line.rstrip() for line in equipoise("show", fleet).out.splitlines()}
    page = (Path(__file__).parents[5] / "docs/how-to/read-a-fleet-result.md").read_text()
    example = page.partition("```text\nslower: Over")[2].partition("```")[0]
    expected = f"slower: Over{example}".splitlines()
    assert len(expected) > 8
    assert [line for line in expected if line not in lines] == []


@pytest.mark.parametrize(
    "command",
    [
        ("export", "-o", "trials.hyperfine", "--format", "hyperfine"),
        ("export", "-o", "trials.bmf", "--format", "bmf"),
        ("show", "last", "--export-csv", "found.csv"),
        ("show", "last", "last"),
        ("why", "last"),
    ],
)
def test_commands_about_one_host_name_the_runs_of_the_hosts(
    equipoise: Equipoise, fleet: str, command: tuple[str, ...]
) -> None:
    document = json.loads(equipoise("show", "--json", "-").out)
    answer = equipoise(*command)
    assert answer.status == 2
    assert "fleet" in answer.err
    assert all(host["run"] in answer.err for host in document["fleet"]["hosts"])
