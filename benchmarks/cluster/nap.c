/* nap 0|1: sleep for the seconds that the file `planted` of this folder names, times its ratio if 1.
 *
 * The file holds: seconds of condition 0, ratio of condition 1, standard deviation of the log time.
 * The program takes next to no processor time, so that the trials of many hosts fit on one machine.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

static double uniform(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        return 0.5;
    return ((double)(bits >> 11) + 0.5) / 9007199254740992.0;
}

int main(int count, char **words)
{
    double seconds, ratio, spread;
    FILE *file = fopen("planted", "r");
    if (count != 2 || file == NULL || fscanf(file, "%lf %lf %lf", &seconds, &ratio, &spread) != 3) {
        fprintf(stderr, "usage: nap 0|1, in a folder with a file `planted`\n");
        return 2;
    }
    if (words[1][0] == '1')
        seconds *= ratio;
    seconds *= exp(spread * sqrt(-2.0 * log(uniform())) * cos(6.283185307179586 * uniform()));
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double nanoseconds = (double)end.tv_nsec + 1e9 * fmod(seconds, 1.0);
    end.tv_sec += (time_t)seconds + (time_t)(nanoseconds / 1e9);
    end.tv_nsec = (long)fmod(nanoseconds, 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
        continue;
    return 0;
}
