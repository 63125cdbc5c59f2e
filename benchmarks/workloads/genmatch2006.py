"""The three algorithms of `genmatch2006` under four allocators: processor time and faults.

    python benchmarks/workloads/genmatch2006.py [ROWS ...]

Processor time, not time by the clock, and the least of some runs, so that a machine with other
work on it gives about the same table; `equipoise run sekhon2006` is the experiment itself.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import equipoise_studies
from equipoise_matching.matching.datasets import lalonde

NATIVE = Path(equipoise_studies.__file__).parent / "_bin"
TUNABLES = {
    "glibc": "",
    "glibc_15k": "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0",
    "glibc_never": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=9223372036854775807",
}
ALLOCATORS = {name: {"GLIBC_TUNABLES": value} for name, value in TUNABLES.items()} | {
    "dlmalloc": {"LD_PRELOAD": str(NATIVE / "libequipoise_dlmalloc.so")}
}
CANDIDATES = 4
RUNS = 3


def measure(algorithm: str, rows: int, data: Path, allocator: str) -> tuple[float, float]:
    """Processor seconds and page faults of one candidate."""
    arguments = ["--algorithm", algorithm, "--rows", str(rows), "--data", str(data)]
    environment = {k: v for k, v in os.environ.items() if k != "EQUIPOISE_METRICS"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [NATIVE / "equipoise-workload", "genmatch2006", *arguments, "--repeat", "1"],
        env=environment | {"OPENBLAS_NUM_THREADS": "1"} | ALLOCATORS[allocator],
        stdout=subprocess.PIPE,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = map(json.loads, done.stdout.splitlines())
    faults = next(line["value"] for line in lines if line.get("metric") == "faults_per_search")
    return seconds / CANDIDATES, faults / CANDIDATES


def main() -> None:
    """Print a line for each condition."""
    sizes = [int(word) for word in sys.argv[1:]] or [445, 890]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "lalonde.csv"
        lalonde().to_csv(data, index=False)
        for rows in sizes:
            for algorithm in ("scythe", "blas", "fast"):
                # The allocators in turn, so that a slow spell of the machine meets all of them.
                runs = [
                    {name: measure(algorithm, rows, data, name) for name in ALLOCATORS}
                    for _ in range(RUNS)
                ]
                best = {name: min(run[name] for run in runs) for name in ALLOCATORS}
                for name, (seconds, faults) in best.items():
                    ratio = seconds / best["dlmalloc"][0]
                    print(
                        f"{rows:5} {algorithm:7} {name:12} {seconds * 1e3:9.2f} ms a candidate, "
                        f"{ratio:5.2f} of dlmalloc, {faults:9.0f} faults"
                    )


if __name__ == "__main__":
    main()
