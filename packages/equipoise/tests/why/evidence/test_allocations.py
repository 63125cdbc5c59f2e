"""Allocations of real programs with known counts, however they end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from equipoise.why.evidence import allocations
from equipoise.why.evidence.allocations import Allocations, SizeClass
from equipoise.why.evidence.observer import Process
from packages.equipoise.tests.why.evidence.programs import (
    ENVIRONMENT,
    compiled,
    run,
    weights_by_name,
    with_small_disk,
)

HEAD = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
static void *make(size_t size)
{ void *block = malloc(size); kept = block; memset(block, 1, size); return block; }
static void churn(int count, size_t size) { while (count-- > 0) free(make(size)); }
"""
SIZE = 35_600
COUNT = 3000


def record(
    folder: Path, *command: str, environment: dict[str, str] | None = None
) -> tuple[Allocations, int]:
    """Return the allocations of a command, and its exit status."""
    place = folder / "recordings"
    place.mkdir()
    process = Process(command, ENVIRONMENT | (environment or {}))
    done = run(allocations.wrap(process, place))
    return allocations.read(place), done.returncode


def size_class_of(evidence: Allocations, size: int) -> SizeClass:
    """The class of that size."""
    return next(c for c in evidence.classes if c.min_bytes <= size <= c.max_bytes)


def main(body: str) -> str:
    """A C program."""
    return f"{HEAD}\nint main(int count, char **words) {{ (void)count; (void)words; {body} }}"


def test_every_block_is_counted_with_its_size_and_its_lifetime(tmp_path: Path) -> None:
    program = compiled(tmp_path, main(f"churn({COUNT}, {SIZE}); make({SIZE}); return 0;"))
    evidence, status = record(tmp_path, str(program))
    size = size_class_of(evidence, SIZE)
    assert status == 0
    assert (size.allocations, size.bytes) == (COUNT + 1, (COUNT + 1) * SIZE)
    assert (size.typical_bytes, size.min_typical_blocks) == (SIZE, COUNT + 1)
    assert sum(size.lifetimes) == COUNT
    assert evidence.unseen == ()


def test_lifetimes_are_distinguished(tmp_path: Path) -> None:
    body = "void *old = make(5000); churn(500, 100); usleep(20000); free(old); return 0;"
    program = compiled(tmp_path, main(body))
    evidence, _ = record(tmp_path, str(program))
    least_s = next(
        evidence.lifetime_bounds_s[index - 1]
        for index, count in enumerate(size_class_of(evidence, 5000).lifetimes)
        if count
    )
    assert least_s > 0.005
    within = sum(bound_s <= 0.001 for bound_s in evidence.lifetime_bounds_s)
    assert sum(sum(size.lifetimes[:within]) for size in evidence.classes) >= 450


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("_exit(3);", 3),
        ("abort();", -signal.SIGABRT),
        ("kill(getpid(), SIGKILL); pause();", -signal.SIGKILL),
        ("*(volatile int *)8 = 1;", -signal.SIGSEGV),
        ('execlp("true", "true", (char *)0);', 0),
    ],
    ids=["_exit", "abort", "kill -9", "segmentation fault", "exec"],
)
def test_all_allocations_are_counted_for_each_kind_of_exit(
    tmp_path: Path, ends: str, status: int
) -> None:
    program = compiled(tmp_path, main(f"churn({COUNT}, {SIZE}); {ends} return 0;"))
    evidence, returned = record(tmp_path, str(program))
    assert returned == status
    assert size_class_of(evidence, SIZE).allocations == COUNT
    assert sum(size_class_of(evidence, SIZE).lifetimes) == COUNT


