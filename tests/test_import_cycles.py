"""No circle of imports: what a module needs can be read before the module."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from packages.equipoise.tests.test_layers import ROOT, imported_modules

PACKAGE = "equipoise"


def module_graph(source: Path, package: str = PACKAGE) -> dict[str, set[str]]:
    """Return the modules that each module imports when it runs, late imports included."""
    files = {module_name(file, source): file for file in python_files(source / package)}
    return {name: set(targets(name, file, files)) for name, file in files.items()}


def python_files(folder: Path) -> Iterator[Path]:
    """Return the modules below a folder, those of the linked folder `shared` as well."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield from (Path(place, name) for name in names if name.endswith(".py"))


def module_name(file: Path, source: Path) -> str:
    """Return the dotted name of a file; of ``__init__.py``, that of its package."""
    parts = file.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def targets(name: str, file: Path, files: dict[str, Path]) -> list[str]:
    """Return the modules that one file imports; type-only imports do not run."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    found = [module for node in ast.walk(tree) for module in imported_modules(node, package)]
    within = [module if module in files else module.rpartition(".")[0] for module in found]
    return [module for module in within if module in files and module != name]


def first_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of a circle, its first one again at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize(
    ("folder", "package"),
    [("equipoise", "equipoise"), ("matching", "equipoise_matching")],
    ids=("equipoise", "matching"),
)
def test_no_module_imports_itself_over_others(folder: str, package: str) -> None:
    graph = module_graph(ROOT / "packages" / folder / "src", package)
    assert f"{package}.shared.errors" in graph
    assert first_cycle(graph) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("import equipoise.b", "from equipoise.a import value"),
        ("from equipoise import b", "def late():\n    import equipoise.a"),
    ],
)
def test_a_planted_circle_is_found(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / PACKAGE).mkdir()
    for name, text in (("__init__", ""), ("a", first), ("b", second)):
        (tmp_path / PACKAGE / f"{name}.py").write_text(text)
    assert set(first_cycle(module_graph(tmp_path))) == {"equipoise.a", "equipoise.b"}


def test_an_import_for_types_alone_closes_no_circle(tmp_path: Path) -> None:
    (tmp_path / PACKAGE).mkdir()
    types_only = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import equipoise.a"
    for name, text in (("__init__", ""), ("a", "import equipoise.b"), ("b", types_only)):
        (tmp_path / PACKAGE / f"{name}.py").write_text(text)
    assert first_cycle(module_graph(tmp_path)) == []
