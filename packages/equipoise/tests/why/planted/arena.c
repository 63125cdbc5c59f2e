/* Fills the same memory again and again, and gives it back to the kernel in between if asked to. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 1 << 18, FILLS = 12 };

__attribute__((noinline)) static void fill(char *memory, int value) {
    memset(memory, value, BYTES);
    __asm__ volatile("" ::: "memory"); /* somebody may read it */
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int rounds = atoi(words[1]);
    int giving = strcmp(words[2], "giving") == 0;
    char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < FILLS; at++) fill(memory, at);
        if (giving && madvise(memory, BYTES, MADV_DONTNEED) != 0) return 1;
    }
    return 0;
}
