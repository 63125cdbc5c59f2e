/* Allocates a block as large as the buffers of the 2006 benchmark, touches each page, frees it. */
#include <stdlib.h>

enum { BLOCK_BYTES = 35600, PAGE_BYTES = 4096 };

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 1;
    for (int round = 0; round < rounds; round++) {
        volatile char *block = malloc(BLOCK_BYTES);
        if (block == NULL) return 1;
        for (int at = 0; at < BLOCK_BYTES; at += PAGE_BYTES) block[at] = 1;
        free((void *)block);
    }
    return 0;
}
