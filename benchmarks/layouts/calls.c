/* Many small functions, of which a loop calls every fourth in a fixed order: how fast that goes
   depends on where the linker puts them (the sets of the instruction cache). It reports nothing and
   has no randomness of its own. */
#include <stdint.h>
#include <stdio.h>

enum { ROUNDS = 60000, FUNCTIONS = 400, STRIDE = 4 };

typedef uint64_t (*function)(uint64_t);

#define STEP(y, k)                                                                                 \
    y += (k) * 0x9e3779b9u;                                                                        \
    y ^= y << 7;
/* Four chains that need not wait for one another, so that fetching the code is what takes time. */
#define FUNCTION(n)                                                                                \
    __attribute__((noinline)) static uint64_t function_##n(uint64_t x) {                           \
        uint64_t a = x, b = x >> 3, c = x >> 5, d = x >> 7;                                        \
        STEP(a, n) STEP(b, n + 1) STEP(c, n + 2) STEP(d, n + 3)                                    \
        STEP(a, n + 5) STEP(b, n + 6) STEP(c, n + 7) STEP(d, n + 8)                                \
        return a ^ b ^ c ^ d;                                                                      \
    }
#define TEN(one, n)                                                                                \
    one(n##0) one(n##1) one(n##2) one(n##3) one(n##4)                                              \
    one(n##5) one(n##6) one(n##7) one(n##8) one(n##9)
#define HUNDRED(one, n)                                                                            \
    TEN(one, n##0) TEN(one, n##1) TEN(one, n##2) TEN(one, n##3) TEN(one, n##4)                     \
    TEN(one, n##5) TEN(one, n##6) TEN(one, n##7) TEN(one, n##8) TEN(one, n##9)
#define ALL(one) HUNDRED(one, 1) HUNDRED(one, 2) HUNDRED(one, 3) HUNDRED(one, 4)

ALL(FUNCTION)

#define NAME(n) function_##n,
static const function all[FUNCTIONS] = {ALL(NAME)};

int main(void) {
    uint64_t x = 1;
    for (int round = 0; round < ROUNDS; round++)
        for (int place = 0; place < FUNCTIONS; place += STRIDE)
            x = all[place](x);
    return printf("%016llx\n", (unsigned long long)x) < 0;
}
