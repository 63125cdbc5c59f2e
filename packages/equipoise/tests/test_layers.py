"""The rooms of the house: who may import whom, who may print, and what a file may be.

The rooms of CONTRIBUTING.md as a table. A new room gets a line in ``MAY_IMPORT``; until it has
one, its imports fail here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "packages/equipoise/src"

NATIVE = "_native"
FACE = "equipoise"
"""``equipoise/__init__.py``, the public face."""

MAY_IMPORT: dict[str, frozenset[str]] = {
    "model": frozenset(),
    "files": frozenset({"model"}),
    "design": frozenset({"model"}),
    # The native part knows the version of Equipoise, which is a fact of the environment.
    "measure": frozenset({"model", "files", "design", NATIVE}),
    "helpers": frozenset(),
    # It reports through the file that workloads use.
    "counting": frozenset({"model", "measure", "helpers"}),
    "ledger": frozenset({"model", "files"}),
    "stats": frozenset({"model", NATIVE}),
    # What it hands on is a package of its own, packages/matching.
    "matching": frozenset({"model"}),
    "figures": frozenset({"model", "stats", "files"}),
    "report": frozenset({"model", "files", "design", "stats", "figures"}),
    # A site renders no campaign itself: the command gives it the function that does.
    "site": frozenset({"model", "files", "ledger", "report"}),
    "interop": frozenset({"model"}),
    "studies": frozenset(
        {"model", "files", "design", "measure", "stats", "figures", "helpers", "matching"}
    ),
    "campaign": frozenset({"model", "design", "measure", "ledger", "stats"}),
    "analysis": frozenset({"model", "design", "measure", "ledger", "stats", "campaign"}),
    "why": frozenset(
        {"model", "design", "measure", "helpers", "counting", "ledger", "stats", "campaign"}
        | {"analysis"}
    ),
    # What a benchmark tool prints is read as any file of it is read.
    "suites": frozenset({"model", "interop", "helpers", "counting"}),
    "revisions": frozenset(
        {"model", "files", "design", "measure", "helpers", "counting", "stats", "campaign"}
        | {"analysis", "suites"}
    ),
    "cluster": frozenset({"model", "files", "design", "measure", "ledger", "campaign", "matching"}),
    # The Python interface is next to the command line: on top of the rooms, below the face.
    "api": frozenset(
        {
            "model",
            "files",
            "design",
            "measure",
            "ledger",
            "figures",
            "campaign",
            "analysis",
            "why",
            "studies",
        }
        | {"report"}
    ),
    "magics": frozenset({"model", "api"}),
    FACE: frozenset({"model", "api", "matching", "magics"}),
}
SHARED = "shared"
"""Folder that every room may import: packages/shared, which both wheels carry."""
MAY_IMPORT = {room: allowed | {SHARED} for room, allowed in MAY_IMPORT.items()}
MAY_IMPORT[SHARED] = frozenset()
MAY_IMPORT["cli"] = frozenset(MAY_IMPORT)
MAY_IMPORT["kinds"] = frozenset(MAY_IMPORT) - {FACE} | {NATIVE}
"""A kind uses every room; no room imports a kind: `equipoise.model.kinds` finds it by its name."""
MAY_IMPORT["__main__"] = frozenset({"cli"})

LAZILY: dict[str, frozenset[str]] = {
    FACE: frozenset({"api", "matching", "magics"}),
    "api": frozenset({"report"}),
}
"""Imports that a room may make only inside a function: ``import equipoise`` stays quick."""

BESIDE: dict[str, frozenset[str]] = {
    "equipoise_matching": frozenset({"matching", "cluster", "report", "cli", FACE}),
    # Entry points alone lead to it.
    "equipoise_studies": frozenset(),
}
"""Other packages, each with the rooms that may import it: it may not be installed."""

PRINT = frozenset({"cli", "report", "kinds/command"})
"""Rooms that print; of a kind of campaign only its command does."""
COMMANDS_OF_KINDS = ("command", "comment")
"""Files of kinds with a command; a kind may have several."""
PRINTING_PACKAGES = frozenset({"rich", "click"})
KNOWS_NO_FILES = {
    "stats": frozenset(
        {"io", "multiprocessing", "os", "pathlib", "psutil", "shutil", "socket", "sqlite3"}
        | {"subprocess", "tempfile"}
    )
}

LONGEST = 700
LONG_FILES: dict[str, str] = {}
"""Files that may be longer, each with its reason."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, by its whole name; ``lazy`` if it is not run with the module."""

    line: int
    module: str
    lazy: bool


