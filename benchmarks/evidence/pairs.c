/* COUNT times: allocate SIZE bytes, touch one, free; prints nanoseconds a pair. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int words, char **word)
{
    if (words != 3)
        return 2;
    size_t size = strtoul(word[1], 0, 10);
    long count = strtol(word[2], 0, 10);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long at = 0; at < count; at++) {
        char *volatile block = malloc(size);
        block[0] = 1;
        free(block);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double ns = 1e9 * (ended.tv_sec - began.tv_sec) + (ended.tv_nsec - began.tv_nsec);
    printf("%.3f\n", ns / count);
    return 0;
}
