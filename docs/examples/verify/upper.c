/* Prints its input in capital letters. The length is computed again for each letter. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static char text[1 << 20];

int main(void) {
    size_t size = fread(text, 1, sizeof text - 1, stdin);
    text[size] = '\0';
    for (size_t i = 0; i < strlen(text); i++) {
        text[i] = (char)toupper((unsigned char)text[i]);
    }
    return fputs(text, stdout) == EOF;
}
