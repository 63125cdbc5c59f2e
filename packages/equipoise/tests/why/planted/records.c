/* Appends records to a file and syncs it: once at the end, or after each record, too. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 4) return 2;
    int records = atoi(words[2]);
    int each = strcmp(words[3], "each") == 0;
    char record[512] = "a record";
    int file = open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) return 1;
    for (int at = 0; at < records; at++) {
        if (write(file, record, sizeof record) != (ssize_t)sizeof record) return 1;
        if (each && fsync(file) != 0) return 1;
    }
    return fsync(file);
}
