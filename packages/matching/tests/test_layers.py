"""The rooms of equipoise_matching: their imports, and the modules that a match loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.test_layers import imports, undocumented

PACKAGE = "equipoise_matching"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE
MAX_MODULES_OF_A_MATCH = 64

TEXT = frozenset({"shared", "warning", "report"})
"""Modules of errors and reports, which every room above may use."""
MAY_IMPORT: dict[str, frozenset[str]] = {
    "shared": frozenset(),
    "warning": frozenset(),
    "report": frozenset({"shared", "warning"}),
    "charts": frozenset({"shared"}),
    "genetic": TEXT | {"charts", "_native"},
    "matching": TEXT | {"charts", "genetic", "_native"},
    "effects": TEXT | {"matching"},
    "designs": TEXT | {"charts", "matching", "effects", "_native"},
    "weights": TEXT | {"matching", "effects", "designs"},
    "observation": TEXT | {"charts", "matching", "effects"},
    "tables": TEXT | {"matching", "effects", "designs", "weights", "observation"},
    "__init__": frozenset(
        {"shared", "genetic", "matching", "effects", "designs", "weights", "observation", "tables"}
    ),
}


def violations(source: Path) -> list[str]:
    """Return the imports that the table does not allow, late ones included."""
    found = []
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        package = ".".join((PACKAGE, *parts[:-1]))
        for imported in imports(ast.parse(file.read_text(encoding="utf-8")), package):
            top, *below = imported.module.split(".")
            where = f"{'/'.join(parts)}.py:{imported.line}"
            if top == "equipoise":
                found.append(f"{where} may not import the laboratory")
            elif top == PACKAGE and below[0] not in {parts[0]} | MAY_IMPORT[parts[0]]:
                found.append(f"{where}: {parts[0]} may not import {below[0]}")
            elif top in {"rich", "click"}:
                found.append(f"{where} does not print, but imports {top}")
    return found


def test_no_room_imports_a_higher_one_or_the_laboratory() -> None:
    assert violations(SOURCE) == []


def test_every_module_has_a_docstring() -> None:
    assert undocumented(SOURCE.parent) == []


@pytest.mark.parametrize(
    "text",
    [
        "from equipoise_matching.tables.reading import read_file",
        "def late():\n    from equipoise_matching import tables",
        "import equipoise.model",
        "import click",
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "matching").mkdir()
    (tmp_path / "matching" / "match.py").write_text(text)
    (found,) = violations(tmp_path)
    assert found.startswith("matching/match.py")


def modules_after(program: str) -> list[str]:
    """Return the names of the modules that a program in a new process has loaded at its end."""
    shown = f"{program}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


MATCH = """
import numpy as np
from {module} import match
treated = np.arange(40) % 2
x = np.random.default_rng(1).normal(size=40)
{call}
"""


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("equipoise_matching", "match(x, treated, x)"),
        (
            "equipoise_matching.tables",
            "match({'y': x, 't': treated, 'x': x}, 'y', 't', ['x']).summary()",
        ),
    ],
    ids=("arrays", "table"),
)
def test_a_match_loads_few_modules_and_none_of_the_laboratory(module: str, call: str) -> None:
    loaded = modules_after(MATCH.format(module=module, call=call))
    own = [name for name in loaded if name.partition(".")[0] == PACKAGE]
    assert f"{PACKAGE}.matching.match" in own
    assert len(own) <= MAX_MODULES_OF_A_MATCH
    assert not [name for name in loaded if name.partition(".")[0] in {"equipoise", "altair"}]


def test_importing_the_package_loads_no_numpy() -> None:
    assert "numpy" not in modules_after("import equipoise_matching")
