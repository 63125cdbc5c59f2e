/* Four threads keep a mutex while they wait for a device: the same one, or each its own. */
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 25 };

pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own[THREADS];

static void *visitor(void *lock) {
    struct timespec device = {0, 1000000};
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(lock);
        nanosleep(&device, NULL);
        pthread_mutex_unlock(lock);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 2) return 2;
    int shared = strcmp(words[1], "shared") == 0;
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) {
        pthread_mutex_init(&own[at], NULL);
        if (pthread_create(&threads[at], NULL, visitor, shared ? &gate : &own[at]) != 0) return 1;
    }
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    return 0;
}
