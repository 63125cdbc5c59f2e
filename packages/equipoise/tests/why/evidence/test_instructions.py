"""Instructions by function."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.why.evidence import instructions
from equipoise.why.evidence.observer import Process
from packages.equipoise.tests.why.evidence.programs import ENVIRONMENT, compiled, run

FILE = """\
version: 1
creator: callgrind
events: Ir

fl=(1) a.c
fn=(1) main
16 400
cfn=(2) helper
calls=3 50
+2 900
* 7
fn=(2)
50 900
fl=(2) b.c
fn=other
1 0
totals: 1307
"""


def test_each_function_has_its_own_instructions(tmp_path: Path) -> None:
    (tmp_path / "callgrind.12").write_text(FILE)
    evidence = instructions.read(tmp_path)
    assert evidence.functions == {"helper": 900, "main": 407, "other": 0}
    assert evidence.total == 1307


def test_files_of_several_processes_are_added_up(tmp_path: Path) -> None:
    for process in (12, 13):
        (tmp_path / f"callgrind.{process}").write_text(FILE)
    assert instructions.read(tmp_path).functions["helper"] == 1800


def test_missing_output_of_callgrind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="callgrind wrote nothing"):
        instructions.read(tmp_path)


@pytest.mark.live("valgrind")
def test_a_real_program_is_counted(tmp_path: Path) -> None:
    source = """
    __attribute__((noinline)) int work(int count) {
        volatile int sum = 0;
        for (int at = 0; at < count; at++) sum += at;
        return sum;
    }
    int main(void) { return work(100000) == 1; }
    """
    program = compiled(tmp_path, source)
    done = run(instructions.wrap(Process((str(program),), ENVIRONMENT), tmp_path))
    assert done.returncode == 0, done.stderr
    evidence = instructions.read(tmp_path)
    assert 300_000 <= evidence.functions["work"] <= 1_000_000
    assert evidence.total >= sum(evidence.functions.values())
