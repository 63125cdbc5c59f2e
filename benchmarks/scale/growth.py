"""One cost at several sizes, and the exponent by which it grows."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

REPEATS = 3


class Growth(Struct, frozen=True):
    """A cost at sizes that grow by a constant factor."""

    cost: str
    """What was measured, with its unit."""
    size: str
    """What grows."""
    sizes: tuple[int, ...]
    costs: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Slope of the least-squares line through the logarithms."""
        return _slope(self.sizes, self.costs)

    @property
    def last_exponent(self) -> float:
        """The same between the two largest sizes: where a fixed cost no longer counts."""
        return _slope(self.sizes[-2:], self.costs[-2:])

    def at(self, size: float) -> float:
        """Return the cost at a larger size, by the last exponent (1 at the least)."""
        return self.costs[-1] * math.pow(size / self.sizes[-1], max(1.0, self.last_exponent))


def _slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    logarithms = [math.log(one) for one in costs]
    return float(np.polyfit([math.log(one) for one in sizes], logarithms, 1)[0])


def seconds_of(work: Callable[[], object]) -> float:
    """Return the median of three of the CPU seconds that this process takes for some work."""
    times = []
    for _ in range(REPEATS):
        gc.collect()
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


def significant(number: float) -> str:
    """Return a number with three significant digits and thousands apart."""
    if number >= 100:
        return f"{round(number, 2 - math.floor(math.log10(number))):,.0f}"
    return f"{number:.3g}"


def show(growths: Sequence[Growth]) -> None:
    """Print costs and exponents as a Markdown table."""
    print("| cost | by | sizes | costs | exponent | between the last two |")
    print("| --- | --- | --- | --- | --- | --- |")
    for one in growths:
        sizes = " · ".join(f"{size:,}" for size in one.sizes)
        costs = " · ".join(significant(cost) for cost in one.costs)
        exponents = f"{one.exponent:.2f} | {one.last_exponent:.2f}"
        print(f"| {one.cost} | {one.size} | {sizes} | {costs} | {exponents} |", flush=True)
    print()
