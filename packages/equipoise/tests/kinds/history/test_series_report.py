"""The page of imported series: the answer, the suspicions with their lines, every form."""

from __future__ import annotations

import json

import jsonschema
import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from equipoise.kinds.history.report import CAVEAT, series_document, series_parts
from equipoise.model.series import SeriesResult
from equipoise.report.document import PAGE, Section, figures_of
from equipoise.report.json_document import encode, schema
from equipoise.report.renderers.csv import to_csv
from equipoise.report.renderers.html import page
from equipoise.report.renderers.markdown import to_markdown
from equipoise.report.renderers.terminal import print_document
from packages.equipoise.tests.kinds.history.test_suspicions import STEP, result_of, series_named
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.report.forms import breakable


def two() -> SeriesResult:
    """A series with a suspicion, and one without."""
    parse = replace(
        series_named("parse", STEP), unit="seconds", setting="box", notes=("Left out.",)
    )
    return result_of(parse, series_named("flat", [2.0] * 30))


def test_the_text_reads_as_before(snapshot: SnapshotAssertion) -> None:
    assert breakable(to_markdown(series_document(two()))) == snapshot


def test_the_page_has_a_figure_of_each_series_and_the_caveat() -> None:
    document = series_document(two())
    assert [figure.name for figure in figures_of(document)] == ["series"] * 2
    text = page([document])
    assert CAVEAT in text
    assert "equipoise bisect --good v12 --bad v13 -- COMMAND" in text


def test_the_table_of_numbers_has_every_value() -> None:
    lines = to_csv([series_document(two())]).splitlines()
    assert len(lines) == 1 + 24 + 30
    assert any(line.startswith("parse,box,time,seconds,v13,") for line in lines)


def test_the_document_is_of_its_schema() -> None:
    document = json.loads(encode(two()))
    jsonschema.validate(document, schema(SeriesResult))
    assert document["schema"] == "equipoise.series/1"
    (suspicion,) = document["series"][0]["suspicions"]
    assert (suspicion["last_old_commit"], suspicion["first_new_commit"]) == ("v12", "v13")
    assert suspicion["confirm_command"] == "equipoise bisect --good v12 --bad v13 -- COMMAND"


def test_only_the_first_lines_of_many_suspicions_are_on_a_screen() -> None:
    many = [replace(series_named("x", STEP), benchmark=f"b{place}") for place in range(8)]
    text = to_markdown(series_document(result_of(*many)))
    assert text.count("To confirm b") == 5
    assert "3 more lines are in --json and --report." in text
    (section,) = (
        part
        for part in series_parts(result_of(*many).series)
        if isinstance(part, Section) and "Suspicions" in part.title
    )
    (more,) = (part for part in section.parts if isinstance(part, Section))
    assert len(more.parts) == 3
    assert more.forms == PAGE


def test_hostile_names_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = (
        replace(series_named(name, STEP), setting=name, unit=name, source=name) for name in PAYLOADS
    )
    result = result_of(*hostile)
    # A chart takes time for each.
    assert "<script>alert" not in page([series_document(replace(result, series=result.series[:1]))])
    print_document(series_document(result), color=False)
    assert "\x1b" not in capsys.readouterr().out
