/* One kind of work, N times: work KIND N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned long sink;

static void integers(long count) {
    unsigned long state = 1;
    for (long index = 0; index < count; index++) state = state * 6364136223846793005UL + 1;
    sink = state;
}

static void floats(long count) {
    double state = 1.0;
    for (long index = 0; index < count; index++) state = state * 0.999999 + 1.0 / (1.0 + state);
    sink = (unsigned long)state;
}

static void branches(long count) {
    unsigned long state = 1, odd = 0;
    for (long index = 0; index < count; index++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        if (state >> 63) odd += state & 3;
        else odd ^= index;
    }
    sink = odd;
}

static void chase(long count) {
    enum { SLOTS = 1 << 15 };
    static unsigned next[SLOTS];
    for (unsigned slot = 0; slot < SLOTS; slot++) next[slot] = (slot * 20021u + 12345u) % SLOTS;
    unsigned at = 0;
    for (long index = 0; index < count; index++) at = next[at];
    sink = at;
}

static void copies(long count) {
    const size_t size = 8 << 20;
    char *from = malloc(size), *to = malloc(size);
    memset(from, 1, size);
    for (long index = 0; index < count; index++) {
        memcpy(to, from, size);
        from[index % size] = to[(index * 7) % size];
    }
    sink = (unsigned long)from[0];
}

static void allocations(long count) {
    void *kept[64] = {0};
    for (long index = 0; index < count; index++) {
        free(kept[index & 63]);
        kept[index & 63] = malloc(16 + (index * 37) % 2000);
        *(char *)kept[index & 63] = 1;
    }
    sink = (unsigned long)kept[1];
}

static void calls(long count) {
    for (long index = 0; index < count; index++) sink += (unsigned long)getppid();
}

static void files(long count) {
    char content[4096] = {1};
    FILE *file = tmpfile();
    for (long index = 0; index < count; index++) {
        rewind(file);
        fwrite(content, 1, sizeof content, file);
        fflush(file);
        rewind(file);
        sink += fread(content, 1, sizeof content, file);
    }
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*run)(long); } KINDS[] = {
        {"integers", integers}, {"floats", floats}, {"branches", branches}, {"chase", chase},
        {"copies", copies}, {"allocations", allocations}, {"calls", calls}, {"files", files},
    };
    if (count != 3) return 2;
    for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++)
        if (strcmp(KINDS[kind].name, arguments[1]) == 0) {
            KINDS[kind].run(atol(arguments[2]));
            return 0;
        }
    return 2;
}
