"""LaTeX sets every name letter by letter; the parser of this file reads it back."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.model.record import CampaignWarning
from equipoise.report.renderers.latex import text
from equipoise.shared.safe_text import visible
from packages.equipoise.tests.documents import document_of, explanation_of
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.report.forms import to_latex

LETTERS = {
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textless": "<",
    "textgreater": ">",
    "textbar": "|",
    "textasciigrave": "`",
    "texttimes": "×",
    "textpm": "±",
    "textmu": "µ",
    "textendash": "–",
}
"""Letter that each command sets; any other command is none that a name may make."""
TOKEN = re.compile(r"\\char34|\\([A-Za-z]+)|\\([{}$&#%_])|(.)", re.DOTALL)


def read_back(latex: str) -> str:
    """The letters that are set; fails on anything that means something else to LaTeX."""
    letters: list[str] = []
    depth = 0
    for token in TOKEN.finditer(latex):
        command, escaped, letter = token.groups()
        if token[0] == r"\char34":
            letters.append('"')
        elif command is not None:
            letters.append(LETTERS[command])
        elif escaped is not None:
            letters.append(escaped)
        elif letter in "{}":
            depth += 1 if letter == "{" else -1
            assert depth in (0, 1)
        else:
            assert letter not in '\\$&#%_^~|<>`"' and letter.isprintable()
            assert depth == 1 or letter not in "[]*"
            letters.append(letter)
    assert depth == 0
    return "".join(letters)


def as_shown(payload: str) -> str:
    """Text that a reader should see of it."""
    return visible(payload.encode("utf-8", "backslashreplace").decode("utf-8"))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_name_is_set_as_it_stands(payload: str) -> None:
    assert read_back(text(payload)) == as_shown(payload)


@pytest.mark.parametrize("twice", ["--parallel", "a---b", "''", ",,"])
def test_two_signs_do_not_become_another_one(twice: str) -> None:
    assert re.search(r"([-',])\1", text(twice)) is None


def test_the_caption_is_the_verdict_and_a_row_stands_for_each_condition() -> None:
    latex = to_latex(document_of())
    assert r"\caption{\textbf{slower}: sort -{}-parallel=2 words is slower than sort words" in latex
    rows = [line.strip() for line in latex.splitlines() if line.endswith(r"\\")]
    assert [row.split(" & ")[0] for row in rows] == [
        "Condition",
        "sort words",
        "sort -{}-parallel=2 words",
    ]
    assert rows[2].endswith(r"+5.15 \% & +3.04 \% to +7.25 \% & slower \\")
    assert len({row.count(" & ") for row in rows}) == 1
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", latex)
    assert columns is not None
    assert len(columns[1]) == rows[0].count(" & ") + 1


def test_warnings_and_how_it_was_measured_stand_below() -> None:
    latex = to_latex(document_of(seed=4711))
    assert "Warning: The machine became 2 \\% slower" in latex
    assert "Seed: 4711" in latex
    assert r"\texttt{equipoise compare -{}-seed 4711" in latex


def test_a_label_holds_nothing_but_letters_digits_and_hyphens() -> None:
    document = document_of()
    hostile = replace(document, run=replace(document.run, id=r"a}\input{b_1"))
    assert r"\label{tab:equipoise-ainputb1}" in to_latex(hostile)


def test_hostile_text_anywhere_in_a_document_leaves_the_table_whole(tmp_path: Path) -> None:
    tables = [
        to_latex(
            replace(
                document_of(payload, f"other {payload}", words=payload, blocks=8),
                why=(explanation_of(payload),),
                warnings=(CampaignWarning("hostile", payload, payload),),
            )
        )
        for payload in PAYLOADS
    ]
    for table in tables:
        assert table.count(r"\begin{") == table.count(r"\end{") == 2
        unescaped = re.sub(r"\\[{}]", "", table)
        assert unescaped.count("{") == unescaped.count("}")
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1
    if shutil.which("pdflatex") is not None:
        compiled(tables, tmp_path)


def compiled(tables: list[str], folder: Path) -> None:
    """Let LaTeX itself read the tables; what needs a font of another script is left out."""
    body = "\n".join(re.sub("[測試✓]", "", table) + r"\clearpage" for table in tables)
    source = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    (folder / "tables.tex").write_text(f"{source}\n{body}\n\\end{{document}}\n", encoding="utf-8")
    done = finished(
        ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "tables.tex"],
        cwd=folder,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
