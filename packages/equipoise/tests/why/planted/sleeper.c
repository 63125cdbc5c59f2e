/* Computes a little, and naps in between. */
#include <stdlib.h>
#include <time.h>

static volatile double kept;

int main(int count, char **words) {
    if (count < 2) return 2;
    int naps = atoi(words[1]);
    struct timespec nap = {0, 2000000};
    double value = 1.0;
    for (int part = 0; part < 50; part++) {
        for (int step = 0; step < 100000; step++) value = value * 1.0000001 + 1e-9;
        if (part < naps) nanosleep(&nap, NULL);
    }
    kept = value;
    return 0;
}
