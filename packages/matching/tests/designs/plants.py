"""Distances between nuclear plants: Hansen and Klopfer (2006, JCGS 15(3), table 1).

Seven plants built on an existing site are the rows, nineteen others the columns. A distance adds
the differences of the ranks of date and capacity.
"""

import numpy as np

PLANTS = np.array(
    [
        [28, 0, 3, 22, 14, 30, 17, 28, 26, 28, 20, 22, 23, 26, 21, 18, 34, 40, 28],
        [24, 3, 0, 22, 10, 27, 14, 26, 24, 24, 16, 19, 20, 23, 18, 16, 31, 37, 25],
        [10, 18, 14, 18, 4, 12, 6, 11, 9, 10, 14, 12, 6, 14, 22, 10, 16, 22, 28],
        [7, 28, 24, 8, 14, 2, 10, 6, 12, 0, 24, 22, 4, 24, 32, 20, 18, 16, 38],
        [17, 20, 16, 32, 18, 26, 20, 18, 12, 24, 0, 2, 20, 6, 8, 4, 14, 20, 14],
        [20, 31, 28, 35, 20, 29, 22, 20, 14, 26, 12, 9, 22, 5, 15, 12, 9, 11, 12],
        [14, 32, 29, 30, 18, 24, 17, 16, 10, 22, 12, 10, 17, 6, 16, 14, 4, 8, 17],
    ],
    dtype=np.float64,
)
