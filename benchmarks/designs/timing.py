"""The version of pymatchit that the benchmarks run, and the time of a call of ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from equipoise_matching.designs.design import Design

PYMATCHIT = "pymatchit-causal==0.6.1"


@dataclass(frozen=True, slots=True)
class TimedDesign:
    """A design, and the median seconds and CPU seconds of the calls that made it."""

    design: Design
    seconds: float
    cpu_seconds: float


def timed_design(make: Callable[[], Design], rounds: int) -> TimedDesign:
    """Time a call; the first round also imports modules, and is not counted."""
    seconds, cpu_seconds = [], []
    for _ in range(rounds + 1):
        started, cpu_started = time.perf_counter(), time.process_time()
        design = make()
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
    return TimedDesign(design, statistics.median(seconds[1:]), statistics.median(cpu_seconds[1:]))
