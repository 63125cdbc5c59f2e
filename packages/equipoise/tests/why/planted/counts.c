/* Eight threads count: all under one mutex, or each under its own. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8 };

static struct { _Alignas(4096) pthread_mutex_t lock; volatile long count; } counters[THREADS];
static long rounds;

__attribute__((noinline)) static void count_at(long at) {
    pthread_mutex_lock(&counters[at].lock);
    counters[at].count++;
    /* Others come while the lock is held, also where one processor serves all threads. */
    sched_yield();
    pthread_mutex_unlock(&counters[at].lock);
}

static void *counting(void *at) {
    for (long round = 0; round < rounds; round++) count_at((long)at);
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    rounds = atol(words[1]);
    int shared = strcmp(words[2], "shared") == 0;
    pthread_t threads[THREADS];
    for (long at = 0; at < THREADS; at++) pthread_mutex_init(&counters[at].lock, NULL);
    for (long at = 0; at < THREADS; at++)
        if (pthread_create(&threads[at], NULL, counting, (void *)(shared ? 0 : at)) != 0) return 1;
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    return 0;
}
