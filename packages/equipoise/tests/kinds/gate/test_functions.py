"""`equipoise gate --functions`: functions of a shared library of both revisions, in one process."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from equipoise.design.coin import draw_block
from equipoise.helpers import equipoise_metrics
from equipoise.ledger import open_for_reading
from equipoise.model.record import RunRecord
from packages.equipoise.tests.cli.conftest import Answer, Gate
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import MadeRepository, repository
from packages.equipoise.tests.schema import valid_result

HEADER = Path(equipoise_metrics.__file__).with_name("equipoise_functions.h")
KERNELS = """\
#include "equipoise_functions.h"
#include <stdio.h>
#include <stdlib.h>
static uint64_t mix(uint64_t number, int steps) {
    for (int step = 0; step < steps; step++) number = (number ^ step) * 0x9E3779B97F4A7C15u;
    return number;
}
static int steps = 200;
int first(int x) { return 3 * x + 1; }
int second(int x) { return x ^ 5; }
int third(int x) { return x - 7; }
EQUIPOISE_SETUP {
    FILE *log = fopen(getenv("LOG"), "a");
    EQUIPOISE_HIDE(log);
    fprintf(log, "%s %ld %ld\\n", REVISION, (long)((char *)second - (char *)first),
            (long)((char *)third - (char *)first));
    fclose(log);
}
"""
EQUAL = "EQUIPOISE_BENCHMARK(equal) { int n = steps; EQUIPOISE_HIDE(n); return mix(7, n); }\n"
WORK = (
    "EQUIPOISE_BENCHMARK(work) { int n = FACTOR * steps; EQUIPOISE_HIDE(n); return mix(5, n); }\n"
)
MAKEFILE = "libkernels.so: kernels.c\n\t$(CC) -O2 -fPIC -shared -o $@ kernels.c\n"
needs_lld = pytest.mark.skipif(
    shutil.which("ld.lld") is None and shutil.which("rustc") is None,
    reason="misses ld.lld (package lld)",
)
FUNCTIONS = ("--baseline", "old", "--build", "make -s", "--functions", "./libkernels.so")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each loaded library writes its revision, and the places of its functions."""
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("EQUIPOISE_BUILDS", str(tmp_path / "builds"))
    return log


@pytest.fixture
def project(tmp_path: Path, scratch: Path, log: Path) -> MadeRepository:
    """A repository without a revision."""
    project = repository(tmp_path / "project")
    project.write("equipoise_functions.h", HEADER.read_text())
    project.write("Makefile", MAKEFILE)
    return project


@pytest.fixture
def gate(project: MadeRepository, gate: Gate) -> Gate:
    """Run one gate in the repository."""
    return partial(gate, project)


def commit_kernels(project: MadeRepository, revision: str, code: str, factor: int = 1) -> None:
    """Commit the kernels of a revision, and give the revision its name."""
    definitions = f'#define REVISION "{revision}"\n#define FACTOR {factor}\n'
    project.write("kernels.c", f"{definitions}{KERNELS}{code}")
    project.commit()
    project.git("tag", revision)


def outcomes(answer: Answer) -> dict[str, str]:
    """The outcome of each benchmark, from the JSON of a gate."""
    return {row["benchmark"]: row["outcome"] for row in valid_result(answer.out)["gate"]["rows"]}


def record_in(ledger: Path) -> RunRecord:
    """The only run of a ledger."""
    with open_for_reading(ledger) as opened:
        return opened.read_run("last")


def test_a_function_with_three_times_the_work_is_found_and_an_equal_one_is_not(
    project: MadeRepository, gate: Gate
) -> None:
    commit_kernels(project, "old", EQUAL + WORK)
    commit_kernels(project, "new", EQUAL + WORK, factor=3)
    answer = gate(*FUNCTIONS, "--blocks", "12", "--json", "-")
    assert answer.status == 1, answer
    assert outcomes(answer)["work"] == "slower"
    assert outcomes(answer)["equal"] != "slower"
    rows = {row["benchmark"]: row for row in json.loads(answer.out)["gate"]["rows"]}
    assert 2.0 < rows["work"]["ratio"] < 4.0


def test_equal_kernels_are_not_slower_in_five_gates(project: MadeRepository, gate: Gate) -> None:
    commit_kernels(project, "old", EQUAL + WORK)
    commit_kernels(project, "new", EQUAL + WORK + "\nint unused(void) { return 1; }\n")
    for seed in range(5):
        answer = gate(*FUNCTIONS, "--blocks", "10", f"--seed={seed}", "--json", "-")
        assert answer.status == 0, answer
        assert "slower" not in outcomes(answer).values()


