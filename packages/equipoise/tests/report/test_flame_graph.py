"""The flame graph on a page: a picture that runs nothing, and is left out if it is too large."""

from __future__ import annotations

import base64

from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from equipoise.model.why import ExtraTime
from equipoise.report.builders.result import ReportInput
from equipoise.report.renderers.html import MAX_FLAME_GRAPH_BYTES
from packages.equipoise.tests.documents import HOSTILE, document_of
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.test_html import Outline

SVG = f"<svg xmlns='http://www.w3.org/2000/svg'><!-- {HOSTILE} --></svg>".encode()


def explained() -> ResultDocument:
    """A document whose gap was observed."""
    extra = ExtraTime("a", "b", "b", 1.0, (0.9, 1.1), (), {"profile": (3, 3)}, {}, "in f()")
    return replace(document_of("a", "b"), extra_time=extra)


def test_it_is_an_image_that_holds_the_picture() -> None:
    text = page([ReportInput(explained(), flame_graph=SVG)])
    (image,) = Outline(text).tags("img")
    address = image["src"] or ""
    kind, _, data = address.partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data) == SVG
    assert image["alt"]
    assert HOSTILE not in text


def test_one_that_is_too_large_is_left_to_a_file() -> None:
    text = page([ReportInput(explained(), flame_graph=b" " * (MAX_FLAME_GRAPH_BYTES + 1))])
    outline = Outline(text)
    assert not outline.tags("img")
    assert "It is too large for a page:" in outline.texts


def test_without_one_there_is_no_place_for_it() -> None:
    assert "Flame graph of both" not in Outline(page([ReportInput(explained())])).texts
