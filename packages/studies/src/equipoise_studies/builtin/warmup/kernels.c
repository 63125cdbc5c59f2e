/* Three classic kernels, compiled: `kernels KERNEL ITERATIONS REPEAT`.
 *
 * Each iteration runs the kernel REPEAT times. The kernels are written for this study, in the
 * same way in every language of this folder. `equipoise run compilers` compiles this file, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "equipoise_metrics.h"

enum { BODIES = 5, STEPS = 500, LENGTH = 7, ORDER = 30 };

#define DAYS 365.24
#define PI 3.14159265358979323846
#define MASS (4 * PI * PI)

/* The sun and four planets: position, speed per day, mass in suns. */
static const double START[BODIES][7] = {
    {0, 0, 0, 0, 0, 0, 1},
    {4.8414314424647209, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694,
     0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609},
    {8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411021,
     0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812},
    {12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618,
     0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298},
    {15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322,
     0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451},
};

static void advance(double b[BODIES][7]) {
    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++) {
            double d[3], squared = 0.0;
            for (int axis = 0; axis < 3; axis++) {
                d[axis] = b[i][axis] - b[j][axis];
                squared += d[axis] * d[axis];
            }
            double pull = 0.01 / (squared * sqrt(squared));
            for (int axis = 0; axis < 3; axis++) {
                b[i][3 + axis] -= d[axis] * b[j][6] * pull;
                b[j][3 + axis] += d[axis] * b[i][6] * pull;
            }
        }
    for (int i = 0; i < BODIES; i++)
        for (int axis = 0; axis < 3; axis++)
            b[i][axis] += 0.01 * b[i][3 + axis];
}

static double nbody(void) {
    double b[BODIES][7], energy = 0.0;
    memcpy(b, START, sizeof b);
    for (int i = 0; i < BODIES; i++) {
        b[i][6] *= MASS;
        for (int axis = 3; axis < 6; axis++)
            b[i][axis] *= DAYS;
    }
    for (int axis = 3; axis < 6; axis++)
        for (int i = 1; i < BODIES; i++)
            b[0][axis] -= b[i][axis] * b[i][6] / MASS;
    for (int step = 0; step < STEPS; step++)
        advance(b);
    for (int i = 0; i < BODIES; i++) {
        energy += 0.5 * b[i][6] * (b[i][3] * b[i][3] + b[i][4] * b[i][4] + b[i][5] * b[i][5]);
        for (int j = i + 1; j < BODIES; j++) {
            double x = b[i][0] - b[j][0], y = b[i][1] - b[j][1], z = b[i][2] - b[j][2];
            energy -= b[i][6] * b[j][6] / sqrt(x * x + y * y + z * z);
        }
    }
    return energy;
}

static int flips_of(const int *order) {
    int flipped[LENGTH], flips = 0;
    memcpy(flipped, order, sizeof flipped);
    while (flipped[0] != 0) {
        for (int low = 0, high = flipped[0]; low < high; low++, high--) {
            int swapped = flipped[low];
            flipped[low] = flipped[high];
            flipped[high] = swapped;
        }
        flips++;
    }
    return flips;
}

static double fannkuch(void) {
    int order[LENGTH], count[LENGTH], max_flips = 0, total = 0, number = 0;
    int position = LENGTH;
    for (int i = 0; i < LENGTH; i++)
        order[i] = i;
    for (;;) {
        for (; position != 1; position--)
            count[position - 1] = position;
        int flips = flips_of(order);
        max_flips = flips > max_flips ? flips : max_flips;
        total += number % 2 ? -flips : flips;
        for (;;) {
            if (position == LENGTH)
                return 1000.0 * total + max_flips;
            int first = order[0];
            for (int i = 0; i < position; i++)
                order[i] = order[i + 1];
            order[position] = first;
            if (--count[position] > 0)
                break;
            position++;
        }
        number++;
    }
}

/* An element of the matrix of `spectral`. */
static double cell(int i, int j) { return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1); }

/* The result is the transposed matrix times the matrix times the vector. */
static void multiply(const double *vector, double *result) {
    double forward[ORDER];
    for (int i = 0; i < ORDER; i++) {
        forward[i] = 0.0;
        for (int j = 0; j < ORDER; j++)
            forward[i] += cell(i, j) * vector[j];
    }
    for (int i = 0; i < ORDER; i++) {
        result[i] = 0.0;
        for (int j = 0; j < ORDER; j++)
            result[i] += cell(j, i) * forward[j];
    }
}

static double spectral(void) {
    double vector[ORDER], product[ORDER], numerator = 0.0, denominator = 0.0;
    for (int i = 0; i < ORDER; i++)
        vector[i] = 1.0;
    for (int round = 0; round < 10; round++) {
        multiply(vector, product);
        multiply(product, vector);
    }
    for (int i = 0; i < ORDER; i++) {
        numerator += vector[i] * product[i];
        denominator += product[i] * product[i];
    }
    return sqrt(numerator / denominator);
}

typedef double (*Kernel)(void);

static Kernel kernel_named(const char *name) {
    return strcmp(name, "nbody") == 0      ? nbody
           : strcmp(name, "fannkuch") == 0 ? fannkuch
           : strcmp(name, "spectral") == 0 ? spectral
                                           : NULL;
}

int main(int argument_count, char **arguments) {
    /* The compiler must read this pointer again for each call, so that it cannot fold calls. */
    volatile Kernel kernel = argument_count == 4 ? kernel_named(arguments[1]) : NULL;
    if (kernel == NULL) {
        fprintf(stderr, "usage: kernels nbody|fannkuch|spectral ITERATIONS REPEAT\n");
        return 2;
    }
    int iterations = atoi(arguments[2]), repeat = atoi(arguments[3]);
    double *seconds = calloc((size_t)(iterations > 0 ? iterations : 1), sizeof *seconds);
    if (seconds == NULL || iterations < 1)
        return 2;
    equipoise_report("answer", kernel());
    for (int i = 0; i < iterations; i++) {
        double started = equipoise_seconds();
        for (int j = 0; j < repeat; j++)
            kernel();
        seconds[i] = equipoise_seconds() - started;
    }
    equipoise_report_timed_iterations("iteration_s", seconds, (size_t)iterations);
    free(seconds);
    return 0;
}
