/* Compresses and restores generated text, over and over. */
#include <stdio.h>
#include <stdlib.h>
#include <lz4.h>

enum { ROUNDS = 100, SIZE = 120000 };

int main(void) {
    static char text[SIZE], packed[2 * SIZE], restored[SIZE];
    unsigned state = 1;
    for (int i = 0; i < SIZE; i++) {
        state = state * 1103515245u + 12345u;
        text[i] = "etaoin shrdlu "[(state >> 20) % 14];
    }
    unsigned long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        text[round % SIZE] ^= 1;
        int length = LZ4_compress_default(text, packed, SIZE, sizeof packed);
        if (LZ4_decompress_safe(packed, restored, length, SIZE) != SIZE) return 1;
        sum += length + restored[round];
    }
    printf("%lu\n", sum);
    return 0;
}
