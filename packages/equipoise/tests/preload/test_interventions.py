"""The library of interventions in real programs: what the kernel is asked, and what is not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.preload.changed_programs import (
    CACHE,
    HUGE,
    LINES,
    MANY_FILES,
    PAGES,
    SLEEPS,
    SYNCS,
)
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.why.evidence.programs import compiled

pytestmark = pytest.mark.live("cc", package="gcc")


@pytest.fixture
def library(native_folder: Path) -> Path:
    return native_folder / "libequipoise_interventions.so"


def under(library: Path, word: str) -> dict[str, str]:
    return os.environ | {"LD_PRELOAD": str(library), "EQUIPOISE_INTERVENTION": word}


def said(library: Path, word: str, program: Path, *words: str) -> list[str]:
    """The lines that a program prints, which must end well."""
    done = finished([program, *words], cwd=program.parent, env=under(library, word))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_syncs_are_answered_without_the_kernel(library: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path, SYNCS, "-w")
    *answered, closed = said(library, "quick_sync", program)
    assert len(answered) == 5
    assert all(line.endswith(" 0 7") for line in answered)
    assert closed == "fsync(99) -1 9"


@pytest.mark.parametrize("word", ["nothing", "no_sleep", "keep_pages"])
def test_other_words_leave_syncs_to_the_kernel(library: Path, tmp_path: Path, word: str) -> None:
    lines = said(library, word, compiled(tmp_path, SYNCS, "-w"))
    assert [line.rsplit(" ", 2)[1:] for line in lines] == [["-1", "18"]] * 6


def test_sleeps_are_answered_without_the_kernel(library: Path, tmp_path: Path) -> None:
    *slept, waited = said(library, "no_sleep", compiled(tmp_path, SLEEPS, "-w"))
    refused = slept.pop(1)
    assert refused.startswith("nanosleep(&never, NULL) != 0 1 ")
    assert [line.rsplit(" ", 2)[1:] for line in slept] == [["0", "7"]] * 10
    # What waits for a descriptor is no sleep.
    assert waited.endswith(" -1 18")


def test_the_sham_sleeps(library: Path, tmp_path: Path) -> None:
    lines = said(library, "nothing", compiled(tmp_path, SLEEPS, "-w"))
    assert not [line for line in lines if line.endswith(" 0 7")]


def test_an_interpreter_does_not_sleep(library: Path) -> None:
    line = "import time; before = time.monotonic(); time.sleep(3600); print('woke')"
    done = finished([sys.executable, "-S", "-c", line], env=under(library, "no_sleep"))
    assert done.stdout == "woke\n"


def writes_of(library: Path, word: str, program: Path, how: str) -> list[bytes]:
    """What each write to standard output held: each is one packet."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with its:
            child = subprocess.Popen([program, how], stdout=its.fileno(), env=under(library, word))
        packets = list(iter(lambda: ours.recv(1 << 20), b""))
        assert child.wait(600) == 0
    return packets


EXPECTED = b"".join(b"line %d\n" % number for number in range(100))


@pytest.mark.parametrize("how", ["lines", "unbuffered"])
def test_a_write_for_each_line_becomes_one(library: Path, tmp_path: Path, how: str) -> None:
    program = compiled(tmp_path, LINES)
    assert len(writes_of(library, "nothing", program, how)) >= 100
    assert writes_of(library, "large_buffers", program, how) == [EXPECTED]


def test_a_flush_for_each_line_is_left_out_only_by_its_own_word(
    library: Path, tmp_path: Path
) -> None:
    program = compiled(tmp_path, LINES)
    assert len(writes_of(library, "large_buffers", program, "flush")) == 100
    assert writes_of(library, "late_flush", program, "flush") == [EXPECTED]


def test_what_is_pending_at_a_fork_is_written_once(library: Path, tmp_path: Path) -> None:
    packets = writes_of(library, "large_buffers", compiled(tmp_path, LINES), "fork")
    assert packets == [EXPECTED, b"child\n"]


SHELL = """
echo one; (echo two); echo $(echo three)
echo lost >/dev/null; echo four; command -v no_such_thing 2>/dev/null; cd /no/such 2>/dev/null
printf 'five\n'; /bin/echo six; exec echo seven
"""


@pytest.mark.parametrize("word", ["nothing", "large_buffers", "late_flush"])
def test_a_shell_that_forks_redirects_and_executes_prints_as_ever(library: Path, word: str) -> None:
    done = finished(["bash", "-c", SHELL], env=under(library, word))
    assert done.stdout.split() == ["one", "two", "three", "four", "five", "six", "seven"]
    assert done.stderr == ""


@pytest.mark.parametrize("word", ["nothing", "large_buffers", "late_flush"])
def test_more_files_than_buffers_are_written_as_ever(
    library: Path, tmp_path: Path, word: str
) -> None:
    assert said(library, word, compiled(tmp_path, MANY_FILES, "-w")) == ["as written"]
    assert (tmp_path / "again-98").read_text() == "again\n"


@pytest.mark.parametrize(("word", "kept"), [("nothing", "faults"), ("keep_pages", "kept")])
def test_memory_that_is_not_needed_is_zero_again(
    library: Path, tmp_path: Path, word: str, kept: str
) -> None:
    assert said(library, word, compiled(tmp_path, PAGES)) == [
        f"zero 1, {kept}",
        "absent 1 1",
        "on the disk",
        "on the disk 1",
        "read only 1",
        "unaligned -1",
        "unmapped -1",
    ]


@pytest.mark.parametrize(("word", "dropped", "closed"), [("nothing", 18, 18), ("keep_cache", 0, 9)])
def test_a_file_is_not_dropped_from_the_page_cache(
    library: Path, tmp_path: Path, word: str, dropped: int, closed: int
) -> None:
    lines = said(library, word, compiled(tmp_path, CACHE, "-w"))
    assert [line.rsplit(" ", 2)[1:] for line in lines] == [
        [str(dropped), "7"],
        ["18", "7"],
        [str(closed), "9" if word == "keep_cache" else "7"],
    ]


@pytest.mark.parametrize(("word", "pages"), [("nothing", "not huge"), ("huge_mappings", "huge")])
def test_large_memory_is_asked_to_be_huge_pages(
    library: Path, tmp_path: Path, word: str, pages: str
) -> None:
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("this kernel has no transparent huge pages")
    assert said(library, word, compiled(tmp_path, HUGE)) == [pages]


@pytest.mark.parametrize("word", ["large_buffers", "late_flush", "keep_pages", "huge_mappings"])
def test_an_interpreter_and_its_threads_go_on(library: Path, word: str) -> None:
    line = (
        "import mmap, os, sys, threading\n"
        "def work():\n"
        "    for _ in range(200):\n"
        "        memory = mmap.mmap(-1, 1 << 16)\n"
        "        memory[:3] = b'abc'\n"
        "        memory.close()\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[one.start() for one in threads]\n"
        "pid = os.fork()\n"
        "if pid == 0: work(); os._exit(0)\n"
        "[one.join() for one in threads]\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = finished([sys.executable, "-S", "-W", "ignore", "-c", line], env=under(library, word))
    assert (done.stdout, done.stderr) == ("0\n", "")
