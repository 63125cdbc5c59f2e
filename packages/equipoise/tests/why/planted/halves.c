/* The same work by one thread or by two. */
#include <pthread.h>
#include <stdlib.h>

static long steps;

static void *work(void *kept) {
    double value = 1.0;
    for (long step = 0; step < steps; step++) value = value * 1.0000001 + 1e-9;
    *(volatile double *)kept = value;
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    steps = atol(words[1]);
    double kept[2];
    if (atoi(words[2]) == 1) {
        work(&kept[0]);
        work(&kept[1]);
        return 0;
    }
    pthread_t other;
    if (pthread_create(&other, NULL, work, &kept[0]) != 0) return 1;
    work(&kept[1]);
    return pthread_join(other, NULL);
}
