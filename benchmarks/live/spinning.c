/* Does WORK steps of arithmetic that nothing can shorten: spinning WORK. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    unsigned long steps = strtoul(argv[1], NULL, 10);
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
