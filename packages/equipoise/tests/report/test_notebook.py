"""A notebook gets a small piece of HTML: tables, folds, and every name letter by letter."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import altair
import numpy as np
import pandas
import pytest
from IPython.core.formatters import DisplayFormatter
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise.api import Result
from equipoise.model.record import CampaignWarning
from equipoise.shared import pictures
from equipoise.shared.safe_text import visible
from equipoise_matching import gen_match, genoud, match, match_balance, match_by
from packages.equipoise.tests.documents import document_of, explanation_of
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.report.forms import breakable
from packages.equipoise.tests.report.kinds import Kind, kinds

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

ELEMENTS = frozenset("div p strong table thead tbody tr th td details summary ul li code".split())
PROPERTIES = frozenset(
    "overflow-x border-collapse border-bottom padding text-align width max-width".split()
)


class Piece(HTMLParser):
    """Its texts; fails on what does not close, on what acts, loads or colours."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.cells: list[list[str]] = []
        self.pictures: list[dict[str, str | None]] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Go into an element."""
        if tag == "img":
            picture = dict(attrs)
            assert picture.keys() == {"alt", "src", "style"}
            assert str(picture["src"]).startswith("data:image/")
            self.pictures.append(picture)
            return
        assert tag in ELEMENTS
        for name, value in attrs:
            assert name in ("style", "scope")
            if name == "style":
                styles = str(value).split(";")
                assert {style.partition(":")[0] for style in styles} <= PROPERTIES
        self._open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        """There is none."""
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        """Note what is read."""
        data = breakable(data)
        self.texts.append(data)
        if {"td", "th"} & set(self._open):
            self.cells[-1][-1] += data


def matched_on(names: tuple[str, ...] = ("age", "education")) -> tuple[dict[str, Floats], Truths]:
    """Two covariates of sixty units and which of them were treated."""
    generator = np.random.default_rng(3)
    columns = {name: generator.normal(size=60) for name in names}
    return columns, np.arange(60) % 3 == 0


def in_notebook(thing: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Content that IPython hands to a notebook, by its kinds, with the metadata of each."""
    formatter: Any = DisplayFormatter()
    shown: tuple[dict[str, Any], dict[str, Any]] = formatter.format(thing)
    return shown


def test_a_result_shows_its_verdict_its_table_and_how_it_was_measured() -> None:
    piece = Piece(Result(document_of())._repr_html_())
    assert piece.texts[:2] == [
        "slower",
        ": sort --parallel=2 words is slower than sort words: it takes 5.15 % longer.",
    ]
    assert [row[0] for row in piece.cells[:3]] == [
        "Condition",
        "sort words",
        "sort --parallel=2 words",
    ]
    assert piece.cells[2][-3:] == ["+5.15 %", "+3.04 % to +7.25 %", "slower"]
    assert "How it was measured" in piece.texts
    assert ["Blocks", "60"] in piece.cells


def test_a_result_shows_its_chart_without_a_network() -> None:
    shown, _ = in_notebook(Result(document_of()))
    assert {"text/html", "image/svg+xml", "image/png", "text/plain"} <= shown.keys()
    assert [str(picture["alt"])[:8] for picture in Piece(shown["text/html"]).pictures] == [
        "Distribu"
    ]
    assert shown["image/png"].startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_a_result_of_every_kind_shows_a_picture(kind: Kind) -> None:
    assert len(Piece(Result(kind.reported("").result)._repr_html_()).pictures) == 1


def test_the_pictures_of_two_results_share_no_id_whichever_kernel_drew_them() -> None:
    drawings = (document_of(), document_of("a", "b", "c"), document_of())
    first, second, again = (
        in_notebook(Result(drawing).plot())[0]["image/svg+xml"] for drawing in drawings
    )
    # A kernel that starts again counts from the beginning: the ids must not depend on its count.
    assert first == again
    ids = [re.findall(r'\bid="([^"]+)"', picture) for picture in (first, second)]
    assert ids[0] and ids[1] and not set(ids[0]) & set(ids[1])
    for picture, own in zip((first, second), ids, strict=True):
        assert len(own) == len(set(own))
        assert set(re.findall(r"url\(#([^)]+)\)", picture)) == set(own)


