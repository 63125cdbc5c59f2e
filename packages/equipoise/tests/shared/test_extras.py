"""What a hint says about installing works where Equipoise is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from equipoise.shared.extras import install_line


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
