"""Errors and hints that a caller from Python reads name arguments, not options."""

from __future__ import annotations

import pytest

from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput
from equipoise.shared.python_spelling import in_python, python_errors


@pytest.mark.parametrize(
    ("on_the_command_line", "in_a_script"),
    [
        ("lower --min-blocks or raise --blocks", "lower min_blocks or raise blocks"),
        ("--precision 1 goes on", "precision=1 goes on"),
        ("--patient exceeds the budget", "patient=True exceeds the budget"),
        ("--ranking off asks less", "ranking=False asks less"),
        ("give --layouts 12 (layouts=12) with it", "give layouts=12 with it"),
        ("--adjust (adjust=True) does not fit", "adjust=True does not fit"),
        ("or give --aslr off", 'or give aslr="off"'),
        ("as in --metrics a,b or metrics=('a', 'b')", "as in metrics=('a', 'b')"),
        ("give --missing drop", 'give missing="drop"'),
        (
            "equipoise resume 12 --blocks 40; --patient",
            "equipoise resume 12 --blocks 40; patient=True",
        ),
        ("see `ld.so --list-tunables` for them", "see `ld.so --list-tunables` for them"),
        ("nothing is an option here -- or is it", "nothing is an option here -- or is it"),
    ],
)
def test_options_become_arguments_and_commands_stay(
    on_the_command_line: str, in_a_script: str
) -> None:
    assert in_python(on_the_command_line) == in_a_script


@python_errors
def raises(error: EquipoiseError, timeout: float = 1.0) -> None:
    raise error


def test_a_command_of_the_user_keeps_its_options_in_an_error() -> None:
    with pytest.raises(ConditionFailed) as failed:
        raises(ConditionFailed("curl --timeout 5 failed", hint="raise --timeout"))
    assert str(failed.value) == "curl --timeout 5 failed\nraise timeout"
    with pytest.raises(UnusableInput) as refused:
        raises(UnusableInput("--timeout is too small for sort --parallel"))
    assert "--timeout" not in refused.value.what
