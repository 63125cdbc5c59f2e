"""A shell splits a line from a report into exactly the original words."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from equipoise.design.command_line import (
    arguments_after_options,
    shell_line,
    shell_line_with_placeholders,
)
from equipoise.report.renderers.markdown import code_block
from packages.equipoise.tests.payloads import LONG, PAYLOADS

WORDS = ("plain", "", *PAYLOADS, LONG, "\\' \x1b \\n", "a\rb", "größer\u202e")


def test_a_shell_reads_every_word_literally_and_runs_none(tmp_path: Path) -> None:
    line = f"printf '%s\\0' {shell_line(WORDS)}"
    done = subprocess.run(["bash", "-c", os.fsencode(line)], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]] == list(WORDS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", [word for word in WORDS if word.isprintable()])
def test_without_controls_it_is_for_any_shell(word: str) -> None:
    assert shlex.split(shell_line([word])) == [word]


def test_no_form_changes_it() -> None:
    assert code_block(shell_line(WORDS)).count(shell_line(WORDS)) == 1
    assert shell_line(WORDS).isprintable()


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("2:TOKEN=$TOKEN", '"2:TOKEN=$TOKEN"'),
        ("mine:TOKEN=$TOKEN_2", '"mine:TOKEN=$TOKEN_2"'),
        ("/usr/bin/env 'TOKEN=$TOKEN' a b", "\"/usr/bin/env 'TOKEN=$TOKEN' a b\""),
        ("2:A=$B", "'2:A=$B'"),
        ("sh -c 'A=$A x'", shlex.quote("sh -c 'A=$A x'")),
        ("plain", "plain"),
    ],
)
def test_a_shell_expands_only_the_placeholders_of_hidden_values(word: str, quoted: str) -> None:
    assert shell_line_with_placeholders([word]) == quoted


def test_special_characters_beside_a_placeholder_are_text(tmp_path: Path) -> None:
    word = "env 'TOKEN=$TOKEN' 'a\"`touch x`$(touch y)\\'"
    line = f"printf %s {shell_line_with_placeholders([word])}"
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=tmp_path, env={"TOKEN": "$(touch z)"}, capture_output=True
    )
    assert done.stdout.decode() == word.replace("$TOKEN", "$(touch z)")
    assert list(tmp_path.iterdir()) == []


def test_a_word_after_the_options_is_not_an_option() -> None:
    assert arguments_after_options(["a", "-b"]) == ["--", "a", "-b"]
    assert arguments_after_options(["a", "b -c"]) == ["a", "b -c"]
