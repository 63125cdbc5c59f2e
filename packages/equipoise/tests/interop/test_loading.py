"""Files that are broken, empty or cut off get one line; huge ones have a test file of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.interop import reading
from equipoise.interop.formats import FORMATS
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import SAMPLES, reading_of, written


def refusal(path: Path, form: str | None = None) -> UnusableInput:
    """The error of a file that cannot be used."""
    with pytest.raises(UnusableInput) as error:
        reading_of(path, form)
    assert error.value.hint
    assert str(path) in error.value.what
    return error.value


def test_a_file_of_too_many_values_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_SEPARATORS", 100)
    path = written(tmp_path, "many.json", json.dumps({"results": [], "times": [1] * 200}))
    assert "more than 100 values or lines" in refusal(path).what


@pytest.mark.parametrize("content", ["", " \n\t\n"])
def test_an_empty_file_is_named(tmp_path: Path, content: str) -> None:
    assert "is empty" in refusal(written(tmp_path, "empty.json", content)).what


def test_unknown_file_is_refused_with_the_known_formats(tmp_path: Path) -> None:
    error = refusal(written(tmp_path, "poem.txt", "the quick brown fox\n"))
    assert "the format of the file is unknown" in error.what
    assert all(name in str(error.hint) for name in FORMATS)


def test_a_folder_is_criterions_or_nothing(tmp_path: Path) -> None:
    assert "no sample.json of criterion" in refusal(tmp_path).what
    assert "this is a folder" in refusal(tmp_path, "hyperfine").what
    assert "this is a file" in refusal(written(tmp_path, "a.json", "{}"), "criterion").what


@pytest.mark.parametrize("sample", ["hyperfine_2.json", "jmh.json"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_json_that_is_cut_off_is_refused(tmp_path: Path, sample: str, share: float) -> None:
    text = (SAMPLES / sample).read_text()
    path = written(tmp_path, sample, text[: int(share * len(text))])
    form = "hyperfine" if "hyperfine" in sample else "jmh"
    assert "not a result of" in refusal(path, form).what
    refusal(path)


def test_truncated_line_is_refused_with_its_number(tmp_path: Path) -> None:
    go = (SAMPLES / "go.txt").read_text().splitlines()
    cut = "\n".join([*go[:4], go[4][:40]])
    assert "line 5 is truncated" in refusal(written(tmp_path, "go.txt", cut)).what
    rebench = (SAMPLES / "rebench.data").read_text().splitlines()
    cut = "\n".join([*rebench[:8], rebench[8][:10]])
    assert "line 9 has 3 columns, not 15" in refusal(written(tmp_path, "cut.data", cut)).what
    sysbench = (SAMPLES / "sysbench.txt").read_text()
    cut = sysbench[: sysbench.index("General statistics")]
    assert "run 1 of sysbench has no total time" in refusal(written(tmp_path, "cut.txt", cut)).what


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("condition,value\na,1\nb\n", "line 3 does not have the 2 columns"),
        ("condition,value\na,fast\n", "line 2: 'fast' is not a number"),
        ("condition,value\na,nan\n", "line 2: 'nan' is not a number"),
        ("condition,value\na,\n", "line 2 has no value"),
        ("condition,value,block\na,1,\n", "line 2 has no block"),
        ("condition,value,block\na,1,1.5\n", "is not a whole number"),
        ("condition,value,condition\na,1,b\n", "more than one column 'condition'"),
        ("condition,value\n", "no measurement"),
    ],
)
def test_a_broken_csv_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(written(tmp_path, "rows.csv", text)).what


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("hyperfine", '{"results": [{"command": "a", "mean": 1}]}', "no times of its runs"),
        (
            "hyperfine",
            '{"results": [{"command": "a", "times": [1, 2], "exit_codes": [0]}]}',
            "2 times but 1 exit_codes",
        ),
        (
            "hyperfine",
            '{"results": [{"command": "a", "times": ["x"]}]}',
            "not a result of hyperfine",
        ),
        ("hyperfine", '{"results": []}', "no measurement"),
        ("google-benchmark", '{"benchmarks": [{"name": "a"}]}', "has no real_time"),
        ("pyperf", '{"benchmarks": [{"runs": [{}]}]}', "no measurement"),
        (
            "pyperf",
            '{"benchmarks": [{"metadata": {"unit": "ell"}, "runs": [{"values": [1]}]}]}',
            "the unknown unit 'ell'",
        ),
        (
            "jmh",
            '[{"benchmark": "a", "mode": "avgt", "primaryMetric": {"scoreUnit": "B/op"}}]',
            "neither a time nor a throughput",
        ),
        ("pytest-benchmark", '{"benchmarks": [{"name": "a"}]}', "not a result of pytest-benchmark"),
        ("sysbench", "nothing of the kind", "no measurement"),
        ("csv", "a,b\n1,2\n", "does not name the columns condition and value"),
    ],
)
def test_an_error_says_what_the_file_lacks(
    tmp_path: Path, form: str, text: str, message: str
) -> None:
    assert message in refusal(written(tmp_path, "file", text), form).what


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "deep.json", '{"results": ' + "[" * 100_000)
    refusal(path)
    refusal(path, "hyperfine")


def test_undecodable_bytes_do_not_stop_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"condition,value\na\xff,1\n")
    _, reading = reading_of(path)
    assert reading.processes[0].benchmark == "a\\xff"
    path.write_bytes(b'{"results": [{"command": "a\xff", "times": [1]}]}')
    refusal(path, "hyperfine")
