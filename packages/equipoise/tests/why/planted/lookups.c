/* Asks again and again for a file that is not there. */
#include <stdlib.h>
#include <sys/stat.h>

int main(int count, char **words) {
    if (count < 3) return 2;
    int times = atoi(words[1]);
    struct stat found;
    for (int at = 0; at < times; at++)
        if (stat(words[2], &found) == 0) return 1;
    return 0;
}
