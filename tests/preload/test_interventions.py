"""The library of interventions in real programs: what the kernel is asked, and what is not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.explain.evidence.programs import compiled

pytestmark = pytest.mark.live("cc", package="gcc")

FORBIDDEN = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
/* The kernel answers each of these calls with EXDEV, which none of them has. */
static void forbid(const int *calls, int count) {
    for (int one = 0; one < count; one++) {
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[one], 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {4, filter};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) perror("seccomp");
    }
}
#define FORBID(...) do { int calls[] = {__VA_ARGS__}; \
    forbid(calls, sizeof calls / sizeof *calls); } while (0)
#define SAY(call) do { errno = 7; int result = (int)(call); \
    printf("%s %d %d\n", #call, result, errno); } while (0)
"""

SYNCS = (
    FORBIDDEN
    + r"""
int main(void) {
    int file = open("data", O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 4096)) return 1;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    FORBID(SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_syncfs, SYS_msync);
    SAY(fsync(file));
    SAY(fdatasync(file));
    SAY(sync_file_range(file, 0, 0, 0));
    SAY(syncfs(file));
    SAY(msync(page, 4096, MS_SYNC));
    SAY(fsync(99));
    return 0;
}
"""
)

SLEEPS = (
    FORBIDDEN
    + r"""
int main(void) {
    struct timespec second = {1, 0}, never = {0, 2000000000};
    struct timeval a_second = {1, 0};
    FORBID(SYS_nanosleep, SYS_clock_nanosleep, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6);
    SAY(nanosleep(&second, NULL));
    SAY(nanosleep(&never, NULL) != 0);
    SAY(clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL));
    SAY(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &second, NULL));
    SAY(usleep(1000));
    SAY(sleep(1));
    SAY(thrd_sleep(&second, NULL));
    SAY(poll(NULL, 0, 1000));
    SAY(ppoll(NULL, 0, &second, NULL));
    SAY(select(0, NULL, NULL, NULL, &a_second));
    SAY(pselect(0, NULL, NULL, NULL, &second, NULL));
    struct pollfd input = {0, POLLIN, 0};
    SAY(poll(&input, 1, 0));
    return 0;
}
"""
)

LINES = r"""
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    setvbuf(stdout, NULL, strcmp(words[1], "lines") ? _IONBF : _IOLBF, 0);
    for (int one = 0; one < 100; one++) {
        printf("line %d\n", one);
        if (!strcmp(words[1], "flush")) fflush(stdout);
    }
    if (!strcmp(words[1], "fork")) {
        if (fork() == 0) return printf("child\n") < 0;
        wait(NULL);
    }
    (void)count;
    return 0;
}
"""

