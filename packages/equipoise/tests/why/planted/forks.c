/* Forks children that end at once; the children get much memory, or next to none of it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 64 << 20, PAGE_BYTES = 4096 };

int main(int count, char **words) {
    if (count < 3) return 2;
    int children = atoi(words[1]);
    char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, BYTES, MADV_NOHUGEPAGE) != 0) return 1;
    if (strcmp(words[2], "little") == 0 && madvise(memory, BYTES, MADV_DONTFORK) != 0) return 1;
    for (size_t at = 0; at < BYTES; at += PAGE_BYTES) memory[at] = 1;
    for (int at = 0; at < children; at++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child) return 1;
    }
    return 0;
}
