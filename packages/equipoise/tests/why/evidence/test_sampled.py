"""Sampled stacks of real programs: where the time, the faults and the waits are."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from equipoise.why.differences.stacks import call_paths, weights
from equipoise.why.evidence.observer import (
    Function,
    Process,
    SampledSource,
    SampledStacks,
    read_sampled,
    wrap_sampled,
)
from packages.equipoise.tests.why.evidence.programs import (
    ENVIRONMENT,
    compiled,
    run,
    run_as_nobody,
    weights_by_name,
    with_small_disk,
)
from packages.equipoise.tests.why.planted.pairs import new_interpreter

SOURCE = """
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile double kept;
static inline __attribute__((always_inline)) double inner_part(double value, double seconds) {
    struct timespec began, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    do {
        for (int at = 0; at < 100000; at++) value = value * 1.0000001 + 1e-9;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec - began.tv_sec + 1e-9 * (now.tv_nsec - began.tv_nsec) < seconds);
    return value;
}
__attribute__((noinline)) void slow_function(void) { kept = inner_part(1.0, 0.3); }
__attribute__((noinline)) void quick_function(void) { kept = inner_part(2.0, 0.1); }
__attribute__((noinline)) void toucher(void) {
    for (int round = 0; round < 500; round++) {
        char *block = mmap(0, 409600, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < 100; page++) block[page * 4096] = 1;
        munmap(block, 409600);
    }
}
__attribute__((noinline)) void waiter(void) { for (int at = 0; at < 20; at++) usleep(20000); }
int main(int count, char **words) {
    if (count < 2) return 3;
    if (words[1][0] == 't') { slow_function(); quick_function(); }
    if (words[1][0] == 'f') toucher();
    if (words[1][0] == 'w') waiter();
    return 0;
}
"""


def kernel_may_be_sampled() -> bool:
    """Whether this host lets us look into the kernel."""
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    return os.geteuid() == 0 or int(paranoid.read_text()) <= 1


needs_kernel = pytest.mark.skipif(
    not kernel_may_be_sampled(), reason="kernel.perf_event_paranoid is above 1, and we are not root"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("program"), SOURCE, "-fno-optimize-sibling-calls")


def observe(name: SampledSource, folder: Path, *command: str) -> SampledStacks:
    """Return the sampled stacks of a command."""
    wrapped = wrap_sampled(name, Process(command, ENVIRONMENT), folder)
    done = run(wrapped)
    assert (done.returncode, done.stderr) == (0, "")
    return read_sampled(name, folder)


@needs_kernel
def test_time_is_in_the_functions_that_use_it(tmp_path: Path, program: Path) -> None:
    evidence = observe("profile", tmp_path, str(program), "time")
    seconds = weights_by_name(evidence.stacks)
    # At 999 samples a second the standard errors are far below these bounds.
    assert seconds["slow_function"] == pytest.approx(0.3, abs=0.1)
    assert seconds["quick_function"] == pytest.approx(0.1, abs=0.05)
    assert evidence.total == pytest.approx(evidence.stacks.weight(), rel=0.1)
    assert Function("inner_part", program.name, "inlined") in evidence.stacks.frames
    assert seconds["inner_part"] == pytest.approx(
        seconds["slow_function"] + seconds["quick_function"], rel=0.05
    )
    assert evidence.end.exit == 0


@needs_kernel
def test_processes_that_are_too_short_to_be_sampled_are_found(tmp_path: Path) -> None:
    shell = "number=0; while [ $number -lt 200 ]; do /bin/true; number=$((number + 1)); done"
    evidence = observe("profile", tmp_path, "sh", "-c", shell)
    assert evidence.total is not None
    missing = evidence.total - evidence.stacks.weight()
    assert any("too short" in words for words in evidence.unseen) is (
        missing > 0.1 * evidence.total
    )


@needs_kernel
def test_faults_belong_to_the_function_that_touches(tmp_path: Path, program: Path) -> None:
    evidence = observe("page_faults", tmp_path, str(program), "faults")
    assert evidence.total is not None
    assert 50_000 <= evidence.total < 50_500
    # Sampled by the kernel at about 999 a second, each for the faults since the one before.
    assert weights_by_name(evidence.stacks)["toucher"] / evidence.stacks.weight() > 0.9


@needs_kernel
def test_waits_belong_to_the_function_that_waits(tmp_path: Path, program: Path) -> None:
    evidence = observe("waits", tmp_path, str(program), "waits")
    assert evidence.total is not None
    assert evidence.total >= 0.1
    charged = weights_by_name(evidence.stacks)
    assert charged["waiter"] / evidence.stacks.weight() > 0.9
    entry_points = {frame.name for frame in evidence.stacks.frames if frame.kind == "kernel"}
    assert entry_points & {"clock_nanosleep", "system_call_entry"}


def test_the_kernel_is_entered_at_a_named_entry_point(tmp_path: Path) -> None:
    copies = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=4000", "status=none")
    evidence = observe("profile", tmp_path, *copies)
    places = call_paths(evidence.stacks)
    kernel = weights(
        places, lambda place: () if place.entry_point is None else (place.entry_point,)
    )
    assert kernel_may_be_sampled() is bool(kernel)
    if kernel:
        assert max(kernel, key=lambda entry_point: kernel[entry_point]) == "read"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_without_root_the_kernels_part_is_missing_or_all_is_refused(
    tmp_path: Path, program: Path
) -> None:
    mine = shutil.copy2(program, tmp_path / "mine")
    wrapped = wrap_sampled("profile", Process((str(mine), "time"), ENVIRONMENT), tmp_path)
    done = run_as_nobody(wrapped, tmp_path)
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid > 2:
        assert done.returncode == 1
        assert "kernel.perf_event_paranoid" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    evidence = read_sampled("profile", tmp_path)
    assert any("kernel's own time" in words for words in evidence.unseen) is (paranoid == 2)
    assert weights_by_name(evidence.stacks)["slow_function"] == pytest.approx(0.3, abs=0.1)


PYTHON = """
import time
def busy_function(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        sum(range(1000))
def calling_function():
    busy_function(0.4)
calling_function()
"""


def test_python_functions_have_names_if_the_interpreter_reports_them(tmp_path: Path) -> None:
    interpreter = new_interpreter()
    if interpreter is None:
        pytest.skip("misses a CPython of 3.12 or later on the path or beside this one")
    script = tmp_path / "script.py"
    script.write_text(PYTHON)
    evidence = observe("profile", tmp_path, interpreter, str(script))
    python = {frame.name for frame in evidence.stacks.frames if frame.kind == "python"}
    assert {f"busy_function:{script}", f"calling_function:{script}"} <= python
    assert not any("Python" in words for words in evidence.unseen)
    nested = [
        [evidence.stacks.frames[place].name for place in stack.frames]
        for stack in evidence.stacks.stacks
    ]
    inner, outer = f"busy_function:{script}", f"calling_function:{script}"
    assert any(
        outer in names and inner in names and names.index(outer) < names.index(inner)
        for names in nested
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this interpreter tells its functions")
def test_interpreter_without_function_names_has_a_remark(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PYTHON)
    evidence = observe("profile", tmp_path, sys.executable, str(script))
    assert any(words.startswith("Python functions of ") for words in evidence.unseen)


NAMES_ITSELF = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static volatile double kept;
__attribute__((noinline)) void slow_function(double seconds) {
    volatile char deep[14000];
    memset((char *)deep, 1, sizeof deep);
    while (clock() < seconds * CLOCKS_PER_SEC)
        for (int at = 0; at < 100000; at++) kept = kept * 1.0000001 + 1e-9;
}
int main(int count, char **words) {
    if (count < 2) return 3;
    char map[64];
    sprintf(map, "/tmp/perf-%d.map", (int)getpid());
    printf("%s", map);
    fflush(stdout);
    if (strcmp(words[1], "FIFO") == 0) {
        if (mkfifo(map, 0600)) return 4;
    } else {
        if (strcmp(words[1], "link") == 0 && symlink(words[2], map)) return 5;
        FILE *file = fopen(map, "w");
        fprintf(file, "%lx 400 made_up_function\\n", (unsigned long)slow_function);
        fclose(file);
    }
    if (strcmp(words[1], "giant") == 0 && truncate(map, 65 << 20)) return 6;
    if (strcmp(words[1], "other") == 0 && chown(map, 54321, 54321)) return 7;
    slow_function(0.2);
    return 0;
}
"""
"""Busy for 0.2 s in a function that a map file of its process calls otherwise."""


@pytest.fixture(scope="module")
def names_itself(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("names_itself"), NAMES_ITSELF)


@needs_kernel
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("own", None),
        ("FIFO", "it is not a regular file"),
        ("link", "it is a symbolic link"),
        ("other", "it belongs to another user (54321)"),
        ("giant", "it is longer than 64 MiB"),
    ],
    ids=["own", "FIFO", "link", "of another user", "giant"],
)
def test_names_of_run_time_code_are_read_only_from_our_own_regular_file(
    tmp_path: Path, names_itself: Path, kind: str, reason: str | None
) -> None:
    if kind == "other" and os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    wrapped = wrap_sampled(
        "profile", Process((str(names_itself), kind, str(tmp_path / "map")), ENVIRONMENT), tmp_path
    )
    done = run(wrapped)
    map_file = Path(done.stdout)
    try:
        assert done.returncode == 0, done.stderr
        evidence = read_sampled("profile", tmp_path)
        told = {frame.name for frame in evidence.stacks.frames if frame.kind == "generated"}
        assert told == ({"made_up_function"} if reason is None else set())
        ignored = [words for words in evidence.unseen if str(map_file) in words]
        words = f"names of code made at run time, in {map_file}, are missing: {reason}"
        assert ignored == ([] if reason is None else [words])
        # What is not of this run, or not ours, is left where it is.
        assert os.path.lexists(map_file) is (kind in {"FIFO", "link", "other"})
    finally:
        map_file.unlink(missing_ok=True)


