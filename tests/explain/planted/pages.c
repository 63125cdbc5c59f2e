/* Touches new memory, in huge pages or without them. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_BYTES = 2 << 20 };

__attribute__((noinline)) static void fill(char *memory, size_t bytes) { memset(memory, 1, bytes); }

int main(int count, char **words) {
    if (count < 3) return 2;
    size_t bytes = (size_t)atol(words[1]) << 20;
    int huge = strcmp(words[2], "huge") == 0;
    char *memory = mmap(
        0, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    madvise(memory, bytes + HUGE_BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    fill(memory, bytes);
    return 0;
}