def test_each_benchmark_of_a_block_has_one_process_with_both_revisions(
    project: MadeRepository, gate: Gate, log: Path, tmp_path: Path
) -> None:
    commit_kernels(project, "old", EQUAL + WORK)
    commit_kernels(project, "new", EQUAL + WORK, factor=2)
    ledger, blocks = tmp_path / "ledger.db", 7
    answer = gate(*FUNCTIONS, f"--blocks={blocks}", "--ledger", str(ledger), "--json", "-")
    assert answer.status in (0, 1), answer
    record = record_in(ledger)
    # A decided benchmark is left out of later blocks.
    trials = record.trials
    starts = Counter(trial.started_at for trial in trials)
    assert set(starts.values()) == {2}
    lines = [line.split()[0] for line in log.read_text().splitlines()]
    examined = 2 * 2
    assert Counter(lines[:examined]) == {"old": 2, "new": 2}
    loaded = lines[examined:]
    assert len(loaded) == len(trials)
    # The libraries are loaded in the order of the coin.
    names = ("old", "new")
    assert loaded == [names[trial.condition % 2] for trial in trials]
    for trial in trials:
        assert trial.accounting.max_rss_bytes is None
        assert trial.accounting.unknown["max_rss_bytes"] == "one process runs both revisions"
        assert [sample.iteration for sample in trial.samples] == [*range(32), None]