def test_a_chart_is_pictures_and_asks_for_no_script() -> None:
    shown, about = in_notebook(Result(document_of()).plot())
    assert shown.keys() - {"text/plain"} == {"image/svg+xml", "image/png"}
    assert about["image/png"]["width"] < 1000


def test_a_chart_of_many_trials_is_pixels_alone() -> None:
    shown, _ = in_notebook(Result(document_of(blocks=900)).plot())
    assert "image/svg+xml" not in shown
    assert "image/png" in shown


def test_another_renderer_of_altair_is_used_if_it_was_chosen() -> None:
    with altair.renderers.enable("json"):
        shown, _ = in_notebook(Result(document_of()).plot())
    assert "application/json" in shown


def test_a_result_is_tables_alone_where_no_figure_can_be_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pictures, "_missing_libraries", lambda: ["altair"])
    shown, _ = in_notebook(Result(document_of()))
    assert Piece(shown["text/html"]).pictures == []


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_anywhere_in_a_result_is_read_as_it_stands(payload: str) -> None:
    document = replace(
        document_of(payload, f"other {payload}", words=payload, blocks=8),
        why=(explanation_of(payload),),
        warnings=(CampaignWarning("hostile", payload, payload),),
    )
    piece = Piece(Result(document)._repr_html_())
    expected = visible(payload.encode("utf-8", "backslashreplace").decode("utf-8"))
    assert [row[0] for row in piece.cells[1:3]] == [expected, f"other {expected}"]


def test_a_match_shows_what_its_summary_says() -> None:
    columns, treated = matched_on()
    outcome = columns["age"] + treated
    result = match(outcome, treated, np.column_stack(list(columns.values())))
    piece = Piece(result._repr_html_())
    assert [f"{name} {value}" for name, value in piece.cells] == [
        " ".join(line.split()) for line in result.summary().splitlines()
    ]


def test_a_match_by_strata_names_them() -> None:
    columns, treated = matched_on()
    strata = np.where(np.arange(60) % 2 == 0, "<b>", "other")
    result = match_by(None, treated, columns["age"], by={"<i>": strata})
    assert ["Strata", "2 of <i>"] in Piece(result._repr_html_()).cells


def test_balance_has_a_row_before_and_one_after_for_each_variable() -> None:
    columns, treated = matched_on(("age", "<script>alert(1)</script>"))
    matched = match(None, treated, np.column_stack(list(columns.values())))
    piece = Piece(match_balance(columns, treated, matched, boot=0)._repr_html_())
    assert [row[:2] for row in piece.cells[1:]] == [
        ["age", "before"],
        ["age", "after"],
        ["<script>alert(1)</script>", "before"],
        ["<script>alert(1)</script>", "after"],
    ]
    assert all(len(row) == len(piece.cells[0]) for row in piece.cells)
    assert any(text.startswith("The smallest p-value of balance was ") for text in piece.texts)


def test_a_search_for_weights_shows_them_and_how_it_came_to_them() -> None:
    names = ("age", "</table><img src=x onerror=alert(1)>")
    columns, treated = matched_on(names)
    result = gen_match(treated, pandas.DataFrame(columns), population=20, generations=1, seed=1)
    cells = Piece(result._repr_html_()).cells
    assert [row[0] for row in cells[1:3]] == list(result.names) == list(names)
    assert [name for name, value in cells if name in ("Seed", "Generations")] == [
        "Generations",
        "Seed",
    ]


def test_an_optimum_shows_its_value() -> None:
    result = genoud(lambda point: float(point @ point), 1, population=20, generations=2, seed=1)
    assert ["Value", f"{result.value:.8g}"] in Piece(result._repr_html_()).cells
