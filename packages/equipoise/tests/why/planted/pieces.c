/* Reads a file by read(2) itself, in pieces of a given size: no buffer of stdio can help it. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 4) return 2;
    static char buffer[1 << 16];
    long left = atol(words[2]);
    size_t size = strtoul(words[3], NULL, 10);
    int file = open(words[1], O_RDONLY);
    if (file < 0 || size == 0 || size > sizeof buffer) return 1;
    while (left > 0) {
        ssize_t got = read(file, buffer, size);
        if (got <= 0) return got == 0 ? 0 : 1;
        left -= got;
    }
    return 0;
}
