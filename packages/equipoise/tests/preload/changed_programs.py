"""C programs of which the library of interventions changes one thing."""

from __future__ import annotations

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
