"""Three classic kernels for CPython: ``kernels.py KERNEL ITERATIONS REPEAT``.

Each iteration runs the kernel REPEAT times. The kernels are written for this study, in the same way
in every language of this folder.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial

from equipoise.helpers.equipoise_metrics import report, timed_iterations

STEPS, LENGTH, ORDER = 500, 7, 30
"""Steps of ``nbody``; elements that ``fannkuch`` permutes; rows of the matrix of ``spectral``."""
DAYS, MASS = 365.24, 4 * math.pi * math.pi
"""Days of a year; mass of the sun if the gravitational constant is 1."""
BODIES = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    (4.8414314424647209, -1.16032004402742839, -0.103622044471123109)
    + (0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023)
    + (0.000954791938424326609,),
    (8.34336671824457987, 4.12479856412430479, -0.403523417114321381)
    + (-0.00276742510726411021, 0.00499852801234917238, 0.0000230417297573763929)
    + (0.000285885980666130812,),
    (12.8943695621391310, -15.1111514016986312, -0.223307578892655734)
    + (0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556)
    + (0.0000436624404335156298,),
    (15.3796971148509165, -25.9193146099879641, 0.179258772950371181)
    + (0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870)
    + (0.0000515138902046611451,),
)
"""The sun and four planets: position, speed per day, mass in suns."""


def nbody() -> float:
    """Return the energy of the sun and four planets after `STEPS` steps of 0.01 years."""
    bodies = [
        [*body[:3], *(speed * DAYS for speed in body[3:6]), body[6] * MASS] for body in BODIES
    ]
    for axis in range(3):
        bodies[0][3 + axis] = -sum(body[3 + axis] * body[6] for body in bodies) / MASS
    for _ in range(STEPS):
        for i, body in enumerate(bodies):
            for other in bodies[i + 1 :]:
                dx, dy, dz = body[0] - other[0], body[1] - other[1], body[2] - other[2]
                squared = dx * dx + dy * dy + dz * dz
                pull = 0.01 / (squared * math.sqrt(squared))
                for axis, distance in ((3, dx), (4, dy), (5, dz)):
                    body[axis] -= distance * other[6] * pull
                    other[axis] += distance * body[6] * pull
        for body in bodies:
            for axis in range(3):
                body[axis] += 0.01 * body[3 + axis]
    energy = 0.0
    for i, body in enumerate(bodies):
        energy += 0.5 * body[6] * (body[3] ** 2 + body[4] ** 2 + body[5] ** 2)
        for other in bodies[i + 1 :]:
            energy -= body[6] * other[6] / math.dist(body[:3], other[:3])
    return energy


def fannkuch() -> float:
    """Return 1000 times the alternating sum of flips over all permutations, plus the most flips."""
    order = list(range(LENGTH))
    count = [0] * LENGTH
    max_flips = total = number = 0
    position = LENGTH
    while True:
        while position != 1:
            count[position - 1] = position
            position -= 1
        flipped = order[:]
        flips = 0
        while flipped[0] != 0:
            first = flipped[0]
            flipped[: first + 1] = flipped[first::-1]
            flips += 1
        max_flips = max(max_flips, flips)
        total += -flips if number % 2 else flips
        while True:
            if position == LENGTH:
                return 1000.0 * total + max_flips
            first = order[0]
            order[:position] = order[1 : position + 1]
            order[position] = first
            count[position] -= 1
            if count[position] > 0:
                break
            position += 1
        number += 1


def spectral() -> float:
    """Return the largest singular value of the matrix 1 / ((i + j)(i + j + 1) / 2 + i + 1)."""
    vector = [1.0] * ORDER
    for _ in range(10):
        product = _multiply(vector)
        vector = _multiply(product)
    numerator = sum(u * v for u, v in zip(vector, product, strict=True))
    denominator = sum(v * v for v in product)
    return math.sqrt(numerator / denominator)


def _multiply(vector: list[float]) -> list[float]:
    """Return the product of the transposed matrix, the matrix and a vector."""
    forward = [sum(_cell(i, j) * vector[j] for j in range(ORDER)) for i in range(ORDER)]
    return [sum(_cell(j, i) * forward[j] for j in range(ORDER)) for i in range(ORDER)]


def _cell(i: int, j: int) -> float:
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


KERNELS: dict[str, Callable[[], float]] = {
    "nbody": nbody,
    "fannkuch": fannkuch,
    "spectral": spectral,
}


def run_iteration(kernel: Callable[[], float], times: int) -> None:
    """Run a kernel several times, as one iteration."""
    for _ in range(times):
        kernel()


def main(name: str, iterations: int, repeat: int) -> None:
    """Run a kernel and report its times."""
    report("answer", KERNELS[name]())
    timed_iterations("iteration_s", partial(run_iteration, KERNELS[name], repeat), iterations)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
