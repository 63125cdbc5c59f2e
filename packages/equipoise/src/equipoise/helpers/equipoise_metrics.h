/* Report a program's own metrics to Equipoise. This header needs only the C library; copy it.
 *
 *     equipoise_report("latency_s", 0.0012);
 *     equipoise_report_with_resolution("ticks_s", 0.012, 0.001);  // a clock with steps of 1 ms
 *     equipoise_report_iterations("request_s", seconds, 200);   // all values and their mean
 *     equipoise_report_timed_iterations("request_s", seconds, 200);  // timed by equipoise_seconds
 *
 * Equipoise sets EQUIPOISE_METRICS. Without this variable nothing is reported. */
#ifndef EQUIPOISE_METRICS_H
#define EQUIPOISE_METRICS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline FILE *equipoise_open_file(void) {
    const char *path = getenv("EQUIPOISE_METRICS");
    return path != NULL && *path != '\0' ? fopen(path, "a") : NULL;
}

/* Reports a metric of the trial, of which less is better. Its name is a plain word. */
static inline void equipoise_report(const char *metric, double value) {
    FILE *file = equipoise_open_file();
    if (file == NULL)
        return;
    fprintf(file, "{\"metric\": \"%s\", \"value\": %.17g}\n", metric, value);
    fclose(file);
}

/* Reports a metric with its resolution: the smallest step of the value, above 0, in its unit. */
static inline void equipoise_report_with_resolution(const char *metric, double value,
                                                    double resolution) {
    FILE *file = equipoise_open_file();
    if (file == NULL)
        return;
    fprintf(file, "{\"metric\": \"%s\", \"value\": %.17g, \"resolution\": %.17g}\n", metric, value,
            resolution);
    fclose(file);
}

/* Writes one line. Resolution 0 is unknown; iteration 0 is the whole trial. */
static inline void equipoise_line(FILE *file, const char *metric, double value, size_t iteration,
                                  double resolution) {
    fprintf(file, "{\"metric\": \"%s\", \"value\": %.17g", metric, value);
    if (iteration > 0)
        fprintf(file, ", \"iteration\": %zu", iteration);
    if (resolution > 0)
        fprintf(file, ", \"resolution\": %.17g", resolution);
    fputs("}\n", file);
}

/* Reports the values of iterations, and their mean as the metric of the trial. */
static inline void equipoise_report_iterations_with_resolution(const char *metric,
                                                               const double *values, size_t count,
                                                               double resolution) {
    FILE *file = equipoise_open_file();
    double sum = 0.0;
    if (file == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        equipoise_line(file, metric, values[i], i + 1, resolution);
    }
    if (count > 0)
        equipoise_line(file, metric, sum / (double)count, 0, resolution / (double)count);
    fclose(file);
}

/* Reports values of iterations with an unknown resolution. */
static inline void equipoise_report_iterations(const char *metric, const double *values,
                                               size_t count) {
    equipoise_report_iterations_with_resolution(metric, values, count, 0.0);
}

/* Returns the seconds of a clock that never goes back. */
static inline double equipoise_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns the smallest step of equipoise_seconds. */
static inline double equipoise_seconds_resolution(void) {
    struct timespec step;
    clock_getres(CLOCK_MONOTONIC, &step);
    return (double)step.tv_sec + 1e-9 * (double)step.tv_nsec;
}

/* Reports the seconds of iterations, timed by equipoise_seconds. */
static inline void equipoise_report_timed_iterations(const char *metric, const double *seconds,
                                                     size_t count) {
    equipoise_report_iterations_with_resolution(metric, seconds, count,
                                                equipoise_seconds_resolution());
}

#endif