def imports(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import of the module, in ``package`` for relative ones."""
    lazy = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test))
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        for module in imported_modules(node, package):
            yield Import(getattr(node, "lineno", 0), module, id(node) in lazy)


def imported_modules(node: ast.AST, package: str) -> list[str]:
    """The modules that one statement or call imports; of ``from a import b``, ``a.b``."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        within = parts[: len(parts) - node.level + 1] if node.level else []
        base = ".".join([*within, *([node.module] if node.module else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func)
        if called in {"importlib.import_module", "import_module", "__import__"}:
            return [str(node.args[0].value)]
    return []


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a file or module, by its parts below ``equipoise``."""
    return FACE if not parts or parts[0] == "__init__" else parts[0]


def printing_room(parts: tuple[str, ...]) -> str:
    """The room of a file for what it may print: the command of a kind is separate."""
    is_command = parts[0] == "kinds" and parts[-1] in COMMANDS_OF_KINDS
    return "kinds/command" if is_command else room_of(parts)


def layer_violations(source: Path) -> list[str]:
    """Imports that the table does not allow, in ``source/equipoise``."""
    found = []
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source / FACE).with_suffix("").parts
        room = room_of(parts)
        package = ".".join((FACE, *parts[:-1]))
        for imported in imports(ast.parse(file.read_text()), package):
            top, *below = imported.module.split(".")
            where = f"{'/'.join(parts)}.py:{imported.line}: {room}"
            if top == FACE:
                found += import_of_ours(where, room, tuple(below), imported.lazy, source)
            elif room not in BESIDE.get(top, frozenset({room})):
                found.append(f"{where} may not import {top}")
            elif top in KNOWS_NO_FILES.get(room, frozenset()):
                found.append(f"{where} knows neither files nor processes, but imports {top}")
            elif top in PRINTING_PACKAGES and printing_room(parts) not in PRINT:
                found.append(f"{where} does not print, but imports {top}")
    return found


def import_of_ours(
    where: str, room: str, below: tuple[str, ...], lazy: bool, source: Path
) -> list[str]:
    """Faults of the import of ``equipoise.<below>`` by ``room``."""
    target = room_of(below)
    if below and not is_module(source / FACE / below[0]) and below[0] != NATIVE:
        target = FACE  # a name out of the face: from equipoise import compare
    if target == room:
        return []
    if room not in MAY_IMPORT:
        return [f"{where} is not a room of tests/test_layers.py"]
    if target not in MAY_IMPORT[room]:
        return [f"{where} may not import {target}"]
    if target in LAZILY.get(room, frozenset()) and not lazy:
        return [f"{where} may import {target} only inside a function"]
    return []


def is_module(path: Path) -> bool:
    """Whether there is a package or a module at the path, which has no suffix."""
    return path.is_dir() or path.with_suffix(".py").exists()


def printing_violations(source: Path) -> list[str]:
    """Calls of ``print`` and writes to the standard streams outside ``cli`` and ``report``."""
    found = []
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source / FACE).with_suffix("").parts
        room = room_of(parts)
        may_print = printing_room(parts) in PRINT
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            where = f"{'/'.join(parts)}.py:{node.lineno}: {room}"
            prints = called == "print" or called.startswith(("sys.stdout.", "sys.stderr."))
            if prints and not may_print:
                found.append(f"{where} does not print, but calls {called}")
            if called == "open" and room in KNOWS_NO_FILES:
                found.append(f"{where} knows neither files nor processes, but calls open")
    return found


def undocumented(source: Path) -> list[str]:
    """Modules without a docstring."""
    return [
        f"{file.relative_to(source)} has no docstring"
        for file in sorted(source.rglob("*.py"))
        if not ast.get_docstring(ast.parse(file.read_text()))
    ]


def length_violations(root: Path, reasons: dict[str, str]) -> list[str]:
    """Files above 400 lines without a reason, and reasons that no file needs."""
    files = [
        file
        for folder, pattern in (
            ("tests", "*.py"),
            ("crates", "*.rs"),
            ("packages", "*.py"),
            ("packages", "*.rs"),
        )
        for file in sorted((root / folder).rglob(pattern))
        if "target" not in file.parts
    ]
    lengths = {str(file.relative_to(root)): len(file.read_text().splitlines()) for file in files}
    return [
        f"{name} has {length} lines: split it, or list it in LONG_FILES with the reason"
        for name, length in lengths.items()
        if length > LONGEST and name not in reasons
    ] + [
        f"{name} is in LONG_FILES but no longer than {LONGEST} lines"
        for name in reasons
        if lengths.get(name, 0) <= LONGEST
    ]


def test_no_room_imports_a_higher_one() -> None:
    assert layer_violations(SOURCE) == []


def test_shared_modules_import_none_of_the_packages() -> None:
    for file in (ROOT / "packages" / SHARED).glob("*.py"):
        modules = [imported.module for imported in imports(ast.parse(file.read_text()), SHARED)]
        assert not [module for module in modules if module.startswith("equipoise")], file.name


def test_only_cli_and_report_print() -> None:
    assert printing_violations(SOURCE) == []


def test_every_module_says_what_it_is() -> None:
    assert undocumented(SOURCE) == []


def test_no_file_is_longer_than_one_sitting() -> None:
    assert length_violations(ROOT, LONG_FILES) == []


def planted(folder: Path, place: str, text: str) -> Path:
    """A source tree with the rooms of the table and one file of the given text."""
    for room in MAY_IMPORT.keys() - {FACE, "__main__"}:
        (folder / FACE / room).mkdir(parents=True)
        (folder / FACE / room / "__init__.py").write_text('"""A room."""\n')
    (folder / FACE / place).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("model/plan.py", "import equipoise.stats"),
        ("model/plan.py", "from equipoise.ledger.store import Ledger"),
        ("model/plan.py", "from equipoise import ledger"),
        ("model/plan.py", "from equipoise import compare"),
        ("model/plan.py", "from .. import stats"),
        ("model/plan.py", "from ..stats.verdict import judge"),
        ("ledger/store.py", "def read():\n    from equipoise.measure import run"),
        ("ledger/store.py", "import importlib\nimportlib.import_module('equipoise.cli')"),
        ("design/coin.py", "from equipoise import _native"),
        ("report/html.py", "from equipoise.cli.main import main"),
        ("campaign/run.py", "from equipoise.report.terminal import show"),
        ("attic.py", "import equipoise.model"),
        ("__init__.py", "from equipoise.campaign import compare"),
        ("__init__.py", "def compare():\n    from equipoise.cli.main import main"),
        ("campaign/run.py", "def run():\n    import equipoise_matching"),
        ("cli/os.py", "from equipoise_studies.primitives.command import command"),
        ("stats/verdict.py", "import subprocess"),
        ("stats/verdict.py", "from pathlib import Path"),
        ("stats/verdict.py", "import os.path"),
        ("measure/run.py", "from rich.console import Console"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, place: str, text: str) -> None:
    found = layer_violations(planted(tmp_path, place, text))
    assert len(found) == 1
    assert found[0].startswith(place)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("model/record.py", "from equipoise.model.plan import Plan"),
        ("model/record.py", "from .plan import Plan"),
        ("stats/verdict.py", "from equipoise import _native"),
        ("stats/verdict.py", "from equipoise._native import sequence"),
        ("stats/verdict.py", "import math\nimport numpy as np"),
        ("cli/compare.py", "import click\nfrom equipoise.campaign.run import run"),
        ("cli/match.py", "from equipoise_matching.tables.matching import match_table"),
        ("model/record.py", "from equipoise.shared.numbers import Interval"),
        ("campaign/run.py", "import os\nfrom equipoise.ledger.store import Ledger"),
        ("__init__.py", "def compare():\n    from equipoise.api import compare"),
        (
            "__init__.py",
            "from typing import TYPE_CHECKING\nfrom equipoise.model.errors import EquipoiseError\n"
            "if TYPE_CHECKING:\n    from equipoise.api import compare",
        ),
        ("__main__.py", "from equipoise.cli.main import main"),
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, place: str, text: str) -> None:
    assert layer_violations(planted(tmp_path, place, text)) == []


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("measure/run.py", "def run():\n    print('done')"),
        ("ledger/store.py", "import sys\nsys.stderr.write('done')"),
        ("stats/verdict.py", "def read(name):\n    return open(name)"),
    ],
)
def test_a_planted_call_is_found(tmp_path: Path, place: str, text: str) -> None:
    found = printing_violations(planted(tmp_path, place, text))
    assert len(found) == 1
    assert found[0].startswith(place)


def test_the_rooms_that_print_may_print(tmp_path: Path) -> None:
    assert printing_violations(planted(tmp_path, "cli/show.py", "print('done')")) == []


def test_a_module_without_docstring_is_found(tmp_path: Path) -> None:
    found = undocumented(planted(tmp_path, "model/plan.py", "answer = 42"))
    assert found == ["equipoise/model/plan.py has no docstring"]


def test_a_long_file_needs_a_reason_and_a_reason_needs_a_long_file(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "long.py").write_text("answer = 42\n" * (LONGEST + 1))
    (tmp_path / "tests" / "short.py").write_text("answer = 42\n" * LONGEST)
    assert len(length_violations(tmp_path, {})) == 1
    assert length_violations(tmp_path, {"tests/long.py": "one table"}) == []
    both = {"tests/long.py": "one table", "tests/short.py": "none"}
    assert length_violations(tmp_path, both) == [
        f"tests/short.py is in LONG_FILES but no longer than {LONGEST} lines"
    ]
