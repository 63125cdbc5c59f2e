/* COUNT times: getppid, the cheapest system call; prints nanoseconds a call. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int words, char **word)
{
    if (words != 2)
        return 2;
    long count = strtol(word[1], 0, 10);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long at = 0; at < count; at++)
        getppid();
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double ns = 1e9 * (ended.tv_sec - began.tv_sec) + (ended.tv_nsec - began.tv_nsec);
    printf("%.3f\n", ns / count);
    return 0;
}
