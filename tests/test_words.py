"""Words of the first release that name no class, function or module any more (style.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN_NAMES = re.compile(
    r"Asked|Wanted|Found|Told|Tried|Gated|Gathered|Conducted|Ran|Notice|Caution"
    r"|told|said_again|again|foretold|few_lines|words|\w+_words|mend|sitting|look|standing|keeper"
    r"|errand|parcel|carrier|holder|door|turn|servants|scene|gather|gathered|gatherings|unlike|here"
    r"|newest|shown|taken|love"
)
FORBIDDEN_MODULES = re.compile(rf"{FORBIDDEN_NAMES.pattern}|asked|figure")


def names_of(file: Path) -> list[str]:
    """Return the names of the classes and functions of a file, and its own."""
    nodes = ast.walk(ast.parse(file.read_text()))
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [node.name.strip("_") for node in nodes if isinstance(node, kinds)]


def test_nothing_is_called_by_a_word_of_the_first_release() -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    wrong = [
        f"{file}: {name}"
        for file in files
        for name in names_of(file)
        if FORBIDDEN_NAMES.fullmatch(name)
    ]
    assert wrong + [str(file) for file in files if FORBIDDEN_MODULES.fullmatch(file.stem)] == []


def test_no_message_says_mend() -> None:
    sources = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.jinja"),
        *(ROOT / "crates").rglob("*.rs"),
    ]
    # A column of the ledger, and a field of the first release's documents.
    stored = {"schema.py", "store.py", "rows.py", "untrusted.py", "json_document.py"}
    answer = [
        str(file)
        for file in sources
        if re.search(r"\bmend", file.read_text(), re.I) and file.name not in stored
    ]
    assert answer == []