MANY_FILES = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char name[40], text[40];
    FILE *open[100];
    for (int round = 0; round < 3; round++) {
        for (int one = 0; one < 100; one++) {
            sprintf(name, "file-%d", one);
            if ((open[one] = fopen(name, round ? "a+" : "w+")) == NULL) return 1;
            setbuf(open[one], NULL);
            fprintf(open[one], "%d %d\n", round, one);
        }
        for (int one = 0; one < 100; one += 2) {
            sprintf(name, "again-%d", one);
            if ((open[one] = freopen(name, "w", open[one])) == NULL) return 2;
            fprintf(open[one], "again\n");
        }
        for (int one = 0; one < 100; one++) if (fclose(open[one])) return 3;
    }
    for (int one = 0; one < 100; one++) {
        sprintf(name, "file-%d", one);
        FILE *file = fopen(name, "r");
        for (int round = 0; round < 3; round++) {
            sprintf(text, "%d %d\n", round, one);
            char line[40];
            for (char *at = text; *at; at++) if (fgetc(file) != *at) return 4;
            (void)line;
        }
        if (fgetc(file) != EOF) return 5;
        fclose(file);
    }
    puts("as written");
    return 0;
}
"""

PAGES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
enum { PAGE = 4096, PAGES = 256, BYTES = PAGE * PAGES, ROUNDS = 20 };
static long faults(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}
static int is_zero(const char *at, long bytes) {
    while (bytes--) if (*at++) return 0;
    return 1;
}
int main(void) {
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(own, 1, BYTES);
    long before = faults();
    int zero = 1;
    for (int round = 0; round < ROUNDS; round++) {
        if (madvise(own, BYTES, MADV_DONTNEED)) return 1;
        zero &= is_zero(own, BYTES);
        memset(own, round + 1, BYTES);
    }
    printf("zero %d, %s\n", zero, faults() - before > PAGES * ROUNDS / 2 ? "faults" : "kept");

    /* What is not there stays so. */
    char *large = mmap(NULL, 1L << 30, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    large[PAGE * 3000L] = 1;
    before = faults();
    if (madvise(large, 1L << 30, MADV_DONTNEED)) return 2;
    printf("absent %d %d\n", large[PAGE * 3000L] == 0, faults() - before < 100);

    /* A file's pages come from the file again. */
    int file = open("data", O_RDWR | O_CREAT, 0600);
    if (write(file, "on the disk", 11) != 11) return 3;
    char *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    mapped[0] = 'O';
    if (madvise(mapped, PAGE, MADV_DONTNEED)) return 4;
    printf("%.11s\n", mapped);
    /* So they do where one lies inside of memory that was private. */
    if (mmap(own + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) return 5;
    if (madvise(own, BYTES, MADV_DONTNEED)) return 6;
    printf("%.11s %d\n", own + PAGE, is_zero(own + 2 * PAGE, BYTES - 2 * PAGE));

    /* What may not be written to is left to the kernel. */
    char *read_only = own + 10 * PAGE;
    memset(read_only, 5, 10 * PAGE);
    mprotect(read_only, 10 * PAGE, PROT_READ);
    if (madvise(read_only, 10 * PAGE, MADV_DONTNEED)) return 7;
    printf("read only %d\n", is_zero(read_only, 10 * PAGE));

    /* Errors stay. */
    printf("unaligned %d\n", madvise(own + 1, PAGE, MADV_DONTNEED));
    munmap(own, BYTES);
    printf("unmapped %d\n", madvise(own, BYTES, MADV_DONTNEED));
    if (fork() == 0) {
        char *child = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(child, 1, BYTES);
        _exit(madvise(child, BYTES, MADV_DONTNEED) || !is_zero(child, BYTES));
    }
    return 0;
}
"""


CACHE = (
    FORBIDDEN
    + r"""
int main(void) {
    int file = open("data", O_RDWR | O_CREAT, 0600);
    FORBID(SYS_fadvise64);
    SAY(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
    SAY(posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM));
    SAY(posix_fadvise(99, 0, 0, POSIX_FADV_DONTNEED));
    return 0;
}
"""
)

HUGE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
    static char line[4096];
    unsigned long start, end;
    int here = 0;
    char *large = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(large, 8 << 20, MADV_NOHUGEPAGE)) return 1;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = start <= (unsigned long)large && (unsigned long)large < end;
        if (here && !strncmp(line, "VmFlags:", 8))
            puts(strstr(line, " hg") ? "huge" : strstr(line, " nh") ? "not huge" : "as ever");
    }
    return 0;
}
"""


@pytest.fixture
def library(native_folder: Path) -> Path:
    return native_folder / "libequipoise_interventions.so"


def under(library: Path, word: str) -> dict[str, str]:
    return os.environ | {"LD_PRELOAD": str(library), "EQUIPOISE_INTERVENTION": word}


def said(library: Path, word: str, program: Path, *words: str) -> list[str]:
    """The lines that a program prints, which must end well."""
    done = subprocess.run(
        [program, *words],
        cwd=program.parent,
        env=under(library, word),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
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
    done = subprocess.run(
        [sys.executable, "-S", "-c", line],
        env=under(library, "no_sleep"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "woke\n"


def writes_of(library: Path, word: str, program: Path, how: str) -> list[bytes]:
    """What each write to standard output held: each is one packet."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with its:
            child = subprocess.Popen([program, how], stdout=its.fileno(), env=under(library, word))
        packets = list(iter(lambda: ours.recv(1 << 20), b""))
        assert child.wait(60) == 0
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
    done = subprocess.run(
        ["bash", "-c", SHELL],
        env=under(library, word),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
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
    done = subprocess.run(
        [sys.executable, "-S", "-W", "ignore", "-c", line],
        env=under(library, word),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
