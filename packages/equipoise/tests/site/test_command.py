"""`equipoise site`: the pages of real campaigns, made in several processes."""

from __future__ import annotations

from pathlib import Path

from equipoise.ledger import open_for_reading
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.cli.test_show import record
from packages.equipoise.tests.plans import plan_of


def test_the_latest_pages_have_figures_and_all_have_the_answer(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    for _ in range(13):
        record(ledger, plan_of("a", "b"), "6.1")
    answer = equipoise("site", "ledger.db", "-o", "site", "--full-pages", "1")
    assert answer.out == "site/index.html: 13 campaigns, 13 pages written\n", answer.err
    with open_for_reading(ledger) as source:
        runs = [run.id for run in source.runs()]
    pages = [
        next((tmp_path / "site/campaigns").glob(f"{run}-*")).read_text(encoding="utf-8")
        for run in runs
    ]
    sentence = "b is slower than a: it takes"
    assert [sentence in page for page in pages] == [True] * 13
    assert ["assets/vega.js" in page for page in pages] == [False] * 12 + [True]
    assert f"equipoise report {runs[0]} -o page.html" in pages[0]
    assert (tmp_path / "site/index.html").read_text(encoding="utf-8").count(sentence) == 13
    assert max(map(len, pages[:-1])) < 20_000


def test_a_missing_ledger_keeps_the_site(equipoise: Equipoise, tmp_path: Path) -> None:
    record(tmp_path / "ledger.db", plan_of("a", "b"), "6.1")
    equipoise("site", "ledger.db", "-o", "site", "--full-pages", "0", "--quiet")
    answer = equipoise("site", "ledger.db", "missing.db", "-o", "site")
    assert answer.status == 2
    assert "no ledger at" in answer.err
    assert len(list((tmp_path / "site/campaigns").iterdir())) == 1
