"""The rooms of equipoise_studies: who may import whom, and that it is found by entry points."""

from __future__ import annotations

import ast
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from equipoise.model.packages import PROGRAMS
from equipoise.studies.catalogue import ENTRY_POINTS, built_in_studies
from packages.equipoise.tests.test_layers import imports, undocumented
from tests.test_import_cycles import first_cycle, module_graph

PACKAGE = "equipoise_studies"
PROJECT = Path(__file__).resolve().parents[1]
SOURCE = PROJECT / "src" / PACKAGE

MAY_IMPORT: dict[str, frozenset[str]] = {
    "primitives": frozenset(),
    "load_generators": frozenset(),
    "study_data": frozenset(),
    "rank_correlation": frozenset(),
    "ranking": frozenset({"study_data"}),
    "builtin": frozenset(
        {"primitives", "load_generators", "study_data", "ranking", "rank_correlation"}
    ),
    "__init__": frozenset(),
}
PRINTS = ("primitives", "command")
"""The one module that may import click."""


def violations(source: Path) -> list[str]:
    """Return the imports that the table does not allow, late ones included."""
    found = []
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        package = ".".join((PACKAGE, *parts[:-1]))
        for imported in imports(ast.parse(file.read_text(encoding="utf-8")), package):
            top, *below = imported.module.split(".")
            where = f"{'/'.join(parts)}.py:{imported.line}"
            if top == PACKAGE and below[0] not in {parts[0]} | MAY_IMPORT[parts[0]]:
                found.append(f"{where}: {parts[0]} may not import {below[0]}")
            elif top in {"rich", "click"} and parts != PRINTS:
                found.append(f"{where} does not print, but imports {top}")
    return found


def test_no_package_imports_a_higher_one() -> None:
    assert violations(SOURCE) == []


def test_every_module_has_a_docstring() -> None:
    assert undocumented(SOURCE.parent) == []


def test_no_circle_of_imports() -> None:
    assert first_cycle(module_graph(SOURCE.parent, PACKAGE)) == []


@pytest.mark.parametrize(
    "text",
    [
        "from equipoise_studies.builtin.blas.analysis import findings",
        "def late():\n    from equipoise_studies import study_data",
        "import click",
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "primitives").mkdir()
    (tmp_path / "primitives" / "rows.py").write_text(text)
    (found,) = violations(tmp_path)
    assert found.startswith("primitives/rows.py")


def test_installed_entry_points_are_those_of_the_project() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"]
    assert {"equipoise.kinds", ENTRY_POINTS, PROGRAMS} == set(groups)
    for group, points in groups.items():
        installed = {point.name: point.value for point in entry_points(group=group)}
        assert installed.items() >= points.items(), "run `make build`"


def test_each_folder_with_a_study_is_found() -> None:
    folders = {file.parent.name for file in (SOURCE / "builtin").glob("*/study.toml")}
    assert folders == {study.name for study in built_in_studies()}
