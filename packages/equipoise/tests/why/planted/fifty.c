/* Fifty functions with the same work; the one that is named does more of it. */
#include <stdlib.h>

static volatile double kept;

#define ONE(name)                                                                                  \
    __attribute__((noinline)) static void function_##name(long steps) {                            \
        double value = 1.0;                                                                        \
        for (long step = 0; step < steps; step++) value = value * 1.0000001 + 1e-9;                \
        kept = value;                                                                              \
    }
#define TEN(tens)                                                                                  \
    ONE(tens##0) ONE(tens##1) ONE(tens##2) ONE(tens##3) ONE(tens##4)                               \
    ONE(tens##5) ONE(tens##6) ONE(tens##7) ONE(tens##8) ONE(tens##9)
TEN(0) TEN(1) TEN(2) TEN(3) TEN(4)

#define NAMES(tens)                                                                                \
    function_##tens##0, function_##tens##1, function_##tens##2, function_##tens##3,                \
        function_##tens##4, function_##tens##5, function_##tens##6, function_##tens##7,            \
        function_##tens##8, function_##tens##9
static void (*const functions[])(long) = {NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4)};

int main(int count, char **words) {
    if (count < 3) return 2;
    int slow = atoi(words[1]);
    long times = atol(words[2]);
    for (int round = 0; round < 20; round++)
        for (int at = 0; at < 50; at++) functions[at](at == slow ? 20000 * times : 20000);
    return 0;
}
