"""`equipoise run tratt2019`, with few words and few runs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from equipoise.analysis.result import analyse_campaign
from equipoise.ledger import open_for_reading
from equipoise.report.json_document import schema
from equipoise_studies.builtin.tratt2019.analysis import findings
from equipoise_studies.study_data import StudyData
from packages.equipoise.tests.cli.conftest import Equipoise


def test_the_two_programs_run_and_differ(equipoise: Equipoise, tmp_path: Path) -> None:
    """With few words and few runs; the ledger holds all that the figures need."""
    answer = equipoise(
        *("run", "tratt2019", "--factor", "words=4000", "--blocks", "40", "--min-blocks", "40"),
        *("--json", "found.json", "--allow-concurrent", "--quiet"),
    )
    assert answer.status == 0, answer.err
    result = json.loads((tmp_path / "found.json").read_text())
    assert len(result["conditions"]) == 3
    comparison = result["comparisons"][0]
    assert (comparison["metric"], comparison["verdict"]) == ("search_s", "faster")
    with open_for_reading(tmp_path / ".equipoise" / "ledger.db") as ledger:
        repeated = analyse_campaign(ledger.read_run(result["run"]["id"]))
    words = "\n".join(findings(StudyData(repeated)).paragraphs)
    jsonschema.validate(result, schema())
    assert result["findings"]["paragraphs"] == list(findings(StudyData(repeated)).paragraphs)
    titles = [table["title"] for table in result["findings"]["tables"]]
    assert titles == [table.title for table in findings(StudyData(repeated)).tables]
    assert "Binary search is faster" in words
    says = "would have misled" if comparison["minimum_misleads"] else "does not mislead"
    assert says in words