def test_the_order_of_each_process_is_the_draw_of_the_coin(
    project: MadeRepository, gate: Gate, tmp_path: Path
) -> None:
    commit_kernels(project, "old", EQUAL + WORK)
    commit_kernels(project, "new", EQUAL + WORK)
    ledger = tmp_path / "ledger.db"
    gate(*FUNCTIONS, "--blocks=12", "--seed=5", "--ledger", str(ledger))
    record = record_in(ledger)
    orders = []
    for draw in record.draws:
        again = draw_block(record.plan, draw.phase, draw.block, draw.order)
        assert draw.order == again.order
        pairs = list(zip(draw.order[::2], draw.order[1::2], strict=True))
        assert all(one // 2 == other // 2 for one, other in pairs)
        orders += [one % 2 for one, _ in pairs]
    assert 0 < sum(orders) < len(orders)


@needs_lld
def test_each_block_has_functions_in_another_order(
    project: MadeRepository, gate: Gate, log: Path
) -> None:
    commit_kernels(project, "old", EQUAL)
    commit_kernels(project, "new", EQUAL)
    answer = gate(*FUNCTIONS, "--blocks=8", "--json", "-")
    assert answer.status in (0, 1), answer
    relinking = json.loads(answer.out)["gate"]["relinking"]
    assert relinking["files"] == [["libkernels.so"], ["libkernels.so"]]
    lines = log.read_text().splitlines()[2:]
    assert len(lines) == 16
    for revision in ("old", "new"):
        # Three functions have six orders, so eight draws are not all alike.
        assert len({line for line in lines if line.startswith(revision)}) >= 2


@needs_lld
def test_the_revisions_of_a_block_have_one_layout(
    project: MadeRepository, gate: Gate, log: Path
) -> None:
    commit_kernels(project, "old", EQUAL)
    commit_kernels(project, "new", EQUAL + "\nint unused(int x) { return x * x % 7; }\n")
    gate(*FUNCTIONS, "--blocks=6")
    lines = log.read_text().splitlines()[2:]
    layouts = [tuple(int(place) % 4096 for place in line.split()[1:]) for line in lines]
    assert len(layouts) == 12
    assert layouts[::2] == layouts[1::2]
    assert len(set(layouts)) == 6


def test_without_lld_the_gate_warns_of_one_link(
    project: MadeRepository, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "make", "cc", "env", "as", "ld"):
        path = shutil.which(name)
        assert path is not None
        (programs / name).symlink_to(path)
    commit_kernels(project, "old", EQUAL)
    commit_kernels(project, "new", EQUAL)
    monkeypatch.setenv("PATH", os.fspath(programs))
    answer = gate(*FUNCTIONS, "--blocks=6", "--json", "-")
    assert answer.status == 0, answer
    result = json.loads(answer.out)
    assert result["gate"]["relinking"] is None
    (warning,) = (each for each in result["warnings"] if each["code"] == "one_link")
    assert "this host has no linker lld" in warning["summary"]


@pytest.mark.skipif(shutil.which("strip") is None, reason="misses strip (package binutils)")
def test_a_library_that_is_changed_after_its_link_has_one_link(
    project: MadeRepository, gate: Gate
) -> None:
    commit_kernels(project, "old", EQUAL)
    commit_kernels(project, "new", EQUAL)
    build = ("--build", "make -s && strip libkernels.so")
    library = ("--functions", "./libkernels.so")
    answer = gate("--baseline", "old", *build, *library, "--blocks=6", "--json", "-")
    assert answer.status == 0, answer
    result = json.loads(answer.out)
    assert result["gate"]["functions"]["library"] == "./libkernels.so"
    assert result["gate"]["relinking"] is None
    assert "one_link" in {warning["code"] for warning in result["warnings"]}


def test_revisions_do_not_share_a_library_that_both_need(
    project: MadeRepository, gate: Gate, log: Path
) -> None:
    project.write(
        "Makefile",
        "all:\n\t$(CC) -O2 -fPIC -shared -Wl,-soname,libcore.so -o libcore.so core.c\n"
        "\t$(CC) -O2 -fPIC -shared -o libkernels.so kernels.c -L. -lcore '-Wl,-rpath,$$ORIGIN'\n",
    )
    kernels = (
        '#include "equipoise_functions.h"\n#include <stdio.h>\n#include <stdlib.h>\n'
        "const char *core(void);\nstatic uint64_t rounds = 300;\n"
        'EQUIPOISE_SETUP { FILE *log = fopen(getenv("LOG"), "a");\n'
        '  fprintf(log, "%s %s\\n", REVISION, core()); fclose(log); }\n'
        "EQUIPOISE_BENCHMARK(loop) { uint64_t n = rounds, sum = 0; EQUIPOISE_HIDE(n);\n"
        "  while (n--) sum = (sum ^ n) * 31; return sum; }\n"
    )
    for revision in ("old", "new"):
        project.write("core.c", f'const char *core(void) {{ return "{revision}"; }}\n')
        project.write("kernels.c", f'#define REVISION "{revision}"\n{kernels}')
        project.commit()
        project.git("tag", revision)
    answer = gate(*FUNCTIONS, "--blocks=6")
    assert answer.status in (0, 1), answer
    lines = Counter(log.read_text().splitlines())
    assert set(lines) == {"old old", "new new"}


def test_a_function_that_crashes_is_left_out_with_one_line(
    project: MadeRepository, gate: Gate
) -> None:
    commit_kernels(project, "old", EQUAL + WORK)
    crash = "EQUIPOISE_BENCHMARK(work) { *(volatile int *)8 = 1; return 0; }\n"
    commit_kernels(project, "new", EQUAL + crash)
    answer = gate(*FUNCTIONS, "--blocks=6", "--json", "-")
    assert answer.status == 3, answer
    assert "work failed, and was not compared (candidate: signal 11 (SIGSEGV))" in answer.err
    assert list(outcomes(answer)) == ["equal"]


def test_a_function_without_end_is_left_out_with_one_line(
    project: MadeRepository, gate: Gate
) -> None:
    commit_kernels(project, "old", EQUAL + WORK)
    endless = "EQUIPOISE_BENCHMARK(work) { for (;;) EQUIPOISE_HIDE(steps); }\n"
    commit_kernels(project, "new", EQUAL + endless)
    answer = gate(*FUNCTIONS, "--blocks=6", "--timeout", "3", "--json", "-")
    assert answer.status == 3, answer
    assert "work failed, and was not compared (candidate: it did not end within 3 s)" in answer.err


def test_a_gate_whose_functions_all_crash_has_no_verdict(
    project: MadeRepository, gate: Gate
) -> None:
    commit_kernels(project, "old", EQUAL)
    crash = "EQUIPOISE_BENCHMARK(equal) { *(volatile int *)8 = 1; return 0; }\n"
    commit_kernels(project, "new", crash)
    answer = gate(*FUNCTIONS, "--blocks=6")
    assert answer.status == 3
    assert "equal failed (candidate: signal 11 (SIGSEGV))" in answer.err


def test_a_crash_in_the_middle_names_the_revision(project: MadeRepository, gate: Gate) -> None:
    commit_kernels(project, "old", EQUAL)
    late = (
        "EQUIPOISE_BENCHMARK(equal) {\n"
        '  if (getenv("EQUIPOISE_PADDING")) { fputs("late\\n", stderr); abort(); }\n'
        "  int n = steps; EQUIPOISE_HIDE(n); return mix(7, n);\n}\n"
    )
    commit_kernels(project, "new", late)
    answer = gate(*FUNCTIONS, "--blocks=6")
    assert answer.status == 3, answer
    (line,) = (line for line in answer.err.splitlines() if "SIGABRT" in line)
    assert "candidate HEAD" in line
    assert "stderr: late" in line


def test_a_function_of_one_revision_is_named(project: MadeRepository, gate: Gate) -> None:
    commit_kernels(project, "old", EQUAL)
    commit_kernels(project, "new", EQUAL + WORK)
    answer = gate(*FUNCTIONS, "--blocks=6", "--json", "-")
    assert answer.status in (0, 1), answer
    warnings = [warning["summary"] for warning in json.loads(answer.out)["warnings"]]
    assert "work is only in the candidate, and was not compared" in warnings


def test_a_function_whose_work_was_removed_is_refused(project: MadeRepository, gate: Gate) -> None:
    nothing = "EQUIPOISE_EXPORT uint64_t equipoise_bench_equal(uint64_t n) { return n; }\n"
    for revision in ("old", "new"):
        commit_kernels(project, revision, nothing)
    answer = gate(*FUNCTIONS)
    assert answer.status == 3
    assert "the compiler removed the work" in answer.err


@pytest.mark.parametrize(
    ("code", "library", "problem"),
    [
        (EQUAL, "./libother.so", "has no library ./libother.so"),
        (EQUAL, "./kernels.c", "kernels.c is not a shared library"),
        ("", "./libkernels.so", "exports no equipoise_bench_NAME"),
        (EQUAL, "/lib/libkernels.so", "would be the library of both revisions"),
    ],
)
def test_a_library_that_cannot_be_used_is_refused_with_one_line(
    project: MadeRepository, gate: Gate, code: str, library: str, problem: str
) -> None:
    for revision in ("old", "new"):
        commit_kernels(project, revision, code)
    answer = gate("--baseline", "old", "--build", "make -s", "--functions", library)
    assert answer.status == 2, answer
    (line,) = (line for line in answer.err.splitlines() if problem in line)
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    "options",
    [("--", "./bench"), ("--kind", "go"), ("--metrics", "wall_s"), ("--slice", "a.slice")],
    ids=lambda options: options[0],
)
def test_options_for_programs_are_refused(
    project: MadeRepository, gate: Gate, options: tuple[str, ...]
) -> None:
    commit_kernels(project, "old", EQUAL)
    answer = gate(*FUNCTIONS, *options)
    assert answer.status == 2
    assert "--functions times functions of a library, and cannot be combined with" in answer.err


