"""``%compare`` and ``%%compare`` in IPython."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from equipoise.api import Result
from equipoise.kinds.functions.result import FunctionsDocument

FEW = "--blocks 5 --budget 20"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A running IPython without a history, with the magics loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    running = InteractiveShell.instance(history_manager=None)
    running.run_line_magic("load_ext", "equipoise")
    yield running
    InteractiveShell.clear_instance()


def test_a_line_compares_two_pieces_with_the_names_of_the_notebook(shell: Any) -> None:
    shell.run_cell("x = list(range(50))\ndef f(): return sum(x)")
    result = shell.run_line_magic("compare", f"{FEW} --seed 3 f() --- len(x) + len(x)")
    assert isinstance(result, Result)
    assert [condition.name for condition in result.document.conditions] == [
        "f()",
        "len(x) + len(x)",
    ]
    assert result.document.run.seed == 3
    assert result.document.run.blocks == 5


def test_a_cell_compares_several_lines_after_a_setup(shell: Any) -> None:
    cell = "assert x == [3, 1, 2]\nsorted(x)\n---\nassert x == [3, 1, 2]\nx.sort()\n"
    result = shell.run_cell_magic("compare", f"{FEW} x = [3, 1, 2]", cell)
    assert isinstance(result.document, FunctionsDocument)
    functions = result.document.functions
    assert (functions.setup, functions.fresh_data) == ("x = [3, 1, 2]", True)


def test_a_result_shows_itself(shell: Any) -> None:
    result = shell.run_line_magic("compare", f"{FEW} 1 + 1 --- 2 + 2")
    shown, _ = shell.display_formatter.format(result)
    assert shown["text/plain"] == str(result)
    assert "<table" in shown["text/html"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "needs code"),
        ("1 + 1 ---", "needs code before and after each ---"),
        ("--blocks none 1 --- 2", "blocks=none is not a whole number"),
        ("--budget ' 1 --- 2", "--budget ' has no closing quotation mark"),
        ("--frobnicate 3 1 --- 2", "there is no option --frobnicate"),
        ("1 + --- 2", "is not code that can be timed"),
    ],
)
def test_a_mistake_is_said_in_two_lines(
    shell: Any, capsys: pytest.CaptureFixture[str], line: str, what: str
) -> None:
    shell.run_cell(f"%compare {line}")
    error = capsys.readouterr().err
    assert error.startswith("UsageError: ")
    assert what in error
    assert "hint: " in error
    assert "Traceback" not in error


def test_the_code_that_is_measured_is_the_code_that_was_typed(shell: Any) -> None:
    shell.run_cell("x = 5")
    result = shell.run_line_magic("compare", FEW + ' f"{x} $x" --- {1, x}')
    assert [condition.name for condition in result.document.conditions] == ['f"{x} $x"', "{1, x}"]
    cell = shell.run_cell_magic("compare", f"{FEW} y = {{x}}", "len(y)\n---\ny | {x}\n")
    assert isinstance(cell.document, FunctionsDocument)
    assert cell.document.functions.setup == "y = {x}"
