/* COUNT times, DEPTH calls below main: allocate SIZE bytes, touch one, free; prints nanoseconds a
   pair. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double pairs(size_t size, long count)
{
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long at = 0; at < count; at++) {
        char *volatile block = malloc(size);
        block[0] = 1;
        free(block);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double ns = 1e9 * (ended.tv_sec - began.tv_sec) + (ended.tv_nsec - began.tv_nsec);
    return ns / count;
}

__attribute__((noinline, noclone)) static double below(int depth, size_t size, long count)
{
    volatile double found = depth > 0 ? below(depth - 1, size, count) : pairs(size, count);
    return found;
}

int main(int words, char **word)
{
    if (words != 4)
        return 2;
    printf("%.3f\n", below(atoi(word[1]), strtoul(word[2], 0, 10), strtol(word[3], 0, 10)));
    return 0;
}
