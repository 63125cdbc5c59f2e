"""An error fits in a line or two, whatever the file that it speaks of quotes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from equipoise.shared.errors import MAX_TEXT_LETTERS, UnusableInput
from equipoise.shared.extras import install_line


def test_an_overlong_text_keeps_its_place_and_its_reason() -> None:
    error = UnusableInput(f"study.toml:7: there is no metric '{'x' * 100_000}'", hint="y" * 5000)
    assert error.what.startswith("study.toml:7: there is no metric 'xxx")
    assert error.what.endswith("x'")
    assert "99" in error.what.split("(")[1].split(" letters)")[0]
    for part in (error.what, error.hint or "", *str(error).split("\n")):
        assert len(part) < MAX_TEXT_LETTERS + 50


def test_a_text_of_ordinary_length_stays_as_it_is() -> None:
    error = UnusableInput("w" * MAX_TEXT_LETTERS, hint="m" * MAX_TEXT_LETTERS)
    assert error.what == "w" * MAX_TEXT_LETTERS
    assert error.hint == "m" * MAX_TEXT_LETTERS


@pytest.mark.parametrize(
    ("receipt", "line"),
    [
        (None, "pip install 'equipoise[report]'"),
        ("pipx_metadata.json", "pipx runpip equipoise install 'equipoise[report]'"),
        ("uv-receipt.toml", "uv pip install --python '/a tool/python' 'equipoise[report]'"),
    ],
)
def test_the_line_is_that_of_the_tool_that_installed_equipoise(
    receipt: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if receipt is not None:
        (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/a tool/python")
    assert install_line("equipoise[report]") == line
