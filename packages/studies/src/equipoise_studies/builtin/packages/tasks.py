"""Run a task in NumPy three times, and write the mean time to ``EQUIPOISE_METRICS``.

Arguments: the task, an option for the size as in the built-in workload, and the size.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

REPEAT = 3
"""Number of runs of the task."""


def task_of(task: str, size: int) -> Callable[[], Any]:
    """Return the task with its data."""
    draws = np.random.default_rng(1)
    if task == "sort":
        numbers = draws.random(size)
        return lambda: np.sort(numbers)
    matrix = draws.random((size, size))
    if task == "dgemm":
        right = draws.random((size, size))
        return lambda: matrix @ right
    if task == "invert":
        invertible = matrix + size * np.eye(size)
        return lambda: np.linalg.inv(invertible)
    raise SystemExit(f"there is no task {task}; use sort, dgemm or invert")


def main(task: str, size: int, metrics: Path) -> None:
    """Run the task and report its times."""
    run = task_of(task, size)
    seconds: list[float] = []
    for _ in range(REPEAT):
        started = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - started)
        assert len(answer)
    samples: list[dict[str, Any]] = [
        {"metric": "work_s", "value": sum(seconds) / REPEAT, "unit": "s"},
        *(
            {"metric": "work_s", "value": value, "iteration": number, "unit": "s"}
            for number, value in enumerate(seconds, start=1)
        ),
    ]
    with metrics.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(sample) + "\n" for sample in samples)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[-1]), Path(os.environ.get("EQUIPOISE_METRICS", "/dev/stdout")))
