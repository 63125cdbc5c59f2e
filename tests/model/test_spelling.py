"""Messages name options as whoever reads them types them."""

from __future__ import annotations

import pytest

from equipoise.model.spelling import Value, command_line_spelling, option


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
    assert option("ranking", False, command_line="--ranking off") == "ranking=False"
    with command_line_spelling():
        assert option("ranking", False, command_line="--ranking off") == "--ranking off"


def test_python_has_its_spelling_back_after_an_error_on_the_command_line() -> None:
    with pytest.raises(KeyError), command_line_spelling():
        raise KeyError
    assert option("blocks") == "blocks"


def test_the_spelling_of_a_command_line_within_another_stays_until_the_outer_ends() -> None:
    with command_line_spelling():
        with command_line_spelling():
            pass
        assert option("blocks") == "--blocks"