@needs_kernel
def test_existing_fifo_does_not_block_the_writer_of_a_map(
    tmp_path: Path, names_itself: Path
) -> None:
    line = f"mkfifo /tmp/perf-$$.map && exec {names_itself} own"
    done = run(wrap_sampled("profile", Process(("sh", "-c", line), ENVIRONMENT), tmp_path))
    map_file = Path(done.stdout)
    try:
        assert (done.returncode, done.stderr) == (0, "")
        evidence = read_sampled("profile", tmp_path)
        assert evidence.end.exit == 0
        assert (
            f"names of code made at run time, in {map_file}, are missing: it is not a regular file"
            in evidence.unseen
        )
    finally:
        map_file.unlink(missing_ok=True)


@needs_kernel
def test_a_full_disk_ends_the_samples_and_not_the_command(
    tmp_path: Path, names_itself: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    line = f"{names_itself} own && echo && echo done"
    process = Process(("sh", "-c", line), ENVIRONMENT | {"TMPDIR": str(disk)})
    done = run(with_small_disk(wrap_sampled("profile", process, tmp_path), disk, 64))
    assert (done.returncode, done.stderr) == (0, "")
    map_file, last = done.stdout.splitlines()
    Path(map_file).unlink(missing_ok=True)
    assert last == "done"
    evidence = read_sampled("profile", tmp_path)
    assert evidence.end.exit == 0
    assert 0 < evidence.samples < 20
    (words,) = [
        words for words in evidence.unseen if words.startswith("everything after the first 0")
    ]
    assert "No space left on device" in words
    assert not any("too short" in words for words in evidence.unseen)
