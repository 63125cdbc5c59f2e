/* Takes 1 % longer at every run: drifting WORK COUNTER_FILE.
   The counter file holds how often it has run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    double runs = 0.0;
    FILE *file = fopen(argv[2], "r+");
    if (!file || fscanf(file, "%lf", &runs) != 1)
        return 3;
    rewind(file);
    if (fprintf(file, "%.0f\n", runs + 1.0) < 0 || fclose(file) != 0)
        return 4;
    double steps = atof(argv[1]) * pow(1.01, runs);
    volatile unsigned long state = 88172645463325252UL;
    for (double step = 0.0; step < steps; step += 1.0) {
        unsigned long next = state;
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        state = next;
    }
    return state == 0;
}
