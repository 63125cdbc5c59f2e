/* Reads a file in pieces, each by itself; puts it out of the page cache before if asked to. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3) return 2;
    static char buffer[1 << 14];
    int file = open(words[1], O_RDONLY);
    if (file < 0) return 1;
    if (posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM) != 0) return 1;
    if (strcmp(words[2], "cold") == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        return 1;
    ssize_t got;
    do got = read(file, buffer, sizeof buffer);
    while (got > 0);
    return got == 0 ? 0 : 1;
}
