/* A bare posix_spawn loop to hold the launcher against: for each byte on standard input it
 * starts the program named by its arguments, waits for it, and prints the nanoseconds. */
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int count, char **arguments)
{
    char byte;
    if (count < 2) {
        fputs("usage: spawn_loop PROGRAM [ARGUMENT ...]\n", stderr);
        return 2;
    }
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        pid_t child;
        int status;
        int64_t start = now_ns();
        if (posix_spawn(&child, arguments[1], NULL, NULL, arguments + 1, environ) != 0)
            return 1;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
        printf("%lld\n", (long long)(now_ns() - start));
        fflush(stdout);
    }
    return 0;
}
