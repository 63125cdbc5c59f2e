"""Files that a reader saves from a page, in a real browser: data, tables and pictures."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput
from packages.equipoise.tests.documents import HOSTILE, document_of
from packages.equipoise.tests.report.chromium import ANSWER_WITHIN_S, Browser
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.test_flame_graph import SVG, explained

pytestmark = pytest.mark.live("chromium")

CHART = "run-1-distributions-1"


def shown(browser: Browser, folder: Path, document: ResultDocument, svg: bytes | None) -> None:
    """Open the page of a document; what is taken along lands in the folder ``taken``."""
    browser.show(page([ReportInput(document, flame_graph=svg)]))
    (folder / "taken").mkdir()
    browser.call(
        "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder / "taken")
    )


def taken(browser: Browser, folder: Path, place: str, ending: str) -> bytes:
    """Press a button of a figure by keyboard, and read the file that it gives."""
    browser.evaluate(f"document.querySelector('{place} button[data-as={ending}]').focus()")
    browser.press("Enter")
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while not (name := completed(browser, ending)):
        assert time.monotonic() < deadline, browser.complaints()
        time.sleep(0.05)
        # Its events are read with the answer to anything.
        browser.evaluate("0")
    return (folder / "taken" / name).read_bytes()


def completed(browser: Browser, ending: str) -> str | None:
    """The name of the file that a download of this page has written, once it is whole."""
    calls = [(event.get("method"), event.get("params", {})) for event in browser.events]
    whole = [
        one["guid"]
        for method, one in calls
        if method == "Page.downloadProgress" and one["state"] == "completed"
    ]
    names = [
        str(one["suggestedFilename"])
        for method, one in calls
        if method == "Page.downloadWillBegin" and one["guid"] in whole
    ]
    return next((name for name in names if name.endswith(f".{ending}")), None)


def test_the_data_of_a_figure_are_what_it_draws(browser: Browser, tmp_path: Path) -> None:
    document = document_of(HOSTILE, 'b, "quoted"\nline', blocks=20)
    shown(browser, tmp_path, document, None)
    place = f"[data-chart={CHART}]"
    rows: list[dict[str, Any]] = json.loads(taken(browser, tmp_path, place, "json"))
    text = taken(browser, tmp_path, place, "csv").decode()
    dots = sorted(row["x"] for row in rows if row["drawn_as"] == "circle")
    times = sorted(trial.wall_s or 0.0 for trial in document.trials if trial.analysed)
    assert dots == pytest.approx([1e3 * seconds for seconds in times], rel=1e-5)
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(table) == len(rows)
    for line, row in zip(table, rows, strict=True):
        for name, value in row.items():
            read = line[name]
            assert (float(read) if isinstance(value, float) else read) == (
                "" if value is None else value if isinstance(value, float) else str(value)
            )
    names = {line.get("text") for line in table}
    assert {condition.name for condition in document.conditions} <= names
    assert browser.requests()[0] == browser.opened.as_uri()
    assert all(request.startswith("blob:") for request in browser.requests()[1:])
    assert browser.complaints() == []


def test_the_picture_of_a_figure_is_given_as_vectors_and_as_pixels(
    browser: Browser, tmp_path: Path
) -> None:
    shown(browser, tmp_path, explained(), SVG)
    place = f"[data-chart={CHART}]"
    assert taken(browser, tmp_path, place, "svg").startswith(b"<svg")
    assert taken(browser, tmp_path, place, "png").startswith(b"\x89PNG\r\n\x1a\n")
    assert {file.stem for file in (tmp_path / "taken").iterdir()} == {f"equipoise-{CHART}"}
    browser.events.clear()
    assert taken(browser, tmp_path, "[data-picture]", "svg") == SVG
    assert browser.complaints() == []


def test_the_data_open_as_a_table_too(browser: Browser, tmp_path: Path) -> None:
    document = document_of(HOSTILE, "b", blocks=300)
    shown(browser, tmp_path, document, None)
    table = "document.querySelector('details.numbers table')"
    assert browser.evaluate(table) is None
    browser.evaluate("document.querySelector('details.numbers').open = true")
    browser.wait_until(table)
    assert browser.evaluate(f"{table}.tBodies[0].rows.length") == 200
    assert "the first 200 of " in browser.evaluate(f"{table}.caption.textContent")
    assert browser.evaluate(f"[...{table}.tHead.rows[0].cells].every(one => one.scope === 'col')")
    assert browser.evaluate(f"{table}.querySelectorAll('script, img').length") == 0
