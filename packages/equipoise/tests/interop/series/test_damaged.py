"""Whatever is done to a file of a series, it is read or refused in one line with a hint."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from equipoise.interop.series import SERIES_FORMATS
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.interop.series.shared import SAMPLES, series_of

WHOLE = {
    "pyperf": SAMPLES / "pyperf" / "1.json",
    "conbench": SAMPLES / "conbench_results.json",
    "bencher": SAMPLES / "bencher_perf.json",
}
CSV = b"commit,date,value\nv1,2026-01-01,1.5\nv2,2026-01-02,1.25\n"
HOSTILE = (b"\x00", b"\xff", b'"', b"{", b"]", b",", b"\n", b"nan", b"1e999", b"-", b"null", b"[[")
TRIES = 40
DEEP = b"[" * 100_000


def contents() -> dict[str, bytes]:
    """A whole file of each format of a file."""
    return {**{form: path.read_bytes() for form, path in WHOLE.items()}, "csv": CSV}


def read_or_refused(path: Path, form: str | None) -> bool:
    """Whether it was read; fails on any other error than the one that users see."""
    try:
        series_of(path, form=form)
    except UnusableInput as error:
        assert error.hint
        assert "\n" not in error.what
        assert len(error.what) < 2 * len(str(path)) + 300
        return False
    return True


def test_every_format_has_an_undamaged_example_and_is_recognised(tmp_path: Path) -> None:
    assert set(contents()) == set(SERIES_FORMATS) - {"asv"}
    for form, content in contents().items():
        path = tmp_path / "file"
        path.write_bytes(content)
        assert series_of(path) == series_of(path, form=form)


@pytest.mark.parametrize("form", ["pyperf", "conbench", "bencher", "csv"])
def test_truncated_file_and_file_with_foreign_bytes_inside(form: str, tmp_path: Path) -> None:
    generator, content = random.Random(form), contents()[form]
    path = tmp_path / "file"
    refused = 0
    for _ in range(TRIES):
        place = generator.randrange(len(content))
        for damaged in (
            content[:place],
            content[:place] + generator.choice(HOSTILE) + content[place + 1 :],
        ):
            path.write_bytes(damaged)
            refused += not read_or_refused(path, form)
            read_or_refused(path, None)
    assert refused > 0


@pytest.mark.parametrize("content", [DEEP, b'{"benchmarks": 1, "version": []}', b"[]", b"[1]"])
def test_unrelated_json_is_refused_in_every_format(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    for form in (None, *SERIES_FORMATS):
        assert not read_or_refused(path, form)


@pytest.mark.parametrize(
    "content",
    [
        DEEP,
        b"[]",
        b'{"version": 2}',
        b'{"version": 2, "commit_hash": "a", "result_columns": ["result"], "results": {"B": 1}}',
        b'{"version": 2, "commit_hash": "a", "result_columns": ["result", "params"],'
        b' "results": {"B": [["x"], []]}}',
        b'{"version": 2, "commit_hash": "a", "result_columns": ["result", "params"],'
        b' "results": {"B": [[1], [1]]}}',
        b'{"version": 2, "commit_hash": "a", "result_columns": ["result"],'
        b' "results": {"B": ["x"]}}',
        b'{"version": 2, "commit_hash": "a\\u0000", "result_columns": ["result"],'
        b' "results": {"B": [[1]]}}',
        b'{"version": 2, "commit_hash": "a", "result_columns": ["result"],'
        b' "results": {"B": [[1' + b"0" * 5000 + b"]]}}",
        b"\xff\xfe",
    ],
)
def test_a_damaged_file_of_asv_is_refused(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    (folder / "here").mkdir(parents=True)
    (folder / "benchmarks.json").write_bytes(b'{"version": 2, "B": {"type": "time"}}')
    (folder / "here" / "a.json").write_bytes(content)
    assert not read_or_refused(folder, None)


def test_a_hostile_name_of_a_benchmark_is_kept_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(SAMPLES / "asv", folder)
    for path in folder.rglob("*.json"):
        path.write_text(path.read_text().replace("track_rounds", "\\ud800<script>\\u001b[2J"))
    names = [series.benchmark for series in series_of(folder)]
    assert "benchmarks.\\ud800<script>\x1b[2J" in names
