/* Reads a file through the usual buffer or byte by byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    if (count < 4) return 2;
    long left = atol(words[2]);
    FILE *file = fopen(words[1], "r");
    if (file == NULL) return 1;
    if (strcmp(words[3], "unbuffered") == 0) setvbuf(file, NULL, _IONBF, 0);
    while (left > 0 && getc(file) != EOF) left--;
    return 0;
}
