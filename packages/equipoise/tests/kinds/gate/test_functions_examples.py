"""The examples of `equipoise gate --functions` (docs/examples/functions-of-revisions)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from equipoise.helpers import equipoise_metrics
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.repositories import MadeRepository, repository

HEADER = Path(equipoise_metrics.__file__).with_name("equipoise_functions.h")
EXAMPLES = Path(__file__).parents[5] / "docs/examples/functions-of-revisions"


def example_with_a_patch(folder: Path, name: str) -> MadeRepository:
    """The example in a language; the later of two revisions has its patch."""
    project = repository(folder / "example")
    shutil.copytree(EXAMPLES / name, project.path, dirs_exist_ok=True)
    project.write(".gitignore", "*.so\ntarget\n")
    project.commit()
    project.git("tag", "old")
    project.git("apply", "slower.patch")
    project.commit()
    return project


def test_the_header_of_the_example_is_the_one_of_the_package() -> None:
    assert (EXAMPLES / "c" / HEADER.name).read_bytes() == HEADER.read_bytes()


@pytest.mark.parametrize(
    ("name", "build", "library"),
    [
        ("c", "make -s", "./libbenchmarks.so"),
        ("rust", "cargo build -q --release --offline", "target/release/libbenchmarks.so"),
    ],
)
def test_the_slower_function_of_an_example_is_found(
    tmp_path: Path, scratch: Path, gate: Gate, name: str, build: str, library: str
) -> None:
    program = build.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"misses {program}")
    project = example_with_a_patch(tmp_path, name)
    words = ("--baseline", "old", "--build", build, "--functions", library, "--blocks=12")
    answer = gate(project, *words, "--json", "-", EQUIPOISE_BUILDS=str(tmp_path / "builds"))
    assert answer.status == 1, answer
    rows = json.loads(answer.out)["gate"]["rows"]
    outcomes = {row["benchmark"]: row["outcome"] for row in rows}
    assert outcomes["checksum"] == "slower"
    assert outcomes.get("largest") != "slower"
