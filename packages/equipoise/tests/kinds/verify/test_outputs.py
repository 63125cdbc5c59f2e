"""The first difference of two outputs, as a short and safe text."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.kinds.verify.outputs import Difference, first_difference


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        (b"", b"", None),
        (b"one\ntwo", b"one\ntwo", None),
        (b"one\ntwo\n", b"one\ntoo\n", Difference(2, "two", "too")),
        (b"one\ntwo\n", b"one\n", Difference(2, "two", "(no line: the output ends)")),
        (b"one\n", b"one", Difference(1, "one", "one (without a line end)")),
        (b"a\x1b[2J", b"b", Difference(1, r"a\x1b[2J", "b")),
        (b"\xff", b"x", Difference(1, r"\xff", "x")),
        (b"x" * 99 + b"1", b"x" * 99 + b"2", Difference(1, f"…{20 * 'x'}1", f"…{20 * 'x'}2")),
    ],
)
def test_the_first_line_that_differs(
    expected: bytes, actual: bytes, difference: Difference | None, tmp_path: Path
) -> None:
    files = (tmp_path / "expected", tmp_path / "actual")
    for file, content in zip(files, (expected, actual), strict=True):
        file.write_bytes(content)
    assert first_difference(*files) == difference


def test_a_difference_far_inside_a_line_without_an_end_is_found(tmp_path: Path) -> None:
    files = (tmp_path / "expected", tmp_path / "actual")
    for file, last in zip(files, (b"1", b"2"), strict=True):
        file.write_bytes(b"x" * 200_000 + last)
    difference = first_difference(*files)
    assert difference is not None
    assert difference.line == 1
    assert difference.expected.endswith("1")
    assert difference.actual.endswith("2")
