/* Fills the same memory again and again, and gives it back to the kernel in between if asked to. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 1 << 18, PAGE_BYTES = 4096 };

__attribute__((noinline)) static void fill(volatile char *memory) {
    for (int at = 0; at < BYTES; at += PAGE_BYTES) memory[at] = 1;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int rounds = atoi(words[1]);
    int giving = strcmp(words[2], "giving") == 0;
    char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    for (int round = 0; round < rounds; round++) {
        fill(memory);
        if (giving && madvise(memory, BYTES, MADV_DONTNEED) != 0) return 1;
    }
    return 0;
}