@pytest.mark.parametrize(
    "fork",
    ["fork()", "_Fork()", "syscall(57 /* fork */)"],
    ids=["fork", "_Fork", "the bare system call"],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of fork is x86-64's")
def test_a_forked_child_has_a_recording_of_its_own(tmp_path: Path, fork: str) -> None:
    body = f"""
    void *before = make(9000);
    if ({fork} == 0) {{ churn(700, {SIZE}); free(before); _exit(0); }}
    churn(200, {SIZE}); free(before);
    int status; wait(&status); return status;
    """
    evidence, status = record(tmp_path, str(compiled(tmp_path, main(body))))
    assert (status, evidence.processes) == (0, 2)
    assert size_class_of(evidence, SIZE).allocations == 900
    assert size_class_of(evidence, 9000).lifetimes.count(1) == 1
    (remark,) = evidence.unseen
    assert remark == "the lifetimes of 1 blocks are unknown: a forked child freed them"


def test_threads_that_come_and_go_are_added_up(tmp_path: Path) -> None:
    source = f"""{HEAD}
    static void *work(void *unused) {{ (void)unused; churn(10, {SIZE}); return 0; }}
    int main(void) {{
        for (int round = 0; round < 100; round++) {{
            pthread_t threads[3];
            for (int at = 0; at < 3; at++) pthread_create(threads + at, 0, work, 0);
            for (int at = 0; at < 3; at++) pthread_join(threads[at], 0);
        }}
        return 0;
    }}"""
    evidence, status = record(tmp_path, str(compiled(tmp_path, source, "-pthread")))
    assert status == 0
    assert size_class_of(evidence, SIZE).allocations == 3000
    assert sum(size_class_of(evidence, SIZE).lifetimes) == 3000


def test_a_block_may_be_freed_by_another_thread(tmp_path: Path) -> None:
    source = f"""{HEAD}
    static void *blocks[{COUNT}];
    static void *work(void *unused) {{
        (void)unused; for (int at = 0; at < {COUNT}; at++) free(blocks[at]); return 0;
    }}
    int main(void) {{
        pthread_t thread;
        for (int at = 0; at < {COUNT}; at++) blocks[at] = make({SIZE});
        pthread_create(&thread, 0, work, 0);
        return pthread_join(thread, 0);
    }}"""
    evidence, _ = record(tmp_path, str(compiled(tmp_path, source, "-pthread")))
    assert sum(size_class_of(evidence, SIZE).lifetimes) == COUNT


def test_each_way_to_allocate_is_counted(tmp_path: Path) -> None:
    body = """
    void *block = 0;
    free(calloc(3, 7000));
    free(aligned_alloc(64, 21056));
    if (posix_memalign(&block, 4096, 21000)) return 1;
    free(block);
    block = 0;
    for (int at = 1; at <= 10; at++) block = realloc(block, 300000 * at);
    free(block);
    return 0;
    """
    evidence, status = record(tmp_path, str(compiled(tmp_path, main(body))))
    assert status == 0
    assert size_class_of(evidence, 21_000).allocations == 3
    assert (evidence.zeroed, evidence.aligned, evidence.resized) == (1, 2, 9)
    large = [size for size in evidence.classes if size.min_bytes > 200_000]
    assert sum(size.allocations for size in large) == 10
    assert sum(sum(size.lifetimes) for size in large) == 10


def test_a_block_that_cannot_be_resized_lives_on(tmp_path: Path) -> None:
    body = """
    void *block = make(9000);
    if (realloc(block, (size_t)1 << 62)) return 1;
    free(block);
    return 0;
    """
    evidence, status = record(tmp_path, str(compiled(tmp_path, main(body))))
    assert status == 0
    assert (
        size_class_of(evidence, 9000).allocations,
        sum(size_class_of(evidence, 9000).lifetimes),
    ) == (1, 1)


@pytest.mark.live("c++", package="g++")
@pytest.mark.parametrize("allocator", ["", "libjemalloc.so.2", "libmimalloc.so.2"])
def test_new_and_delete_are_counted_once_over_any_allocator(tmp_path: Path, allocator: str) -> None:
    source = f"""
    struct Part {{ char bytes[{SIZE}]; }};
    static Part *volatile kept;
    int main() {{ for (int at = 0; at < {COUNT}; at++) {{ kept = new Part; delete kept; }} }}
    """
    program = compiled(tmp_path, source, "-xc++")
    behind = {"LD_PRELOAD": allocator} if allocator else {}
    evidence, status = record(tmp_path, str(program), environment=behind)
    assert status == 0
    assert size_class_of(evidence, SIZE).allocations == COUNT
    assert sum(size_class_of(evidence, SIZE).lifetimes) == COUNT


def test_interpreter_with_threads_and_children_behaves_as_without_the_recorder(
    tmp_path: Path,
) -> None:
    text = (
        "import subprocess, threading, zlib\n"
        "def work(): zlib.decompress(zlib.compress(bytes(100000)))\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "subprocess.run(['sh', '-c', 'true | cat'], check=True)\n"
    )
    evidence, status = record(tmp_path, sys.executable, "-c", text)
    assert status == 0
    assert evidence.processes >= 2
    assert evidence.allocations > 1000


def test_sampled_stacks_give_the_bytes_of_each_allocating_function(tmp_path: Path) -> None:
    source = f"""{HEAD}
    __attribute__((noinline)) void many_large(void) {{ churn({COUNT}, {SIZE}); }}
    __attribute__((noinline)) void few_small(void) {{ churn(100, 100); }}
    int main(void) {{ many_large(); few_small(); return 0; }}"""
    program = compiled(tmp_path, source, "-fno-optimize-sibling-calls")
    evidence, _ = record(tmp_path, str(program))
    below = weights_by_name(evidence.stacks)
    # 128 samples for each doubling: the standard error is some 5 %, five of it are allowed.
    assert below["many_large"] == pytest.approx(COUNT * SIZE, rel=0.3)
    assert below[f"{SIZE} bytes"] == below["many_large"]
    assert {"main", "many_large", "churn"} <= set(below)


def test_static_program_has_a_remark(tmp_path: Path) -> None:
    program = compiled(tmp_path, main("churn(10, 100); return 0;"), "-static")
    evidence, status = record(tmp_path, str(program))
    assert (status, evidence.allocations) == (0, 0)
    assert "linked statically" in evidence.unseen[0]


def test_program_runs_unrecorded_if_large_files_are_forbidden(tmp_path: Path) -> None:
    program = compiled(tmp_path, main("churn(10, 100); return 0;"))
    shell = f"ulimit -f 100; exec {program}"
    evidence, status = record(tmp_path, "sh", "-c", shell)
    assert status == 0
    assert not any(size.min_typical_blocks >= 10 for size in evidence.classes if size.bytes == 1000)


OBSERVES = """
import subprocess, sys
from pathlib import Path
import msgspec
from equipoise.why.evidence import allocations
from equipoise.why.evidence.observer import Process
folder, filled, program = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
(folder / "filler").write_bytes(bytes(4096 * filled))
process = allocations.wrap(Process((program,)), folder)
done = subprocess.run(process.command, env=dict(process.environment))
found = allocations.read(folder)
sys.stdout.buffer.write(msgspec.json.encode((done.returncode, found)))
"""
"""Prints how the program ended, and what was recorded of it in a folder with so many pages full."""

TWO_THREADS = f"""{HEAD}
static void *work(void *unused) {{ churn(40, {SIZE}); return unused; }}
int main(void) {{
    churn({COUNT}, {SIZE});
    pthread_t thread;
    return pthread_create(&thread, 0, work, 0) || pthread_join(thread, 0);
}}"""


@pytest.mark.parametrize(
    ("free_pages", "counted", "missing"),
    [
        (0, 0, ("all allocations of 1 processes",)),
        (1, 0, ("calls of 2 threads", "names of functions in some libraries")),
        # The header, the table of one thread, the maps, and less than all samples.
        (40, COUNT, ("calls of 1 threads", "sampled stacks")),
    ],
    ids=["nothing", "the header", "one thread"],
)
def test_a_full_disk_ends_the_recording_and_not_the_program(
    tmp_path: Path, free_pages: int, counted: int, missing: tuple[str, ...]
) -> None:
    pages = 64
    program = compiled(tmp_path, TWO_THREADS, "-pthread")
    disk = tmp_path / "disk"
    disk.mkdir()
    words = (sys.executable, "-c", OBSERVES, str(disk), str(pages - free_pages), str(program))
    done = run(with_small_disk(Process(words, ENVIRONMENT), disk, 4 * pages))
    assert done.returncode == 0, done.stderr
    status, evidence = msgspec.json.decode(done.stdout, type=tuple[int, Allocations])
    assert status == 0
    assert (
        sum(size.allocations for size in evidence.classes if size.typical_bytes == SIZE) == counted
    )
    for words_of_it in missing:
        remarks = [words for words in evidence.unseen if words_of_it in words]
        assert len(remarks) == 1, evidence.unseen
        assert "the disk of the temporary folder is full" in remarks[0]


def test_stacks_have_names_although_the_first_thread_ended_first(tmp_path: Path) -> None:
    source = f"""{HEAD}
    __attribute__((noinline)) void many_large(void) {{ churn({COUNT}, {SIZE}); }}
    static pthread_t first;
    static void *work(void *unused) {{
        pthread_join(first, 0); many_large(); exit(unused != 0);
    }}
    int main(void) {{
        pthread_t thread;
        first = pthread_self();
        pthread_create(&thread, 0, work, 0);
        pthread_exit(0);
    }}"""
    program = compiled(tmp_path, source, "-pthread", "-fno-optimize-sibling-calls")
    evidence, status = record(tmp_path, str(program))
    assert (status, evidence.unseen) == (0, ())
    assert {"many_large", "churn"} <= {frame.name for frame in evidence.stacks.frames}
