"""Files and folders of 200 MB get one line each, and are not read for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.interop.formats import FORMATS
from equipoise.interop.reading import MAX_BYTES
from equipoise.kinds.imported import assembly
from equipoise.model.errors import EXIT_UNUSABLE_INPUT
from packages.equipoise.tests.interop.test_damaged import WHOLE
from packages.equipoise.tests.programs import finished

HUGE = 200 * 2**20
SPARE = 16 * 2**20
"""Bytes that the allocator and the kernel's own accounting may add to the peak."""
IMPORTED = """
import contextlib, io, json, re, sys
from pathlib import Path
from equipoise.cli.main import run

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

def imported(name):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        status = run(["import", name])
    return {"status": status, "errors": errors.getvalue(), "peak": peak()}

imported("nothing.json")
first, *others = sys.argv[1:]
small = imported(first)
print(json.dumps([small, *map(imported, others)]))
"""
"""Imports files one by one in one process and prints the peak of its memory after each."""


def imported_one_by_one(folder: Path, *names: str) -> list[dict[str, Any]]:
    """Return the messages of each import, and the peak in bytes after it."""
    done = finished([sys.executable, "-c", IMPORTED, *names], cwd=folder, check=True)
    report: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return report


def test_200_mb_of_every_format_is_refused_in_one_line_and_little_memory(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_bytes(WHOLE["csv"])
    for form, content in WHOLE.items():
        with (tmp_path / form).open("wb") as file:
            file.write(content)
            file.truncate(HUGE)
    one = tmp_path / "criterion" / "sum" / "new"
    one.mkdir(parents=True)
    with (one / "sample.json").open("wb") as file:
        file.truncate(HUGE)
    many = [tmp_path / "many" / f"sum {place}" / "new" for place in range(8)]
    for saved in many:
        saved.mkdir(parents=True)
        with (saved / "sample.json").open("wb") as file:
            file.truncate(HUGE // len(many))
    huge = [*FORMATS, "many"]
    small, *refusals = imported_one_by_one(tmp_path, "small.csv", *huge)
    assert small["status"] == 0
    for name, refusal in zip(huge, refusals, strict=True):
        is_folder = (tmp_path / name).is_dir()
        what = f"{name}: the samples in this folder are" if is_folder else f"{name} is"
        first, hint = refusal["errors"].splitlines()
        assert first == f"equipoise: {what} larger than 64 MiB"
        assert hint.startswith("  hint: ")
        assert refusal["status"] == EXIT_UNUSABLE_INPUT
        assert refusal["peak"] - small["peak"] < SPARE


def test_a_file_just_within_the_limit_takes_a_small_multiple_of_its_size(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_bytes(WHOLE["csv"])
    size = MAX_BYTES - 2**20
    with (tmp_path / "long name.json").open("w") as file:
        file.write('{"results": [{"times": [1], "command": "')
        file.write("a" * size)
        file.write('"}]}')
    with (tmp_path / "long line.csv").open("w") as file:
        file.write("condition,value\n")
        file.write("a" * size)
    small, name, line = imported_one_by_one(
        tmp_path, "small.csv", "long name.json", "long line.csv"
    )
    assert f"a name has more than {assembly.MAX_ARGUMENT_BYTES} characters" in name["errors"]
    assert "line 2 does not have the 2 columns" in line["errors"]
    assert {name["status"], line["status"]} == {EXIT_UNUSABLE_INPUT}
    assert line["peak"] - small["peak"] < 8 * MAX_BYTES


@pytest.mark.parametrize("device", ["/dev/zero", "/proc/self/mem"])
def test_endless_device_is_not_read(tmp_path: Path, device: str) -> None:
    (refusal,) = imported_one_by_one(tmp_path, device)
    assert refusal["status"] == EXIT_UNUSABLE_INPUT
    assert refusal["errors"].startswith(f"equipoise: {device}")
    assert len(refusal["errors"].splitlines()) == 2
