"""No class, function or module has a name that says nothing (CONTRIBUTING.md, glossary)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = tuple(ROOT.glob("packages/*/src"))
FORBIDDEN_NAMES = re.compile(
    r"Asked|Wanted|Found|Told|Tried|Gated|Gathered|Conducted|Ran|Notice|Caution"
    r"|told|said_again|foretold|few_lines|words|\w+_words|mend|sitting|standing|keeper"
    r"|errand|parcel|carrier|holder|door|turn|servants|scene|gather|gathered|gatherings|unlike"
    r"|newest|shown|taken|love"
)
FORBIDDEN_MODULES = re.compile(rf"{FORBIDDEN_NAMES.pattern}|asked|figure")


def names_of(file: Path) -> list[str]:
    """Return the names of the classes and functions of a file, and its own."""
    nodes = ast.walk(ast.parse(file.read_text()))
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [node.name.strip("_") for node in nodes if isinstance(node, kinds)]


def test_no_name_is_a_word_that_says_nothing() -> None:
    files = sorted(file for folder in SOURCES for file in folder.rglob("*.py"))
    wrong = [
        f"{file}: {name}"
        for file in files
        for name in names_of(file)
        if FORBIDDEN_NAMES.fullmatch(name)
    ]
    assert wrong + [str(file) for file in files if FORBIDDEN_MODULES.fullmatch(file.stem)] == []


def test_no_message_says_mend() -> None:
    sources = [
        *(file for folder in SOURCES for file in folder.rglob("*.py")),
        *(file for folder in SOURCES for file in folder.rglob("*.jinja")),
        *(ROOT / "crates").rglob("*.rs"),
        *ROOT.glob("packages/*/crates/**/*.rs"),
    ]
    # A column of the ledger.
    stored = {"schema.py", "rows.py", "untrusted.py"}
    answer = [
        str(file)
        for file in sources
        if re.search(r"\bmend", file.read_text(), re.I) and file.name not in stored
    ]
    assert answer == []
