"""The launcher beside a bare C loop, in one interleaved, randomised run.

Both start the same static ``int main(void) { return 0; }``, hot and after pauses, in the
order of a seeded shuffle. Prints the medians and their ratio, the peak memory that the
launcher reports for the program, and the time between two trials as seen from Python; exits
with 1 if a figure misses its bound.

    python benchmarks/launcher/run.py [--launcher PATH] [--rounds N] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from equipoise.measure.launcher import Launcher, Report, Request

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "target" / "release" / "equipoise-launcher"
TRUE = "int main(void) { return 0; }\n"
ENVIRONMENT = {"PADDING": "x" * 4000}
"""About the size of an ordinary one."""
PAUSES_MS = (0.0, 0.5, 3.0)

RATIO_BOUND = 1.1
MEMORY_BOUND_BYTES = 2_500_000
GAP_BOUND_MS = 2.0

Start = Callable[[], float]
"""Starts the program once; microseconds of wall time."""


class BareLoop:
    """The C program, driven over a pipe as the launcher is."""

    def __init__(self, program: Path, static_true: Path) -> None:
        self._process = subprocess.Popen(
            [program, static_true],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=ENVIRONMENT,
        )

    def start(self) -> float:
        """Start the program once; microseconds of wall time."""
        os.write(_pipe(self._process.stdin).fileno(), b".")
        return int(_pipe(self._process.stdout).readline()) / 1e3

    def close(self) -> None:
        """End it."""
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()


def compile_c(source: Path, program: Path, *flags: str) -> Path:
    """Compile one C file."""
    subprocess.run(["cc", "-O2", *flags, "-o", program, source], check=True)
    return program


def interleave(starts: dict[str, Start], rounds: int, seed: int) -> dict[tuple[str, float], float]:
    """Median microseconds of each way to start after each pause, in shuffled order.

    Before each measured start the same way is taken once more, then comes the pause: "hot"
    is a start right after another one.
    """
    coin = random.Random(seed)
    runs = [(name, pause_ms) for name in starts for pause_ms in PAUSES_MS]
    times: dict[tuple[str, float], list[float]] = {run: [] for run in runs}
    for _ in range(rounds):
        coin.shuffle(runs)
        for name, pause_ms in runs:
            starts[name]()
            if pause_ms:
                time.sleep(pause_ms / 1e3)
            times[name, pause_ms].append(starts[name]())
    return {run: statistics.median(values) for run, values in times.items()}


def gap_ms(launcher: Launcher, request: Request, rounds: int) -> float:
    """Median time that Python waits for a trial beyond the trial itself, back to back."""
    gaps = []
    before = time.perf_counter_ns()
    for _ in range(rounds):
        report = launcher.run(request)
        now = time.perf_counter_ns()
        gaps.append((now - before - _known(report.wall_ns)) / 1e6)
        before = now
    return statistics.median(gaps)


def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Run, print, and say whether every bound is met."""
    source = folder / "true.c"
    source.write_text(TRUE)
    static_true = compile_c(source, folder / "static-true", "-static")
    bare = BareLoop(compile_c(HERE / "spawn_loop.c", folder / "spawn-loop"), static_true)
    request = Request(argv=(str(static_true),), environment=ENVIRONMENT, working_folder="/")
    reports: list[Report] = []

    with Launcher(options.launcher, containment=options.containment) as launcher:

        def through_launcher() -> float:
            reports.append(launcher.run(request))
            return _known(reports[-1].wall_ns) / 1e3

        starts = {"launcher": through_launcher, "bare": bare.start}
        medians = interleave(starts, options.rounds, options.seed)
        gap = gap_ms(launcher, request, options.rounds)
    bare.close()

    memory = max(_known(report.max_rss_bytes) for report in reports)
    met = [memory < MEMORY_BOUND_BYTES, gap <= GAP_BOUND_MS]
    for pause_ms in PAUSES_MS:
        ours, theirs = medians["launcher", pause_ms], medians["bare", pause_ms]
        met.append(ours / theirs <= RATIO_BOUND)
        name = f"after {pause_ms} ms" if pause_ms else "hot"
        print(
            f"{name:>12}: launcher {ours:7.0f} us, bare C loop {theirs:7.0f} us, "
            f"ratio {ours / theirs:.3f} (at most {RATIO_BOUND})"
        )
    print(f" peak memory: {memory:,} bytes (under {MEMORY_BOUND_BYTES:,})")
    print(f"  between two trials: {gap:.2f} ms (at most {GAP_BOUND_MS:.0f})")
    return all(met)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "both streams were asked for"
    return pipe


def _known(value: int | None) -> int:
    assert value is not None, "wall time and peak memory are known wherever this runs"
    return value


def main() -> int:
    """Exit status 0 if every bound is met."""
    parser = argparse.ArgumentParser(description="The launcher beside a bare C loop.")
    parser.add_argument("--launcher", type=Path, default=BUILT)
    parser.add_argument("--containment", default="process-group")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(options, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
