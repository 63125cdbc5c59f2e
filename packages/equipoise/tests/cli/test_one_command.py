"""`equipoise compare` with one command: it is described, and compared with nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.campaign.plans import compare_plan
from equipoise.design.commands import CompareOptions
from packages.equipoise.tests.cli.conftest import Equipoise, compared
from packages.equipoise.tests.report.forms import breakable

FEW = ("--min-blocks", "12", "--budget", "0.1", "--min-seconds", "0", "--warmup", "0")
ALONE = "Nothing was compared. To compare it with another command:"


def test_the_screen_tells_the_typical_time_its_spread_modes_and_memory_and_how_to_compare(
    equipoise: Equipoise,
) -> None:
    answer = equipoise("compare", "sleep 0.005", *FEW)
    assert answer.status == 0, answer.err
    assert "sleep 0.005 takes " in answer.out
    assert " in a typical run (95 % interval " in answer.out
    assert "(standard deviation); from " in answer.out
    assert " mode" in answer.out
    assert "peak memory " in answer.out
    assert f"{ALONE} equipoise compare 'sleep 0.005' 'OTHER COMMAND'" in answer.out
    assert "stopped by: budget" in answer.out


def test_the_document_has_the_typical_value_whose_interval_is_that_of_the_condition(
    equipoise: Equipoise,
) -> None:
    document = compared(equipoise, "sleep 0.005", *FEW)
    typical, (condition,) = document["typical"], document["conditions"]
    assert document["comparisons"] == []
    assert typical["condition"] == "sleep 0.005"
    assert typical["metric"] == "wall_s"
    assert typical["trials"] == condition["trials"] == document["run"]["blocks"]
    assert typical["median"] == condition["metrics"]["wall_s"]["median"]
    assert typical["median_ci"] == condition["metrics"]["wall_s"]["median_ci"]
    assert typical["median_ci"][0] > 0.005
    assert "as long as nothing drifts" in typical["scope"]


def test_without_a_budget_there_are_at_least_ten_runs_and_a_budget_alone_decides(
    equipoise: Equipoise,
) -> None:
    plan, _ = compare_plan(CompareOptions(commands=("true",)))
    assert (plan.stopping.budget_s, plan.stopping.blocks_before_budget) == (10.0, 10)
    budget = compared(equipoise, "sleep 0.2", "--warmup", "0", "--budget", "0.3")
    assert budget["run"]["stopped_because"] == "budget"
    assert budget["run"]["blocks"] < 10


def test_a_precision_stops_it_once_the_interval_is_that_narrow(equipoise: Equipoise) -> None:
    document = compared(
        equipoise, "sleep 0.02", "--precision", "30", "--budget", "30", "--min-seconds", "0"
    )
    assert document["run"]["stopped_because"] == "precision"
    low, high = document["typical"]["median_ci"]
    assert high / low <= 1.3
    assert document["run"]["blocks"] >= 7


def test_a_precision_that_is_asked_of_a_resumed_one_stops_it_too(equipoise: Equipoise) -> None:
    compared(equipoise, "sleep 0.02", "--blocks", "12", "--warmup", "0")
    answer = equipoise("resume", "last", "--precision", "30", "--blocks", "400", "--json", "-")
    document = json.loads(answer.out)
    assert document["run"]["stopped_because"] == "precision", answer.err
    assert document["run"]["blocks"] < 400


def test_a_tail_stops_it_once_slow_runs_of_that_share_would_have_shown(
    equipoise: Equipoise,
) -> None:
    document = compared(equipoise, "true", "--tail", "10", "--budget", "60", "--min-seconds", "0")
    assert document["run"]["stopped_because"] == "tail"
    # 0.9^29 is the first power of 0.9 up to 0.05.
    assert document["run"]["blocks"] == 29


def test_another_metric_is_reported_in_its_own_words_and_unit(equipoise: Equipoise) -> None:
    document = compared(equipoise, "true", *FEW, "--metrics", "max_rss_bytes")
    assert document["typical"]["metric"] == "max_rss_bytes"
    assert document["typical"]["summary"].startswith("true uses ")
    assert "MB of memory in a typical run" in document["typical"]["summary"]


def test_a_rate_and_an_iteration_have_their_own_words(equipoise: Equipoise) -> None:
    for metric, value, sentence in (
        ("throughput_per_s", "950", " serves 950/s in a typical run ("),
        ("iteration_s", "0.2", "An iteration of "),
        ("minor_faults", "0", " minor page faults in a typical run ("),
    ):
        line = f'{{\\"metric\\": \\"{metric}\\", \\"value\\": {value}}}'
        command = f"sh -c 'echo \"{line}\" >> $EQUIPOISE_METRICS'"
        told = compared(equipoise, command, *FEW, "--metrics", metric)["typical"]["summary"]
        assert sentence in told


def test_show_export_and_every_report_tell_the_same(equipoise: Equipoise, tmp_path: Path) -> None:
    summary = compared(equipoise, "sleep 0.005", *FEW)["typical"]["summary"]
    assert summary in equipoise("show").out
    for name in ("page.html", "page.md", "page.tex", "page.csv", "trials.csv"):
        command = "export" if name == "trials.csv" else "report"
        assert equipoise(command, "last", "-o", name).status == 0
    page = breakable((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert summary in page
    assert ALONE in page
    assert "Distribution of the time" in page
    assert summary in breakable((tmp_path / "page.md").read_text(encoding="utf-8"))
    assert "in a typical run" in (tmp_path / "page.tex").read_text(encoding="utf-8")
    with (tmp_path / "trials.csv").open(newline="", encoding="utf-8") as file:
        assert {row["condition"] for row in csv.DictReader(file)} == {"sleep 0.005"}


def test_the_page_names_the_line_that_runs_it_again_with_the_same_limits(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    compared(equipoise, "true", "--blocks", "3")
    compared(equipoise, "true", "--blocks", "3", "--budget", "60")
    lines = []
    for run in [row.split()[0] for row in equipoise("list").out.splitlines()[3:]]:
        equipoise("report", run, "-o", "page.md")
        text = breakable((tmp_path / "page.md").read_text(encoding="utf-8"))
        lines.append(next(line for line in text.splitlines() if line.startswith("cd ")))
    assert sorted("--budget 60" in line for line in lines) == [False, True]


def test_its_control_and_its_interruption_are_those_of_every_campaign(equipoise: Equipoise) -> None:
    document = compared(equipoise, "true", "--control", "--blocks", "12")
    assert document["control"]["comparison"]["blocks"] == 12
    assert document["typical"]["trials"] == 12
    answer = equipoise("resume", "last", "--blocks", "15", "--json", "-")
    assert json.loads(answer.out)["typical"]["trials"] == 15


def test_nothing_can_be_explained_of_it(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "--blocks", "2", "--why")
    assert answer.status == 0
    assert "nothing was compared" in answer.err


def test_python_describes_one_command_and_says_that_it_has_no_verdict(tmp_path: Path) -> None:
    result = eq.compare("true", blocks=8, ledger=tmp_path / "ledger.db", allow_concurrent=True)
    assert str(result).startswith("true takes ")
    assert result.document.typical is not None
    assert result.document.typical.trials == 8
    with pytest.raises(eq.EquipoiseError, match="nothing was compared"):
        _ = result.verdict
