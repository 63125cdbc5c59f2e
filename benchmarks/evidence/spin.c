/* COUNT steps of arithmetic with memory and calls; prints nanoseconds a step. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned table[1 << 16];

__attribute__((noinline)) static unsigned step(unsigned state)
{
    state = state * 1664525u + 1013904223u;
    table[state >> 16] += state;
    return state;
}

int main(int words, char **word)
{
    if (words != 2)
        return 2;
    long count = strtol(word[1], 0, 10);
    unsigned state = 1;
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long at = 0; at < count; at++)
        state = step(state);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double ns = 1e9 * (ended.tv_sec - began.tv_sec) + (ended.tv_nsec - began.tv_nsec);
    printf("%.3f\n", ns / count);
    return state == 0;
}
