/* Compresses and checks generated text, over and over. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { ROUNDS = 100, SIZE = 24000 };

int main(void) {
    static unsigned char text[SIZE], packed[2 * SIZE];
    unsigned state = 1;
    for (int i = 0; i < SIZE; i++) {
        state = state * 1103515245u + 12345u;
        text[i] = "etaoin shrdlu "[(state >> 20) % 14];
    }
    unsigned long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uLongf length = sizeof packed;
        text[round % SIZE] ^= 1;
        if (compress2(packed, &length, text, SIZE, 1) != Z_OK) return 1;
        sum += length + crc32(0, packed, length);
    }
    printf("%lu\n", sum);
    return 0;
}
