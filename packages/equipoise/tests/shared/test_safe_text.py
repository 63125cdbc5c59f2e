"""What could steer a terminal is shown and not sent."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.shared.safe_text import visible


def test_escapes_and_bells_are_shown() -> None:
    assert visible("a\x1b[31mb\x07\n") == "a\\x1b[31mb\\x07\\n"


def test_words_in_any_language_stay_as_they_are() -> None:
    assert visible("größer 測試 – 35 % ✓") == "größer 測試 – 35 % ✓"


def test_a_change_of_direction_is_shown() -> None:
    assert visible("abc\u202edef") == "abc\\u202edef"


@settings(deadline=None)
@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    shown = visible(text)
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not any(ord(character) < 32 or ord(character) == 127 for character in shown)
