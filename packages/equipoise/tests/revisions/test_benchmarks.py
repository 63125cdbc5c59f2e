"""The suite of a gate: what a file and what `--bench` may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.revisions.benchmarks import Benchmark, parse_benchmarks, read_suite


def suite(folder: Path, text: str) -> Path:
    path = folder / "suite.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_command_is_a_line_or_a_list_of_words(tmp_path: Path) -> None:
    text = (
        'build = "make"\n[benchmarks]\n"two words" = "./bench \'a b\'"\nlist = ["./bench", "|"]\n'
    )
    parsed = read_suite(suite(tmp_path, text))
    assert parsed.build == "make"
    assert parsed.benchmarks == (
        Benchmark("two words", ("./bench", "a b")),
        Benchmark("list", ("./bench", "|")),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("benchmarks", "is not TOML"),
        ("", "has no benchmark"),
        ("[benchmarks]\n", "has no benchmark"),
        ("benchmarks = 3\n", "has no benchmark"),
        ('build = 1\n[benchmarks]\na = "b"\n', "the value of build is not a string"),
        ('[bench]\na = "b"\n', "has the unknown key 'bench'"),
        ("[benchmarks]\na = 1\n", "benchmarks.a is not a command"),
        ('[benchmarks]\na = ""\n', "benchmarks.a is not a command"),
        ('[benchmarks]\na = ["b", 1]\n', "benchmarks.a is not a command"),
        ('[benchmarks.a]\ncommand = "b"\n', "benchmarks.a is not a command"),
        ('[benchmarks]\na = "it\'s"\n', "benchmarks.a: cannot split"),
    ],
)
def test_a_file_that_is_no_suite_is_refused_with_the_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(UnusableInput, match=problem) as caught:
        read_suite(suite(tmp_path, text))
    assert caught.value.hint


def test_a_missing_file_or_one_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="cannot read"):
        read_suite(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UnusableInput, match="is not TOML"):
        read_suite(tmp_path / "bytes.toml")


def test_a_name_ends_at_its_first_equals_sign() -> None:
    assert parse_benchmarks(("a=env X=1 ./bench",)) == (Benchmark("a", ("env", "X=1", "./bench")),)
