"""One chart is written as a page, a vector picture or a pixel picture."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree
from pathlib import Path

import pytest

from equipoise.figures.distributions import distributions
from equipoise.figures.save import save, script_json, vega_library
from equipoise.model.errors import UnusableInput
from equipoise.shared.pictures import require_figures
from equipoise.shared.theme import BACKGROUND
from packages.equipoise.tests.documents import HOSTILE, document_of


def test_an_svg_holds_the_names_as_text(tmp_path: Path) -> None:
    save(distributions(document_of(HOSTILE, "b")), tmp_path / "figure.svg")
    picture = xml.etree.ElementTree.parse(tmp_path / "figure.svg")
    texts = [
        "".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")
    ]
    assert HOSTILE[:20] in " ".join(texts)
    assert not list(picture.iter("{http://www.w3.org/2000/svg}script"))


def test_a_png_is_one(tmp_path: Path) -> None:
    save(distributions(document_of()), tmp_path / "figure.PNG")
    assert (tmp_path / "figure.PNG").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_dark_theme_is_dark(tmp_path: Path) -> None:
    save(distributions(document_of()), tmp_path / "figure.svg", "dark")
    assert BACKGROUND["dark"] in (tmp_path / "figure.svg").read_text()


def test_a_page_of_one_chart_lets_no_name_out_of_its_string(tmp_path: Path) -> None:
    save(distributions(document_of(HOSTILE, "b")), tmp_path / "figure.html")
    text = (tmp_path / "figure.html").read_text()
    assert "document.title=" in text
    assert "<script>document.title" not in text
    assert text.count("</script>") == 3


def test_another_ending_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="the extension '.gif' does not") as refusal:
        save(distributions(document_of()), tmp_path / "figure.gif")
    assert refusal.value.hint == "end the name in .html, .svg, .png"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="cannot write .*No such file or directory"):
        save(distributions(document_of()), tmp_path / "nowhere" / "figure.svg")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "vl_convert" else find_spec(name)
    )
    with pytest.raises(UnusableInput, match="figures need vl-convert") as refusal:
        require_figures()
    assert refusal.value.hint == "pip install 'equipoise[report]'"


def test_the_library_is_one_script_that_cannot_end_itself() -> None:
    library = vega_library()
    assert "vegaEmbed" in library
    assert "</script" not in library.lower()
    assert "<!--" not in library


def test_the_library_is_made_once_and_again_if_the_state_folder_lost_or_damaged_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def bundle(snippet: str, **options: str) -> str:
        made.append(snippet)
        return "script\n"

    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    library = vega_library.__wrapped__
    assert [library(), library(), len(made)] == ["script\n", "script\n", 1]
    (kept,) = (tmp_path / "equipoise/figures").iterdir()
    kept.write_text(kept.read_text() + "alert(1)")
    assert [library(), library(), len(made)] == ["script\n", "script\n", 2]
    # No folder can be below a file.
    monkeypatch.setenv("XDG_STATE_HOME", str(kept))
    assert [library(), library(), len(made)] == ["script\n", "script\n", 4]


def test_json_in_a_script_can_neither_end_nor_begin_an_element() -> None:
    text = script_json({"name": HOSTILE + "\u2028<!--"})
    assert not set("<>&\u2028") & set(text)


def test_json_in_a_script_has_no_infinity() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("inf")])
