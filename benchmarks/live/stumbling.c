/* Takes three times as long in one run of ten, by chance: stumbling WORK. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    uint64_t chance;
    if (getrandom(&chance, sizeof chance, 0) != sizeof chance)
        return 3;
    unsigned long steps = strtoul(argv[1], NULL, 10);
    if (chance % 10 == 0)
        steps *= 3;
    volatile unsigned long state = 88172645463325252UL;
    for (unsigned long step = 0; step < steps; step++) {
        unsigned long next = state;
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        state = next;
    }
    return state == 0;
}
