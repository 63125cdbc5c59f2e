"""An error fits in a line or two, whatever the file that it speaks of quotes."""

from __future__ import annotations

from equipoise.shared.errors import LONGEST_TEXT, UnusableInput


def test_an_overlong_text_keeps_its_place_and_its_reason() -> None:
    error = UnusableInput(f"study.toml:7: there is no metric '{'x' * 100_000}'", hint="y" * 5000)
    assert error.what.startswith("study.toml:7: there is no metric 'xxx")
    assert error.what.endswith("x'")
    assert "99" in error.what.split("(")[1].split(" letters)")[0]
    for part in (error.what, error.hint or "", *str(error).split("\n")):
        assert len(part) < LONGEST_TEXT + 50


def test_a_text_of_ordinary_length_stays_as_it_is() -> None:
    error = UnusableInput("w" * LONGEST_TEXT, hint="m" * LONGEST_TEXT)
    assert error.what == "w" * LONGEST_TEXT
    assert error.hint == "m" * LONGEST_TEXT
