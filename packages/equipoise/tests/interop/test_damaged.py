"""Whatever is done to a file, a reader reads it or refuses it in one line with a hint."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from equipoise.interop.formats import FORMATS
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import SAMPLES, reading_of
from packages.equipoise.tests.suites.test_trial import LIBTEST

PYPERF = {
    "version": "1.0",
    "metadata": {"name": "sum", "unit": "second", "perf_version": "2.7.0"},
    "benchmarks": [{"runs": [{"values": [0.1, 0.2], "warmups": [[1, 0.3]], "metadata": {}}]}],
}
GOOGLE = {
    "context": {"library_version": "1.7", "num_cpus": 2},
    "benchmarks": [
        {"name": "Sum/8", "run_name": "Sum/8", "run_type": "iteration", "iterations": 5}
        | {"real_time": 1.5, "cpu_time": 1.4, "time_unit": "ns"},
    ],
}
PYTEST = {
    "version": "5.0.0",
    "machine_info": {"node": "here"},
    "benchmarks": [
        {"name": "test_sum", "fullname": "t.py::test_sum", "stats": {"data": [0.1], "mean": 0.1}}
    ],
}
CSV = "condition,value,block,order,host\na,1.5,1,1,x\nb,1.25,1,2,x\n"
WHOLE = {
    "hyperfine": (SAMPLES / "hyperfine_2.json").read_bytes(),
    "pyperf": json.dumps(PYPERF).encode(),
    "google-benchmark": json.dumps(GOOGLE).encode(),
    "pytest-benchmark": json.dumps(PYTEST).encode(),
    "jmh": (SAMPLES / "jmh.json").read_bytes(),
    "go": (SAMPLES / "go.txt").read_bytes(),
    "rebench": (SAMPLES / "rebench.data").read_bytes(),
    "sysbench": (SAMPLES / "sysbench.txt").read_bytes(),
    "vitest": (SAMPLES / "vitest_4.1.12.json").read_bytes(),
    "csv": CSV.encode(),
    "libtest": LIBTEST.encode(),
    "catch2": (SAMPLES / "catch2_3.7.1.xml").read_bytes(),
    "divan": (SAMPLES / "divan_0.1.17.txt").read_bytes(),
    "nanobench": (SAMPLES / "nanobench_4.0.0.txt").read_bytes(),
}
HOSTILE = (b"\x00", b"\xff", b'"', b"{", b"]", b",", b"\n", b"nan", b"1e999", b"-", b"null", b"[[")
TRIES = 100


def read_or_refused(path: Path, content: bytes, form: str | None) -> bool:
    """Whether it was read; fails on any other error than the one that users see."""
    path.write_bytes(content)
    try:
        reading_of(path, form)
    except UnusableInput as error:
        assert str(path) in error.what
        assert error.hint
        assert "\n" not in error.what
        return False
    return True


def test_every_file_format_has_an_undamaged_example(tmp_path: Path) -> None:
    assert set(WHOLE) == {name for name, form in FORMATS.items() if not form.reads_folders}
    for form, content in WHOLE.items():
        assert read_or_refused(tmp_path / "whole", content, form)
        assert reading_of(tmp_path / "whole")[0] == form


@pytest.mark.parametrize("form", WHOLE)
def test_a_file_that_is_cut_off_anywhere(form: str, tmp_path: Path) -> None:
    content = WHOLE[form]
    step = max(1, len(content) // TRIES)
    read = [
        read_or_refused(tmp_path / "cut", content[:end], form)
        for end in range(0, len(content.rstrip()), step)
    ]
    assert False in read
    if content.lstrip()[:1] in b"{[":
        assert True not in read


@pytest.mark.parametrize("form", WHOLE)
def test_file_with_foreign_bytes_inside(form: str, tmp_path: Path) -> None:
    generator = random.Random(form)
    content = WHOLE[form]
    refused = 0
    for _ in range(TRIES):
        place = generator.randrange(len(content))
        length = generator.choice((0, 1, 5))
        damaged = content[:place] + generator.choice(HOSTILE) + content[place + length :]
        refused += not read_or_refused(tmp_path / "damaged", damaged, form)
    assert refused > 0


@pytest.mark.parametrize("form", WHOLE)
def test_a_file_of_another_format(form: str, tmp_path: Path) -> None:
    for other, content in WHOLE.items():
        if other != form:
            read_or_refused(tmp_path / "other", content, form)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_sample_of_criterion_that_is_cut_off(share: float, tmp_path: Path) -> None:
    saved = tmp_path / "criterion" / "sum" / "new"
    saved.mkdir(parents=True)
    whole = (SAMPLES / "criterion_0.5/plain/group/sum/10/new/sample.json").read_bytes()
    (saved / "sample.json").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UnusableInput, match="sample.json") as refusal:
        reading_of(tmp_path / "criterion")
    assert refusal.value.hint
