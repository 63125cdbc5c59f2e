/* Writes lines into a file, through the usual buffer or without one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    if (count < 4) return 2;
    int lines = atoi(words[2]);
    FILE *file = fopen(words[1], "w");
    if (file == NULL) return 1;
    if (strcmp(words[3], "unbuffered") == 0) setvbuf(file, NULL, _IONBF, 0);
    for (int line = 0; line < lines; line++)
        if (fputs("twenty-four small bytes\n", file) < 0) return 1;
    return fclose(file) == 0 ? 0 : 1;
}
