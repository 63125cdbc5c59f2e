/* Touches new memory again and again, in huge pages or without them.

A little memory many times, not much memory once: in a virtual machine new memory now and then takes
either side ten times as long as usual, as much as the whole gap. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_BYTES = 2 << 20, MEMORY_BYTES = 16 << 20 };

__attribute__((noinline)) static void fill(char *memory, size_t bytes) { memset(memory, 1, bytes); }

int main(int count, char **words) {
    if (count < 3) return 2;
    size_t bytes = MEMORY_BYTES + HUGE_BYTES;
    int huge = strcmp(words[2], "huge") == 0;
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (long left = atol(words[1]); left > 0; left--) {
        fill(memory, MEMORY_BYTES);
        madvise(memory, bytes, MADV_DONTNEED);
    }
    return 0;
}
