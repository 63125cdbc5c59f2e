"""Doug Lea's malloc, preloaded into real programs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

EXPORTED = (
    "aligned_alloc calloc free malloc malloc_usable_size memalign posix_memalign pvalloc realloc "
    "valloc"
).split()

THREADS = """
import threading
def work(seed):
    kept = [bytes(seed * number % 9000) for number in range(20000)]
    assert sum(map(len, kept)) == sum(seed * number % 9000 for number in range(20000))
threads = [threading.Thread(target=work, args=(seed,)) for seed in (3, 5, 7, 11)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
"""

# The main thread forks while others allocate without the interpreter's lock: zlib lets go of it.
FORKS = """
import os, threading, zlib
stop = threading.Event()
def work():
    while not stop.is_set():
        zlib.compress(bytes(100000))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(100):
    child = os.fork()
    if child == 0:
        kept = [bytes(number) for number in range(2000)]
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set()
for thread in threads: thread.join()
print("done")
"""

CHILDREN = """
import subprocess
for _ in range(20):
    subprocess.run(["true"], check=True)
subprocess.run(["sh", "-c", "echo done | cat"], check=True)
"""


@pytest.fixture
def library(native_folder: Path) -> Path:
    return native_folder / "libequipoise_dlmalloc.so"


def preloaded(library: Path, *command: str) -> str:
    """Standard output of a command under the library, which must end well and say nothing."""
    done = finished(command, env=os.environ | {"LD_PRELOAD": str(library)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_small_program_behaves_as_without_the_library(library: Path) -> None:
    plain = subprocess.run(["/bin/ls", "/"], capture_output=True, text=True, check=True)
    assert preloaded(library, "/bin/ls", "/") == plain.stdout


def test_the_library_is_mapped_into_the_program(library: Path) -> None:
    assert str(library.resolve()) in preloaded(library, "cat", "/proc/self/maps")


@pytest.mark.parametrize(
    "program", [THREADS, FORKS, CHILDREN], ids=["threads", "forks", "children"]
)
def test_an_interpreter_with(library: Path, program: str) -> None:
    python = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    assert preloaded(library, *python) == "done\n"


def test_a_program_with_threads_of_its_own(library: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{number * 7919 % 200_003}\n" for number in range(200_000)))
    command = ["sort", "--parallel=2", "--buffer-size=32M", str(lines)]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    assert preloaded(library, *command) == plain.stdout


def test_exports_the_functions_of_a_malloc_replacement(library: Path) -> None:
    loaded = ctypes.CDLL(str(library))
    assert [name for name in EXPORTED if not hasattr(loaded, name)] == []
