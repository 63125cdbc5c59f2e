"""Objections: what a change contains, and what the observed runs show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.kinds.verify.objections import changed_benchmarks, measured_inputs, new_names
from packages.equipoise.tests.kinds.verify.conftest import (
    FEW_BLOCKS,
    SLOW,
    Project,
    Verify,
    result_in,
)

Ask = Callable[..., tuple[int, Any]]


def kinds_and_places(result: Any) -> list[tuple[str, str]]:
    """The kind and the place of each objection."""
    return [(objection["kind"], objection["place"]) for objection in result["objections"]]


def test_a_result_in_a_file_is_named(answer_to: Ask, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    after = f"if [ -f {kept} ]; then cat {kept}; else {SLOW}; echo right | tee {kept}; fi"
    status, result = answer_to(f"{SLOW}\necho right", after)
    assert (status, result["answer"]) == (3, "cannot say"), result
    assert ("kept_file", str(kept)) in kinds_and_places(result)
    assert str(kept) in result["summary"]


def test_a_result_in_a_file_of_an_earlier_verification_is_named(
    verify: Verify, changed: Project
) -> None:
    after = f"if [ -f kept ]; then cat kept; else {SLOW}; echo right | tee kept; fi"
    made = changed(f"{SLOW}\necho right", after)
    words = ("--baseline", "old", "--build", "true", *FEW_BLOCKS, "--json", "-", "--", "./program")
    for _ in range(2):
        # The second verification uses the builds of the first, with the file in them.
        result = result_in(verify(made, *words))
        assert ("kept_file", "kept") in kinds_and_places(result)
        assert result["answer"] == "cannot say"


def test_a_temporary_file_of_one_run_is_no_objection(answer_to: Ask, tmp_path: Path) -> None:
    file = tmp_path / "temporary"
    uses = f"echo right > {file}; cat {file}; rm {file}"
    status, result = answer_to(f"{SLOW}\n{uses}", uses)
    assert (status, result["answer"]) == (0, "certified"), result


@pytest.mark.parametrize("name", ["$(mktemp -p {folder})", "{folder}/always"])
def test_a_temporary_file_of_the_candidate_alone_is_no_objection(
    answer_to: Ask, tmp_path: Path, name: str
) -> None:
    file = name.format(folder=tmp_path)
    after = f"file={file}; echo right > $file; cat $file; rm $file"
    status, result = answer_to(f"{SLOW}\necho right", after)
    assert (status, result["answer"]) == (0, "certified"), result


def test_a_process_that_stays_is_named(answer_to: Ask) -> None:
    status, result = answer_to(f"{SLOW}\necho right", "sleep 60 & echo right")
    assert (status, result["answer"]) == (3, "cannot say"), result
    assert result["objections"][0]["kind"] == "left_process"


def test_reads_of_proc_are_named_unless_the_baseline_reads_them(answer_to: Ask) -> None:
    reads = "cat $(printf /pr; echo oc/uptime) > $(echo /dev/null)"
    status, result = answer_to(f"{SLOW}\necho right", f"{reads}; echo right")
    assert (status, result["answer"]) == (3, "cannot say"), result
    assert kinds_and_places(result) == [("reads_proc", "/proc/uptime")]


def test_what_the_baseline_reads_below_proc_is_no_objection(answer_to: Ask) -> None:
    reads = "cat /proc/uptime > /dev/null; echo right"
    status, result = answer_to(f"{SLOW}\n{reads}", reads)
    assert (status, result["answer"]) == (0, "certified"), result


def test_a_new_clock_and_a_changed_benchmark_are_named(verify: Verify, changed: Project) -> None:
    made = changed(f"{SLOW}\necho right", "echo right", **{"bench/sizes": "100\n"})
    made.write("program", "#!/bin/sh\n: clock_gettime\necho right\n", executable=True)
    made.write("bench/sizes", "1\n")
    made.commit()
    words = ("--baseline", "old", *FEW_BLOCKS, "--json", "-", "--", "./program")
    answer = verify(made, *words)
    assert answer.status == 3
    assert kinds_and_places(result_in(answer)) == [
        ("changed_benchmark", "bench/sizes"),
        ("names_measurement", "program:2"),
    ]


@pytest.mark.parametrize(
    ("path", "is_named"),
    [
        ("Makefile", True),
        ("sub/CMakeLists.txt", True),
        ("rules.mk", True),
        (".cargo/config.toml", True),
        ("benchmarks/data.txt", True),
        ("a/tests/one.c", True),
        ("data/words", True),
        ("src/sort.c", False),
        ("latest/sort.c", False),
        ("bench.c", False),
        ("README.md", False),
    ],
)
def test_files_that_decide_what_is_measured(path: str, is_named: bool) -> None:
    named = list(changed_benchmarks([path], ["./bench", "words", "--size=3"], "data"))
    assert [objection.place for objection in named] == [path] * is_named


@pytest.mark.parametrize(
    ("command", "inputs"),
    [
        (["./bench", "words"], ["words"]),
        (["python3", "-I", "solve.py", "words"], ["words"]),
        (["/usr/bin/perl", "solve.pl"], []),
    ],
)
def test_the_script_of_an_interpreter_is_a_program(command: list[str], inputs: list[str]) -> None:
    assert list(measured_inputs(command)) == inputs


PATCH = """\
diff --git a/{path} b/{path}
--- a/{path}
+++ b/{path}
@@ -{old},{removed} +{new},{added} @@ int main(void)
"""


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("  clock_gettime(CLOCK_MONOTONIC, &now);", "a clock"),
        ("t = time.perf_counter()", "a clock"),
        ("let t = std::time::Instant::now();", "a clock"),
        ('  if (getenv("EQUIPOISE_METRICS")) return 0;', "a variable of Equipoise"),
        ("open('/proc/self/status')", "/proc"),
    ],
)
def test_a_new_line_that_names_a_measurement_is_found(line: str, word: str) -> None:
    head = PATCH.format(path="src/one.c", old=10, removed=0, new=11, added=2)
    (found,) = new_names(f"{head}+  x = 1;\n+{line}\n")
    assert found.place == "src/one.c:12"
    assert found.detail == f"{word}: {line.strip()}"


@pytest.mark.parametrize("path", ["src/one.c", "docs/notes.md"])
def test_a_moved_line_and_documentation_name_nothing_new(path: str) -> None:
    head = PATCH.format(path=path, old=10, removed=1, new=12, added=1)
    moved = f"{head}-    clock_gettime(0, &now);\n+  clock_gettime(0, &now);\n"
    assert list(new_names(moved)) == []
    if path.endswith(".md"):
        assert list(new_names(f"{head}+clock_gettime()\n")) == []


def test_a_line_is_not_taken_for_the_head_of_a_file() -> None:
    head = PATCH.format(path="one.c", old=1, removed=0, new=1, added=2)
    (found,) = new_names(f"{head}+++ b/README.md\n+rdtsc();\n")
    assert found.place == "one.c:2"
