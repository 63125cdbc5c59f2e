"""One match of so many rows in a process of its own: seconds and peak memory in bytes.

python -m benchmarks.matching.million ROWS THREADS
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.matching.data import normal
from equipoise_matching.matching.match import match


def main() -> None:
    """Print both; the memory is that of the process with its data."""
    rows, threads = (int(word) for word in sys.argv[1:])
    sample = normal(rows)
    started = time.perf_counter()
    found = match(
        sample.outcome,
        sample.treatment,
        sample.covariates,
        variance_neighbors=0,
        threads=threads,
    )
    seconds = time.perf_counter() - started
    assert found.se is not None, "with errors"
    # Not ru_maxrss: that of a child starts with what its parent had.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(seconds, 1024 * int(status["VmHWM"].split()[0]))


if __name__ == "__main__":
    main()
