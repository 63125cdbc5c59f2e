"""`equipoise layouts`, from a compiler's line to programs that differ in layout alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from equipoise.design.layouts import parse_compilation
from equipoise.measure.builds import make_layouts
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cli.conftest import Equipoise

SOURCE = """
#include <stdio.h>
static int seen;
__attribute__((noinline)) int one(int x) { return x + 1 + seen; }
__attribute__((noinline)) int two(int x) { return 3 * one(x); }
__attribute__((noinline)) int three(int x) { return two(x) - one(x); }
int main(int count, char **words) { (void)words; printf("%d\\n", three(count)); return 0; }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "program.c"
    path.write_text(SOURCE)
    return path


@pytest.mark.live("cc", package="gcc")
@pytest.mark.live("ld.lld", package="lld")
def test_layouts_do_the_same_and_stand_elsewhere(equipoise: Equipoise, source: Path) -> None:
    answer = equipoise("layouts", "--count", "4", "--", "cc", "-O1", source.name, "-o", "program")
    assert answer.status == 0, answer.err
    programs = [source.parent / line for line in answer.out.split()]
    assert [program.name for program in programs] == [f"layout-{seed}" for seed in (1, 2, 3, 4)]
    answers = {
        subprocess.run([program], capture_output=True, check=True).stdout for program in programs
    }
    assert answers == {b"4\n"}
    assert len({program.read_bytes() for program in programs}) > 1
    assert "lld shuffled" in answer.err
    before = [program.read_bytes() for program in programs]
    repeated = equipoise("layouts", "--count", "4", "--", "cc", "-O1", source.name, "-o", "program")
    assert repeated.status == 0
    # The same seeds give the same layouts.
    assert [program.read_bytes() for program in programs] == before


@pytest.mark.live("cc", package="gcc")
def test_without_a_shuffling_linker_one_object_has_one_layout(source: Path, tmp_path: Path) -> None:
    made = make_layouts(
        parse_compilation(("cc", str(source), "-o", "p")), tmp_path / "out", range(1, 4), "objects"
    )
    assert made.distinct_count == 1
    assert all(program.is_file() for program in made.programs)


def test_a_compiler_that_is_killed_leaves_nothing_in_the_temporary_folder(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ntouch "$TMPDIR/cc.res" && kill -9 $$\n')
    compiler.chmod(0o755)
    with pytest.raises(UnusableInput, match="failed"):
        make_layouts(
            parse_compilation((str(compiler), str(source), "-o", "p")),
            tmp_path / "out",
            range(1, 2),
            "objects",
        )
    assert list(temporary.iterdir()) == list((tmp_path / "out" / "objects").iterdir()) == []


@pytest.mark.live("cc", package="gcc")
def test_complaints_of_the_compiler_are_passed_on(equipoise: Equipoise, source: Path) -> None:
    source.write_text("int main(void) { return nothing_of_the_kind; }\n")
    answer = equipoise("layouts", "--", "cc", source.name, "-o", "program")
    assert answer.status == 2
    assert "nothing_of_the_kind" in answer.err


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (("cc", "-c", "program.c"), "-c"),
        (("no-such-compiler", "program.c"), "no-such-compiler"),
    ],
)
def test_a_line_that_cannot_be_used_is_refused(
    equipoise: Equipoise, source: Path, line: tuple[str, ...], named: str
) -> None:
    answer = equipoise("layouts", "--", *line)
    assert answer.status == 2
    assert named in answer.err
