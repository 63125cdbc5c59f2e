"""`equipoise show --pool`: campaigns of the same commands side by side, and over all of them."""

from __future__ import annotations

import json

import jsonschema
import pytest

from equipoise.model.pooled import PooledCampaigns
from equipoise.report.json_document import schema
from equipoise.report.units import percent_change
from packages.equipoise.tests.cli.conftest import Equipoise

SHORT = ("compare", "-n", "short", "-n", "long", "sleep 0.002", "sleep 0.006", "--blocks", "3")


def test_campaigns_of_the_same_commands_are_shown_each_and_pooled(equipoise: Equipoise) -> None:
    ratios = []
    for _ in range(2):
        answer = equipoise(*SHORT, "--json", "-")
        assert answer.status == 0, answer.err
        ratios.append(json.loads(answer.out)["comparisons"][0]["ratio"])
    equipoise("compare", "true", "false || true", "--shell", "default", "--blocks", "1", "--quiet")
    runs = [line.split()[0] for line in equipoise("list", "runs").out.splitlines()[3:]]
    answer = equipoise("show", runs[0], "--pool")
    assert answer.status == 0, answer.err
    campaigns = [line for line in answer.out.splitlines() if line[:1].isdigit()]
    assert [line.split()[1] for line in campaigns] == runs[:2]
    row = next(line for line in answer.out.splitlines() if line.startswith("long"))
    pooled = (ratios[0] * ratios[1]) ** 0.5
    for ratio in (pooled, *ratios):
        assert percent_change(ratio) in row
    assert "across 2 campaigns on one boot of one kernel" in answer.out
    heading = next(line for line in answer.out.splitlines() if line.startswith("by level"))
    assert "these 2 campaigns" in heading and heading.split()[-2:] == ["campaign", "trial"]
    written = equipoise("show", runs[0], "--pool", "--json", "-")
    assert written.err == ""
    result = json.loads(written.out)
    jsonschema.validate(result, schema(PooledCampaigns))
    assert [campaign["id"] for campaign in result["campaigns"]] == runs[:2]
    (comparison,) = result["comparisons"]
    assert comparison["ratios"] == ratios
    assert comparison["pooled"]["ratio"] == pytest.approx(pooled, rel=1e-12)
    assert comparison["pooled"]["ratio_ci"][0] < pooled < comparison["pooled"]["ratio_ci"][1]


def test_pooled_campaigns_have_neither_a_page_nor_the_form_of_another_tool(
    equipoise: Equipoise,
) -> None:
    answer = equipoise("show", "last", "--pool", "--export-csv", "found.csv")
    assert answer.status == 2
    assert "--pool cannot write found.csv" in answer.err
    assert "write the pooled result with --json FILE" in answer.err


def test_one_campaign_is_not_pooled(equipoise: Equipoise) -> None:
    assert equipoise(*SHORT, "--quiet").status == 0
    answer = equipoise("show", "last", "--pool")
    assert answer.status == 2
    assert "there is only one campaign of these commands" in answer.err
    assert "hint: run the same comparison" in answer.err


def test_campaigns_are_pooled_without_describing_each(
    equipoise: Equipoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What describes one campaign (modes, forecast, carry-over) took 50 ms of each of thousands.
    for _ in range(2):
        assert equipoise(*SHORT, "--quiet").status == 0
    expected = equipoise("show", "last", "--pool").out

    def describes(*_: object, **__: object) -> None:
        raise AssertionError("a campaign was described only to be pooled")

    for name in ("stats.describe.find_modes", "analysis.comparisons.judge"):
        monkeypatch.setattr(f"equipoise.{name}", describes)
    monkeypatch.setattr("equipoise.analysis.comparisons.carry_over", describes)
    answer = equipoise("show", "last", "--pool")
    assert (answer.status, answer.out) == (0, expected)
