"""Messages name options as whoever reads them types them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import equipoise
import equipoise_matching
from equipoise.shared.spelling import Value, command_line_spelling, option
from equipoise_matching.shared import spelling as copy_of_the_package


@pytest.mark.parametrize(
    ("name", "value", "on_a_terminal", "in_python"),
    [
        ("min_effect", None, "--min-effect", "min_effect"),
        ("blocks", 40, "--blocks 40", "blocks=40"),
        ("budget", 0.5, "--budget 0.5", "budget=0.5"),
        ("patient", True, "--patient", "patient=True"),
        ("missing", "drop", "--missing drop", 'missing="drop"'),
        ("exact", ["host", "day"], "--exact host,day", 'exact=["host", "day"]'),
        ("exact", "a column", "--exact 'a column'", 'exact="a column"'),
    ],
)
def test_an_option_is_spelled_for_its_reader(
    name: str, value: Value, on_a_terminal: str, in_python: str
) -> None:
    assert option(name, value) == in_python
    with command_line_spelling():
        assert option(name, value) == on_a_terminal
    assert option(name, value) == in_python


def test_an_irregular_option_has_a_spelling_of_its_own_on_the_command_line() -> None:
    assert option("ranking", False) == "ranking=False"
    with command_line_spelling():
        assert option("ranking", False) == "--ranking off"


def test_python_has_its_spelling_back_after_an_error_on_the_command_line() -> None:
    with pytest.raises(KeyError), command_line_spelling():
        raise KeyError
    assert option("blocks") == "blocks"


def test_the_spelling_of_a_command_line_within_another_stays_until_the_outer_ends() -> None:
    with command_line_spelling():
        with command_line_spelling():
            pass
        assert option("blocks") == "--blocks"


def test_the_choice_of_the_command_line_holds_in_the_copy_of_each_package() -> None:
    assert copy_of_the_package.option is not option
    with command_line_spelling():
        assert copy_of_the_package.option("missing", "drop") == "--missing drop"
    with copy_of_the_package.command_line_spelling():
        assert option("missing", "drop") == "--missing drop"
    assert copy_of_the_package.option("missing", "drop") == option("missing", "drop")
    assert option("missing", "drop") == 'missing="drop"'


SOURCES = Path(equipoise.__file__).parent
PACKAGE = Path(equipoise_matching.__file__).parent
ROOMS = tuple(
    SOURCES / room for room in ("kinds/functions", "design", "campaign", "stats")
) + tuple(PACKAGE / room for room in ("charts", "genetic", "matching", "observation", "tables"))
"""Rooms whose messages people read who call Python."""
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
COMMAND = re.compile(r"\b(?:equipoise (?:os|resume)|ld\.so|Wl,)\W")
"""A command in a message is the same for every reader."""


def expressions_of(module: ast.Module) -> Iterator[ast.AST]:
    """Everything that runs when the module is imported."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def messages_in(module: ast.Module) -> Iterator[str]:
    """Texts of several words that are no docstrings; a value within one is ``{}``."""
    for node in ast.walk(module):
        is_documentation = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_done = is_documentation or isinstance(node, ast.JoinedStr)
        for child in () if is_done else ast.iter_child_nodes(node):
            if isinstance(child, ast.JoinedStr):
                parts = child.values
                yield "".join(
                    str(one.value) if isinstance(one, ast.Constant) else "{}" for one in parts
                )
            elif isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child.value


def test_no_option_is_spelled_when_a_module_is_imported() -> None:
    for path in (*SOURCES.rglob("*.py"), *PACKAGE.rglob("*.py")):
        for node in expressions_of(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id == "option"), path


def test_no_message_that_python_shows_spells_an_option_itself() -> None:
    for room in ROOMS:
        files = sorted(room.rglob("*.py"))
        assert files, room
        for path in files:
            for message in messages_in(ast.parse(path.read_text())):
                if " " in message and not COMMAND.search(message):
                    assert not OPTION.search(message), f"{path}: {message}"
