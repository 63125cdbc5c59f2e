"""``why --flame-graph`` and ``--firefox``, and the flame graph that a page gets."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from equipoise.cli.options.declaration import read_request
from equipoise.cli.writing import flame_graph_of, save_flame_graph
from equipoise.kinds.explain import command as why
from equipoise.kinds.explain.command import (
    Pictures,
    WhyRequest,
    report_missing_pictures,
    write_pictures,
)
from equipoise.model.errors import UnusableInput
from equipoise.shared.pictures import PIXELS_PER_POINT
from equipoise.why.explanation import latest_evidence
from equipoise.why.result import result_of
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.why.test_explanation import profiles, record_of


def pictures(flame_graph: Path | None, firefox: Path | None = None) -> Pictures:
    options = {"--flame-graph": flame_graph, "--firefox": firefox}
    words = [f"{name}={file}" for name, file in options.items() if file is not None]
    context = why.command.make_context("why", [*words, "last"])
    return read_request(WhyRequest, context.params).pictures()


def test_the_profiles_of_a_campaign_are_written_as_both_files(tmp_path: Path) -> None:
    evidence = latest_evidence(record_of(1.0, 2.0, observations=profiles((0, 1.0), (1, 2.0))))
    assert evidence is not None
    wanted = pictures(tmp_path / "flames.svg", tmp_path / "profile.json")
    write_pictures(wanted, evidence)
    assert ElementTree.parse(tmp_path / "flames.svg").getroot().tag.endswith("svg")
    threads = json.loads((tmp_path / "profile.json").read_bytes())["threads"]
    assert [thread["name"] for thread in threads] == ["a", "b"]
    write_pictures(pictures(None, None), evidence)


def test_without_an_explanation_the_missing_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report_missing_pictures(pictures(tmp_path / "flames.svg", None))
    problem = f"{tmp_path / 'flames.svg'} is not written, because there is nothing to explain"
    assert capsys.readouterr().err == f"equipoise: {problem}\n"
    report_missing_pictures(pictures(None, None))
    assert capsys.readouterr().err == ""


def test_without_a_profile_the_file_is_refused_and_not_written(tmp_path: Path) -> None:
    evidence = latest_evidence(record_of(1.0, 2.0, observations=profiles((1, 2.0))))
    assert evidence is not None
    with pytest.raises(UnusableInput, match="no profile of both"):
        write_pictures(pictures(tmp_path / "flames.svg", None), evidence)
    assert not list(tmp_path.iterdir())


def test_a_page_gets_the_flame_graph_of_the_gap_that_was_observed() -> None:
    observed = record_of(1.0, 2.0, observations=profiles((0, 1.0), (1, 2.0)))
    svg = flame_graph_of(observed, result_of(observed))
    assert svg is not None
    assert b"work" in svg
    unobserved = record_of(1.0, 2.0)
    assert flame_graph_of(unobserved, result_of(unobserved)) is None
    half = record_of(1.0, 2.0, observations=profiles((1, 2.0)))
    assert flame_graph_of(half, result_of(half)) is None


def test_a_missing_folder_is_reported_first(equipoise: Equipoise) -> None:
    answer = equipoise("why", "last", "--no-test", "--flame-graph", "missing/flames.svg")
    assert answer.status == 2
    assert "there is no folder" in answer.err


def test_the_flame_graph_stands_among_the_figures_as_a_vector_and_a_pixel_picture(
    tmp_path: Path,
) -> None:
    observed = record_of(1.0, 2.0, observations=profiles((0, 1.0), (1, 2.0)))
    svg = flame_graph_of(observed, result_of(observed))
    assert svg is not None
    folder = tmp_path / "figures"
    save_flame_graph(svg, folder)
    assert (folder / "flame_graph.svg").read_bytes() == svg
    png = (folder / "flame_graph.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width = float(str(ElementTree.fromstring(svg).get("width")))
    assert int.from_bytes(png[16:20]) == round(width * PIXELS_PER_POINT)
    assert {file.name for file in folder.iterdir()} == {"flame_graph.svg", "flame_graph.png"}
