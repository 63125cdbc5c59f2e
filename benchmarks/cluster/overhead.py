"""``python -m benchmarks.cluster.overhead ratio | alarms``: what the way through a cluster costs.

``ratio``: the same campaign alone on a host and through a scheduler and a worker of this host, in
random order, by `equipoise compare` itself. ``alarms``: campaigns of a program against its copy,
through the cluster. Each ends with 1 if a bar is broken. Wants an idle machine.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scipy import stats

from benchmarks.cluster.__main__ import free_port
from benchmarks.cluster.fleet import Fleet, Machine, Plan
from benchmarks.cluster.network import Network

HERE = Path(__file__).parent
SPINNING = HERE.parent / "live" / "spinning.c"
CALIBRATION_STEPS = 20_000_000
BAR = 1.05
"""Most that a campaign through a cluster may take of the same campaign alone."""
ALPHA = 0.05
CHANCE = 0.95
"""Of the binomial bound on false alarms: 6 of 60."""


def main() -> int:
    """0 if the bar holds, 1 if it is broken, 2 if a tool is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster.overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", required=True)
    ratio = parts.add_parser("ratio", help="wall time beside that of the campaign alone")
    ratio.add_argument("--pairs", type=int, default=9, metavar="N", help="(default 9)")
    ratio.add_argument("--blocks", type=int, default=200, help="of each campaign (default 200)")
    ratio.add_argument("--milliseconds", type=float, default=100.0, help="of a trial (default 100)")
    alarms = parts.add_parser("alarms", help="a program against its copy")
    alarms.add_argument("--campaigns", type=int, default=60, metavar="N", help="(default 60)")
    alarms.add_argument("--blocks", type=int, default=40, help="of each campaign (default 40)")
    alarms.add_argument("--milliseconds", type=float, default=10.0, help="of a trial (default 10)")
    for part in (ratio, alarms):
        part.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if shutil.which("cc") is None:
        print("cc is missing on the PATH", file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="overhead-") as scratch:
        folder = Path(scratch)
        program = folder / "spinning"
        subprocess.run(["cc", "-O2", "-o", str(program), str(SPINNING)], check=True)
        steps = steps_of(program, options.milliseconds / 1000)
        with one_host(folder, program) as (host, scheduler):
            for name in ("spinning", "copy"):
                shutil.copy(program, host.folder / name)
            commands = [f"./spinning {steps}", f"./copy {steps}"]
            measure = ratio_of if options.part == "ratio" else alarms_of
            broken = measure(host, commands, scheduler, options)
    print(f"seed {options.seed}, {(time.monotonic() - began) / 60:.1f} minutes")
    return int(broken)


def ratio_of(
    host: Machine, commands: Sequence[str], scheduler: str, options: argparse.Namespace
) -> bool:
    """Print the ratio of the wall times; return whether it is above the bar."""
    # The campaign around them has the measurement lock.
    alone = [*campaign(commands, options, "alone.db"), "--allow-concurrent"]
    through = [*campaign(commands, options, "coordinator.db"), "--allow-concurrent"]
    through += ["--cluster", scheduler]
    # The first campaign of a worker imports what the later ones need.
    document(host, [*through, "--min-blocks", "1", "--blocks", "1", "--json", "-"])
    result = document(
        host,
        [
            *("equipoise", "compare", shlex.join(alone), shlex.join(through)),
            *("-n", "alone", "-n", "through the cluster", "--warmup", "0"),
            *("--blocks", str(options.pairs), "--min-blocks", str(options.pairs)),
            *("--budget", "100000", "--seed", str(options.seed), "--ledger", "outer.db"),
            *("--json", "-"),
        ],
    )
    (comparison,) = (one for one in result["comparisons"] if one["metric"] == "wall_s")
    for condition in result["conditions"]:
        print(f"{condition['name']}: median {condition['metrics']['wall_s']['median']:.2f} s")
    low, high = comparison["ratio_ci"]
    ends = " to ".join("unbounded" if end is None else f"{end:.4f}" for end in (low, high))
    print(
        f"through the cluster over alone: {comparison['ratio']:.4f} ({ends}), "
        f"{options.pairs} pairs of campaigns of {options.blocks} blocks; bar {BAR}"
    )
    return bool(comparison["ratio"] > BAR)


def alarms_of(
    host: Machine, commands: Sequence[str], scheduler: str, options: argparse.Namespace
) -> bool:
    """Print how often two equal programs are called different; return whether too often."""
    drawn = random.Random(options.seed)
    verdicts: list[str] = []
    times: list[float] = []
    for number in range(options.campaigns):
        words = campaign(commands, options, "coordinator.db")
        words += ["--cluster", scheduler, "--min-effect", "0", "--json", "-"]
        began = time.monotonic()
        result = document(host, [*words, "--seed", str(drawn.randrange(1 << 32))])
        times.append(time.monotonic() - began)
        (comparison,) = (one for one in result["comparisons"] if one["metric"] == "wall_s")
        verdicts.append(comparison["verdict"])
        print(f"\r{number + 1}/{options.campaigns}", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    different = sum(verdict in ("faster", "slower", "mixed") for verdict in verdicts)
    most = int(stats.binom.ppf(CHANCE, options.campaigns, ALPHA))
    print(
        f"a program against its copy through the cluster: called different in {different} of "
        f"{options.campaigns} campaigns of {options.blocks} blocks; bound {most}"
    )
    print(f"a campaign took {statistics.median(times):.2f} s at the median")
    return different > most


def campaign(commands: Sequence[str], options: argparse.Namespace, ledger: str) -> list[str]:
    """Return the command line of a campaign of fixed length."""
    return [
        *("equipoise", "compare", *commands, "-n", "first", "-n", "second", "--quiet"),
        *("--blocks", str(options.blocks), "--min-blocks", str(options.blocks)),
        *("--budget", "100000", "--ledger", ledger),
    ]


def steps_of(program: Path, seconds: float) -> int:
    """Return the steps of the program that take so many seconds."""
    times = []
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run([program, str(CALIBRATION_STEPS)], check=True)
        times.append(time.perf_counter() - began)
    return max(1, round(CALIBRATION_STEPS * seconds / statistics.median(times)))


@contextmanager
def one_host(folder: Path, program: Path) -> Iterator[tuple[Machine, str]]:
    """Start a scheduler and a supervised worker on loopback.

    Yields
    ------
    tuple of Machine and str
        The host, and the address of the scheduler.
    """
    network = Network(None, (None,), free_port())
    fleet = Fleet(network, folder / "fleet", Plan((1.0,), 0.0, 0.0, 0, 0), program)
    try:
        fleet.begin()
        yield fleet.hosts[0], network.scheduler
    finally:
        fleet.end()


def document(host: Machine, words: Sequence[str]) -> dict[str, Any]:
    """Run a command of Equipoise; return its result document."""
    done = subprocess.run(
        words, cwd=host.folder, env=host.environment, stdout=subprocess.PIPE, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    sys.exit(main())
