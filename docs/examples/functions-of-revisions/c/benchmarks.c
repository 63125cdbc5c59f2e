#include "equipoise_functions.h"

static uint32_t numbers[1000];

/* The code under test; usually it is in files of its own. */
static uint64_t checksum(const uint32_t *values, int count)
{
    uint64_t sum = 0;
    for (int index = 0; index < count; index++)
        sum = (sum ^ values[index]) * 0x100000001B3u;
    return sum;
}

static uint64_t largest(const uint32_t *values, int count)
{
    uint32_t largest = 0;
    for (int index = 0; index < count; index++)
        if (values[index] > largest)
            largest = values[index];
    return largest;
}

EQUIPOISE_SETUP
{
    for (int index = 0; index < 1000; index++)
        numbers[index] = index * 2654435761u;
}

EQUIPOISE_BENCHMARK(checksum)
{
    const uint32_t *values = numbers;
    EQUIPOISE_HIDE(values);
    return checksum(values, 1000);
}

EQUIPOISE_BENCHMARK(largest)
{
    const uint32_t *values = numbers;
    EQUIPOISE_HIDE(values);
    return largest(values, 1000);
}
