/* Benchmarks for `equipoise gate --functions`, in C and C++. Copy this file into your project.
 *
 *     #include "equipoise_functions.h"
 *
 *     EQUIPOISE_SETUP { fill(numbers); }                      // optional, runs once and untimed
 *     EQUIPOISE_BENCHMARK(sum) { return sum(numbers, 1000); } // each call is one iteration
 *
 * Return a value that depends on the work, so that the compiler keeps the work. Build a shared
 * library: cc -O2 -fPIC -shared -o libbenchmarks.so benchmarks.c
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef EQUIPOISE_FUNCTIONS_H
#define EQUIPOISE_FUNCTIONS_H

#include <stdint.h>

#ifdef __cplusplus
#define EQUIPOISE_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EQUIPOISE_EXPORT __attribute__((visibility("default")))
#endif

/* Defines what runs once in each process, before the first call. */
#define EQUIPOISE_SETUP                                                   \
    EQUIPOISE_EXPORT void equipoise_setup(void);                          \
    EQUIPOISE_EXPORT void equipoise_setup(void)

/* Defines one call of a benchmark. Its result is a number that depends on the work. */
#define EQUIPOISE_BENCHMARK(name)                                         \
    static inline uint64_t equipoise_call_##name(void);                   \
    EQUIPOISE_EXPORT uint64_t equipoise_bench_##name(uint64_t iterations); \
    EQUIPOISE_EXPORT uint64_t equipoise_bench_##name(uint64_t iterations) \
    {                                                                     \
        uint64_t sum = 0;                                                 \
        for (uint64_t index = 0; index < iterations; index++) {           \
            sum += equipoise_call_##name();                               \
            __asm__ volatile("" : "+r"(sum) : : "memory");                \
        }                                                                 \
        return sum;                                                       \
    }                                                                     \
    static inline uint64_t equipoise_call_##name(void)

/* Hides where a variable's value comes from, so that the compiler cannot compute with it. */
#define EQUIPOISE_HIDE(variable) __asm__ volatile("" : "+r"(variable) : : "memory")

#endif
