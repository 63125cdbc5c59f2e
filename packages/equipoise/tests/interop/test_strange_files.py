"""Paths that are not files, files in other encodings, and impossible numbers."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.interop.reading import mean, read_within_bounds
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import imported, reading_of, written
from packages.equipoise.tests.interop.test_damaged import WHOLE

HUGE_NUMBER = "1" + "0" * 400
NUMBERS = {
    "hyperfine": '{"results": [{"command": "a", "times": [%s]}]}',
    "pyperf": '{"version": "1.0", "benchmarks": [{"runs": [{"values": [%s]}]}]}',
    "google-benchmark": (
        '{"context": {}, "benchmarks": [{"name": "a", "real_time": %s, "time_unit": "ns"}]}'
    ),
    "pytest-benchmark": (
        '{"machine_info": {}, "benchmarks": [{"name": "a", "stats": {"mean": %s}}]}'
    ),
    "jmh": (
        '[{"benchmark": "a", "mode": "avgt",'
        ' "primaryMetric": {"scoreUnit": "ns/op", "rawData": [[%s]]}}]'
    ),
    "go": "goos: linux\nBenchmarkA 1 %s ns/op\n",
    "libtest": "test a ... bench:  %s ns/iter (+/- 1)\n",
    "catch2": (
        '<Catch name="t"><TestCase name="t"><BenchmarkResults name="a"><mean value="%s"/>'
        "</BenchmarkResults></TestCase></Catch>"
    ),
    "divan": (
        "p     fastest │ slowest │ median │ mean │ samples │ iters\n"
        "╰─ a  1 ns    │ 1 ns    │ 1 ns   │ %s ns │ 100     │ 100\n"
    ),
    "nanobench": (
        "| ns/op | op/s | err%% | total | benchmark\n|------:|-----:|-----:|------:|:----------\n"
        "| %s | 1.0 | 0.1%% | 0.00 | `a`\n"
    ),
    "rebench": "1\t1\t%s\tms\ttotal\tBounce\tfast\tSuite\t\t1\t\t\n",
    "sysbench": "sysbench 1.0.20\n    total time:   %ss\n    total number of events:  1\n",
    "vitest": (
        '{"files": [{"groups": [{"fullName": "f", "benchmarks": [{"name": "a", "mean": %s}]}]}]}'
    ),
    "csv": "condition,value\na,%s\n",
}
"""A file of each format with one number left open."""


def refusal(path: Path, form: str | None = None) -> UnusableInput:
    """The error of a file that makes no run: one line that names it, with its hint."""
    with pytest.raises(UnusableInput) as error:
        form, _ = reading_of(path, form)
        imported(path)
    assert str(path) in error.value.what
    assert "\n" not in error.value.what
    assert len(error.value.what) < len(str(path)) + 200
    assert error.value.hint
    return error.value


@pytest.mark.parametrize("number", ["1e400", "NaN", "-Infinity", '"one"', "1e300", HUGE_NUMBER])
@pytest.mark.parametrize("form", NUMBERS)
def test_nan_and_infinite_numbers_are_refused(form: str, number: str, tmp_path: Path) -> None:
    whole = written(tmp_path, "whole", NUMBERS[form] % "1.5")
    assert len(imported(whole).trials) == 1
    text = NUMBERS[form] % number
    refusal(written(tmp_path, "file", text), form if form in ("libtest", "csv") else None)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "hyperfine",
            '{"results": [{"command": "a", "times": [1], "memory_usage_byte": [%s]}]}',
        ),
        (
            "google-benchmark",
            '{"context": {}, "benchmarks": [{"name": "a", "real_time": 1, "counter": %s}]}',
        ),
        (
            "jmh",
            '[{"benchmark": "a", "mode": "sample", "primaryMetric":'
            ' {"scoreUnit": "ns/op", "rawDataHistogram": [[[[1, %s]]]]}}]',
        ),
    ],
)
def test_too_large_integer_is_refused(form: str, text: str, tmp_path: Path) -> None:
    assert reading_of(written(tmp_path, "file", text % 2))[0] == form
    refusal(written(tmp_path, "file", text % HUGE_NUMBER), form)


def test_iterations_with_an_infinite_sum_are_refused(tmp_path: Path) -> None:
    assert mean([1.7e308, 1.7e308]) == float("inf")
    refusal(written(tmp_path, "file", NUMBERS["pyperf"] % "1.7e308, 1.7e308"))


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_cost_that_is_not_above_0_is_kept_without_a_ratio(number: str, tmp_path: Path) -> None:
    path = written(tmp_path, "rows.csv", f"condition,value\na,{number}\nb,2\n")
    first = imported(path).trials[0]
    assert [sample.value for sample in first.samples] == [float(number)]


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize(
    "rewritten",
    [
        lambda content: codecs.BOM_UTF8 + content,
        lambda content: codecs.BOM_UTF16_LE + content.decode().encode("utf-16-le"),
        lambda content: codecs.BOM_UTF16_BE + content.decode().encode("utf-16-be"),
        lambda content: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    ],
    ids=["UTF-8 with a mark", "UTF-16", "UTF-16, big end first", "carriage returns"],
)
def test_how_the_text_is_written_changes_nothing(
    rewritten: Callable[[bytes], bytes], form: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(WHOLE[form])
    expected = reading_of(path)
    path.write_bytes(rewritten(WHOLE[form]))
    assert reading_of(path) == expected


def test_half_a_character_of_utf_16_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(codecs.BOM_UTF16_LE + WHOLE["csv"].decode().encode("utf-16-le")[:-1])
    assert refusal(path).hint == "save the file as UTF-8"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_file_is_refused_with_a_hint_to_unpack_it(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "file.json.packed"
    path.write_bytes(compress(WHOLE["hyperfine"]))
    assert "is compressed" in refusal(path).what


def test_path_that_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "broken").symlink_to("nothing")
    assert "not a regular file" in refusal(tmp_path / "pipe").what
    assert "not a regular file" in refusal(tmp_path / "zero").what
    assert "too many levels of symbolic links" in refusal(tmp_path / "loop").what
    for missing in ("broken", "nothing", "pipe/below a file"):
        assert "there is no such file" in refusal(tmp_path / missing).what
    with pytest.raises(UnusableInput, match="file name too long"):
        reading_of(Path("x" * 5000))


def test_an_empty_name_is_not_the_current_folder() -> None:
    with pytest.raises(UnusableInput, match="'': there is no such file"):
        read_within_bounds("", Path())


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "rows.csv", "condition,value\na,1\n")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    # The superuser may read everything, so that a mode alone shows nothing.
    monkeypatch.setattr(Path, "open", refused)
    assert refusal(path).what == f"{path}: permission denied"


def test_samples_of_criterion_that_are_no_files(tmp_path: Path) -> None:
    saved = tmp_path / "criterion" / "sum" / "new"
    saved.mkdir(parents=True)
    sample = saved / "sample.json"
    sample.symlink_to("nothing")
    assert "no sample.json of criterion" in refusal(tmp_path / "criterion").what
    sample.unlink()
    sample.mkdir()
    assert "no sample.json of criterion" in refusal(tmp_path / "criterion").what
    sample.rmdir()
    os.mkfifo(sample)
    assert "sample.json is not a regular file" in refusal(tmp_path / "criterion").what


def test_a_damaged_name_of_a_benchmark_of_criterion_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "criterion" / "sum" / "new"
    saved.mkdir(parents=True)
    (saved / "sample.json").write_text('{"iters": [1], "times": [1]}')
    (saved / "benchmark.json").write_text("{")
    problem = "benchmark.json: this is not a result of criterion"
    assert problem in refusal(tmp_path / "criterion").what