@pytest.mark.skipif(shutil.which("g++") is None, reason="misses g++ (package g++)")
def test_the_header_works_in_cpp(project: MadeRepository, gate: Gate) -> None:
    project.write("Makefile", "all:\n\tg++ -O2 -fPIC -shared -o libkernels.so kernels.cpp\n")
    project.write(
        "kernels.cpp",
        '#include "equipoise_functions.h"\n#include <numeric>\n#include <vector>\n'
        "static std::vector<uint64_t> *numbers;\n"
        "EQUIPOISE_SETUP { numbers = new std::vector<uint64_t>(500, 3); }\n"
        "EQUIPOISE_BENCHMARK(accumulate) {\n"
        "  return std::accumulate(numbers->begin(), numbers->end(), uint64_t(0));\n}\n",
    )
    project.commit()
    project.git("tag", "old")
    answer = gate(*FUNCTIONS, "--blocks=6", "--json", "-")
    assert answer.status == 0, answer
    assert list(outcomes(answer)) == ["accumulate"]


RUST = """\
use std::hint::black_box;

#[unsafe(no_mangle)]
pub extern "C" fn equipoise_bench_fold(iterations: u64) -> u64 {
    (0..iterations).fold(0, |sum, _| {
        sum ^ (0..black_box(STEPS)).fold(1u64, |hash, step| (hash ^ step).wrapping_mul(31))
    })
}
"""
CARGO = """\
[package]
name = "kernels"
version = "0.1.0"
edition = "2024"
[lib]
crate-type = ["cdylib"]
"""


@pytest.mark.skipif(shutil.which("cargo") is None, reason="misses cargo (rustup.rs)")
def test_functions_of_a_rust_library_are_compared(project: MadeRepository, gate: Gate) -> None:
    project.write("Cargo.toml", CARGO)
    for revision, steps in (("old", 200), ("new", 800)):
        project.write("src/lib.rs", f"const STEPS: u64 = {steps};\n{RUST}")
        project.commit()
        project.git("tag", revision)
    build = ("--build", "cargo build -q --release --offline")
    library = ("--functions", "target/release/libkernels.so")
    answer = gate("--baseline", "old", *build, *library, "--blocks=8", "--json", "-")
    assert answer.status == 1, answer
    assert outcomes(answer) == {"fold": "slower"}


def test_the_native_program_lists_names_without_running_the_library(
    project: MadeRepository, tmp_path: Path
) -> None:
    from equipoise.kinds.gate.functions import functions_program

    commit_kernels(
        project, "old", EQUAL + WORK + "__attribute__((constructor)) void f(void) { abort(); }\n"
    )
    finished(["make", "-s"], cwd=project.path, check=True)
    listed: Any = finished(
        [str(functions_program()), "--list", "--library", "libkernels.so"], cwd=project.path
    )
    assert listed.stdout.split() == ["equal", "work"]
