"""`equipoise show --engine`: a campaign keeps the engine that it began with."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from equipoise.model.plan import LATEST_ENGINE
from tests.cli.conftest import Equipoise

CAMPAIGNS = Path(__file__).parents[1] / "golden/first_release/campaigns.tar.xz"
RUN = "20261122-165117-570d"


@pytest.fixture
def first_release(tmp_path: Path) -> Path:
    """Folder with the ledger of the first release and what its `show --json` printed."""
    with tarfile.open(CAMPAIGNS) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "first_release"


def shown(equipoise: Equipoise, folder: Path, *arguments: str) -> dict[str, Any]:
    ledger = str(folder / "ledger.db")
    answer = equipoise("show", RUN, *arguments, "--ledger", ledger, "--json", "-")
    assert answer.status == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def test_a_campaign_of_the_first_release_keeps_its_verdict_and_names_the_newer_engine(
    equipoise: Equipoise, first_release: Path
) -> None:
    then = json.loads((first_release / f"{RUN}.json").read_bytes())
    now = shown(equipoise, first_release)
    assert now["run"]["engine"] == 1
    for old, new in zip(then["comparisons"], now["comparisons"], strict=True):
        assert old["verdict"] == new["verdict"]
        assert old["ratio_ci"] == pytest.approx(new["ratio_ci"], rel=1e-12)
    screen = equipoise("show", RUN, "--ledger", str(first_release / "ledger.db")).out
    assert f"equipoise show {RUN} --engine {LATEST_ENGINE}" in " ".join(screen.split())


def test_another_engine_judges_anew_and_says_what_that_costs(
    equipoise: Equipoise, first_release: Path
) -> None:
    own = shown(equipoise, first_release)
    anew = shown(equipoise, first_release, "--engine", "2")
    assert anew["run"]["engine"] == 2
    assert anew["comparisons"][0]["e_value"] != own["comparisons"][0]["e_value"]
    (warning,) = [one for one in anew["warnings"] if one["code"] == "judged_anew"]
    assert "spends alpha twice" in warning["hint"]
    assert "judged_anew" not in {one["code"] for one in own["warnings"]}


def test_an_engine_that_does_not_exist_is_refused(
    equipoise: Equipoise, first_release: Path
) -> None:
    ledger = str(first_release / "ledger.db")
    assert equipoise("show", RUN, "--engine", "7", "--ledger", ledger).status == 2
    assert equipoise("show", RUN, RUN, "--engine", "2", "--ledger", ledger).status == 2
