/* Preloaded into a server: each allocation of PLANTED_BYTES bytes first sleeps 200 us. */
#include <stdlib.h>
#include <time.h>

extern void *__libc_malloc(size_t);
static size_t planted_bytes;

__attribute__((constructor)) static void read_size(void) {
    const char *given = getenv("PLANTED_BYTES");
    planted_bytes = given ? strtoul(given, NULL, 10) : 0;
}

void *malloc(size_t bytes) {
    if (bytes == planted_bytes && bytes != 0) {
        const struct timespec pause = {0, 200000};
        nanosleep(&pause, NULL);
    }
    return __libc_malloc(bytes);
}
