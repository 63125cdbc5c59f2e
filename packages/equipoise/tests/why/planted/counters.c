/* Two threads count, each in a counter of its own: in one cache line, or a page apart. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(4096) volatile long counters[2048];
static long rounds;

__attribute__((noinline)) static void count_up(volatile long *counter) {
    for (long round = 0; round < rounds; round++)
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void *counting(void *counter) {
    count_up(counter);
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    rounds = atol(words[1]);
    int apart = strcmp(words[2], "apart") == 0 ? 1024 : 1;
    pthread_t threads[2];
    for (int at = 0; at < 2; at++)
        if (pthread_create(&threads[at], NULL, counting, (void *)&counters[at * apart]) != 0)
            return 1;
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    return 0;
}
