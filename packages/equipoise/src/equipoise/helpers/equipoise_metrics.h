/* Report a program's own metrics to Equipoise. One header, the C library alone: copy it.
 *
 *     equipoise_report("latency_s", 0.0012);
 *     equipoise_report_with_resolution("ticks_s", 0.012, 0.001);  // its clock ticks at 1 kHz
 *     equipoise_report_iterations("request_s", seconds, 200);   // each, and their mean
 *     equipoise_report_timed_iterations("request_s", seconds, 200);  // by equipoise_seconds
 *
 * Outside of Equipoise, where EQUIPOISE_METRICS is not set, reports go nowhere. */
#ifndef EQUIPOISE_METRICS_H
#define EQUIPOISE_METRICS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline FILE *equipoise_door(void) {
    const char *path = getenv("EQUIPOISE_METRICS");
    return path != NULL && *path != '\0' ? fopen(path, "a") : NULL;
}

/* A metric of the trial, of which less is better. The name is a plain word. */
static inline void equipoise_report(const char *metric, double value) {
    FILE *door = equipoise_door();
    if (door == NULL)
        return;
    fprintf(door, "{\"metric\": \"%s\", \"value\": %.17g}\n", metric, value);
    fclose(door);
}

/* As equipoise_report, with the smallest step that the value can make, in its unit, above 0. */
static inline void equipoise_report_with_resolution(const char *metric, double value,
                                                    double resolution) {
    FILE *door = equipoise_door();
    if (door == NULL)
        return;
    fprintf(door, "{\"metric\": \"%s\", \"value\": %.17g, \"resolution\": %.17g}\n", metric, value,
            resolution);
    fclose(door);
}

/* One line; a resolution of 0 is unknown, an iteration of 0 is the trial. */
static inline void equipoise_line(FILE *door, const char *metric, double value, size_t iteration,
                                  double resolution) {
    fprintf(door, "{\"metric\": \"%s\", \"value\": %.17g", metric, value);
    if (iteration > 0)
        fprintf(door, ", \"iteration\": %zu", iteration);
    if (resolution > 0)
        fprintf(door, ", \"resolution\": %.17g", resolution);
    fputs("}\n", door);
}

/* The values of so many iterations, in order, and their mean as the metric of the trial; with the
 * smallest step that a value can make, in its unit, above 0. */
static inline void equipoise_report_iterations_with_resolution(const char *metric,
                                                               const double *values, size_t count,
                                                               double resolution) {
    FILE *door = equipoise_door();
    double sum = 0.0;
    if (door == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        equipoise_line(door, metric, values[i], i + 1, resolution);
    }
    if (count > 0)
        equipoise_line(door, metric, sum / (double)count, 0, resolution / (double)count);
    fclose(door);
}

/* As above, if the step of the values is unknown. */
static inline void equipoise_report_iterations(const char *metric, const double *values,
                                               size_t count) {
    equipoise_report_iterations_with_resolution(metric, values, count, 0.0);
}

/* Seconds of a clock that never goes back. */
static inline double equipoise_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The smallest step of equipoise_seconds. */
static inline double equipoise_seconds_resolution(void) {
    struct timespec step;
    clock_getres(CLOCK_MONOTONIC, &step);
    return (double)step.tv_sec + 1e-9 * (double)step.tv_nsec;
}

/* Iterations that were timed by equipoise_seconds. */
static inline void equipoise_report_timed_iterations(const char *metric, const double *seconds,
                                                     size_t count) {
    equipoise_report_iterations_with_resolution(metric, seconds, count,
                                                equipoise_seconds_resolution());
}

#endif
