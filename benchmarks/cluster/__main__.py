"""``python -m benchmarks.cluster``: three hosts on one machine, with a fault of every kind.

Each repetition is a campaign on three hosts with planted ratios, by real Dask workers over TCP.
Meanwhile a worker and a laboratory are killed, the scheduler is restarted, the coordinator is
killed and resumed, and two hosts are cut off, all at random moments; clocks are hours apart. In
the end the coordinator's ledger must equal the union of the hosts' ledgers. Ends with 1 if it does
not, or if the fleet's interval misses the planted mean more often than its alpha and chance allow.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct
from scipy import stats

from benchmarks.cluster.checks import Findings, examine
from benchmarks.cluster.faults import Injected, drawn_faults, inject
from benchmarks.cluster.fleet import Plan, Unfinished, compiled, running_fleet
from benchmarks.cluster.network import (
    Network,
    loopback,
    namespaces,
    remove_namespaces,
    why_no_namespaces,
)
from equipoise.model.errors import EquipoiseError

RATIOS = (1.03, 1.05, 1.07)
SPREAD = 0.02
CLOCKS_H = 12.0
"""Hours by which the clock of a host is wrong at most."""
ALPHA = 0.05
INTERRUPTED = 130
TOOLS = ("cc",)
COLUMNS = ("no.", "faults hit", "coordinator starts", "trials", "union", "mean of the ratios", "s")


class Length(Struct, frozen=True):
    """How long a repetition is."""

    seconds: float
    """Of a trial of the baseline."""
    blocks: int
    shorter: float
    """Factor of the time that a host is cut off."""
    patience_s: float

    @property
    def window_s(self) -> float:
        """Seconds that every host measures at least."""
        return 2 * self.seconds * self.blocks


FULL = Length(0.3, 160, 1.0, 420.0)
QUICK = Length(0.1, 100, 0.1, 120.0)


class Repetition(Struct, frozen=True):
    """What one repetition came to."""

    injected: tuple[Injected, ...]
    starts: int
    """Of the coordinator: the first, and each `equipoise resume`."""
    findings: Findings | None
    failure: str | None
    seconds: float


def main() -> int:
    """0 if all holds, 1 if something does not, 2 if a tool is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repetitions", type=int, default=20, metavar="N", help="(default 20)")
    parser.add_argument(
        "--parallel", type=int, default=4, metavar="N", help="at a time (default 4)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="campaigns and cuts of a few seconds")
    parser.add_argument("--loopback", action="store_true", help="without network namespaces")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep folders that failed")
    options = parser.parse_args()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"{missing[0]} is missing on the PATH", file=sys.stderr)
        return 2
    reason = "--loopback" if options.loopback else why_no_namespaces()
    if reason is not None:
        print(f"{reason}: hosts are processes on loopback; none is cut off\n")
    began = time.monotonic()
    length = QUICK if options.quick else FULL
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + " --- |" * len(COLUMNS), flush=True)
    with tempfile.TemporaryDirectory(prefix="cluster-") as scratch:
        program = compiled(Path(scratch))

        def run(number: int) -> Repetition:
            folder = Path(scratch, f"repetition-{number}")
            seed = 1000 * options.seed + number
            made = repetition(folder, program, length, seed, network_of(reason is None))
            show(number, made)
            if made.failure or (made.findings and made.findings.problems):
                if options.keep is not None:
                    shutil.copytree(folder, options.keep / folder.name, symlinks=True)
            shutil.rmtree(folder)
            return made

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with ThreadPoolExecutor(options.parallel) as pool:
            try:
                done = list(pool.map(run, range(options.repetitions)))
            except KeyboardInterrupt:
                # The threads would go on with their repetitions.
                remove_namespaces()
                shutil.rmtree(scratch)
                os._exit(INTERRUPTED)
    minutes = (time.monotonic() - began) / 60
    return conclude(done, f"seed {options.seed}, {minutes:.1f} minutes")


def network_of(with_cables: bool) -> AbstractContextManager[Network]:
    """Return a network that is made when it is entered."""
    return namespaces(len(RATIOS)) if with_cables else loopback(len(RATIOS), free_port())


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def repetition(
    folder: Path,
    program: Path,
    length: Length,
    seed: int,
    network: AbstractContextManager[Network],
) -> Repetition:
    """Measure on three hosts while everything goes wrong once."""
    began = time.monotonic()
    chance = random.Random(seed)
    ratios = tuple(chance.sample(RATIOS, len(RATIOS)))
    clocks_h = tuple(chance.uniform(-CLOCKS_H, CLOCKS_H) for _ in RATIOS)
    plan = Plan(ratios, length.seconds, SPREAD, length.blocks, seed, clocks_h)
    happened: list[Injected] = []
    findings, failure, starts = None, None, 0
    with network as made, running_fleet(made, folder, plan, program) as fleet:
        try:
            with ThreadPoolExecutor(1) as pool:
                coordinator = pool.submit(fleet.coordinate, began + length.patience_s)
                fleet.wait_until_measuring()
                faults = drawn_faults(length.window_s, length.shorter, made.hub is not None, chance)
                happened = inject(fleet, faults)()
                coordinator.result()
            findings = examine(fleet, happened, folder)
        except (Unfinished, EquipoiseError) as error:
            failure = f"{type(error).__name__}: {error}"
        starts = fleet.coordinator_starts
    return Repetition(tuple(happened), starts, findings, failure, time.monotonic() - began)


def show(number: int, made: Repetition) -> None:
    """Print the row of a repetition, and below it what does not hold."""
    hit = f"{sum(one.hit for one in made.injected)} of {len(made.injected)}"
    found = made.findings
    if found is None:
        rest = ("", "no end", "")
    else:
        ends = ", ".join("unknown" if end is None else f"{end:.4f}" for end in found.mean)
        covers = "" if found.covers else ", misses"
        rest = (
            str(found.trials),
            "differs" if found.problems else "equal",
            f"{ends}{covers}",
        )
    row = (str(number), hit, str(made.starts), *rest, f"{made.seconds:.0f}")
    print("| " + " | ".join(row) + " |", flush=True)
    problems = () if found is None else found.problems
    for problem in (*problems, *((made.failure,) if made.failure else ())):
        print(f"repetition {number}: {problem}", file=sys.stderr)
        for one in made.injected:
            print(f"  {'hit' if one.hit else 'late'}: {one.fault.name}", file=sys.stderr)


def conclude(done: Sequence[Repetition], how: str) -> int:
    """Print the counts; return the exit status."""
    hits = Counter(one.fault.kind for made in done for one in made.injected if one.hit)
    print("\nfaults: " + ", ".join(f"{count} × {kind}" for kind, count in sorted(hits.items())))
    found = [made.findings for made in done if made.findings is not None]
    equal = sum(not one.problems for one in found)
    covered = sum(one.covers for one in found)
    most = int(stats.binom.ppf(0.999, len(done), ALPHA))
    truth = f"{found[0].truth:.4f}" if found else "unknown"
    print(f"ended: {len(found)} of {len(done)}; union equal, nothing lost or twice: {equal}")
    print(f"interval holds the planted mean {truth}: {covered}; allowed misses: {most}")
    print(f"{sum(one.trials for one in found)} trials, {how}")
    return int(equal < len(done) or len(done) - covered > most)


if __name__ == "__main__":
    sys.exit(main())
