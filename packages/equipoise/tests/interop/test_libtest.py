"""The text of `cargo bench` without criterion."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import reading_of
from packages.equipoise.tests.suites.test_trial import LIBTEST


def test_each_line_is_one_process_without_iterations(tmp_path: Path) -> None:
    path = tmp_path / "bench.txt"
    path.write_text(LIBTEST)
    form, reading = reading_of(path)
    assert (form, reading.tool) == ("libtest", "cargo bench")
    values = {process.benchmark: process.values["time_s"] for process in reading.processes}
    assert values == {
        "parsing::deep nesting": pytest.approx(1234.5e-9),
        "adds": pytest.approx(15e-9),
    }
    assert not any(process.iterations for process in reading.processes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test a ... bench: 1.2.3 ns/iter (+/- 1)\n", "line 1: '1.2.3' is not a number"),
    ],
)
def test_ambiguous_or_unreadable_lines_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.txt"
    path.write_text(text)
    with pytest.raises(UnusableInput, match=message):
        reading_of(path)
