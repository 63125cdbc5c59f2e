"""What is claimed of servers as workloads, tried on real ones.

    python benchmarks/database/run.py [quick] [planted] [alike] [by-hand] [stall] [kill]

Without a word all of them; wants an idle machine, and takes about an hour. Needs the packages of
MariaDB, PostgreSQL and sysbench in tests/apt.txt, and a C compiler.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise_studies.load_generators import sysbench

HERE = Path(__file__).resolve().parent
TOOL = [sys.executable, "-m", "equipoise.cli"]
ALIKE = 20
MOMENTS = 5
BY_HAND = 10
SECONDS = 3


def main(asked: list[str]) -> None:
    """Run what was asked for."""
    parts: dict[str, Callable[[Path], None]] = {
        "quick": quick,
        "planted": planted,
        "alike": alike,
        "by-hand": by_hand,
        "stall": stall,
        "kill": kill,
    }
    for name in asked or parts:
        with study_folder() as folder:
            print(f"== {name}", flush=True)
            parts[name](folder)


@contextmanager
def study_folder() -> Iterator[Path]:
    """A folder with the study and the library that slows its server down."""
    with tempfile.TemporaryDirectory(prefix="servers-") as made:
        os.chmod(made, 0o711)
        folder = Path(made)
        shutil.copy(HERE / "mariadb.toml", folder)
        library = folder / "libplanted.so"
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "planted.c"], check=True
        )
        library.chmod(0o755)
        yield folder


def equipoise(folder: Path, *words: str) -> dict[str, Any]:
    """One command of the tool, and its result document."""
    done = subprocess.run(
        [*TOOL, *words, "--json", "-"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def quick(folder: Path) -> None:
    """The quick form of the study ends within two minutes, with both servers."""
    before = set(left())
    began = time.monotonic()
    document = equipoise(folder, "run", "database", "--quick")
    took = time.monotonic() - began
    servers = {one["levels"]["server"] for one in document["conditions"]}
    print(
        f"database --quick: {took:.0f} s, {document['run']['blocks']} blocks of {sorted(servers)}"
    )
    print(f"left: {sorted(set(left()) - before) or 'nothing'}")


def planted(folder: Path) -> None:
    """200 us in each allocation of one size are found in throughput and in latency."""
    chosen = ("--factor", "setting=usual,planted", "--factor", "threads=1")
    # Throughput is decided sooner than latency, which shares its alpha with others.
    document = equipoise(folder, "run", "mariadb.toml", *chosen, "--min-blocks", "20")
    for one in document["comparisons"]:
        low, high = one["ratio_ci"]
        ratio, blocks = f"x{one['ratio']:.3f} ({low} to {high})", one["blocks"]
        print(f"{one['metric']}: {one['verdict']} after {blocks} blocks, cost {ratio}")


def alike(folder: Path) -> None:
    """Two lives of the same server, called different in how many of 20 campaigns."""
    verdicts = []
    for number in range(1, ALIKE + 1):
        words = ("--factor", "setting=usual,twin", "--seed", str(number), "--budget", "60")
        document = equipoise(folder, "run", "mariadb.toml", *words)
        verdicts.append(document["comparisons"][0]["verdict"])
        print(f"{number:2d} {verdicts[-1]} after {document['run']['blocks']} blocks", flush=True)
    different = sum(one not in ("equivalent", "undecided") for one in verdicts)
    print(f"called different: {different} of {ALIKE}")


def by_hand(folder: Path) -> None:
    """Throughput beside sysbench run by hand on servers started by hand, in turns."""
    ours: list[float] = []
    hand: list[float] = []
    with data_by_hand() as data:
        for number in range(BY_HAND):
            for which in random.Random(number).sample(["ours", "hand"], 2):
                if which == "hand":
                    hand.append(throughput_by_hand(data))
                else:
                    ours.append(throughput_of_ours(folder))
    for name, found in (("equipoise", ours), ("by hand", hand)):
        print(f"{name}: median {statistics.median(found):.0f} per s, {sorted(map(round, found))}")
    ratios = sorted(a / b for a, b in zip(ours, hand, strict=True))
    # Order statistics: the 2nd and the 9th of ten hold the median with 97.9 %.
    print(
        f"equipoise over by hand: x{statistics.median(ratios):.3f} "
        f"({ratios[1]:.3f} to {ratios[-2]:.3f})"
    )


def throughput_of_ours(folder: Path) -> float:
    """One life under Equipoise."""
    words = ("--factor", "setting=usual,twin", "--factor", f"seconds={SECONDS}")
    document = equipoise(
        folder, "run", "mariadb.toml", *words, "--blocks", "1", "--min-blocks", "1", "--budget", "1"
    )
    trial = next(one for one in document["trials"] if one["condition"].startswith("usual"))
    return float(trial["metrics"]["throughput_per_s"])


OPTIONS = (
    "--innodb-log-file-size=16M --innodb-buffer-pool-size=64M --innodb-use-native-aio=0 "
    "--innodb-flush-log-at-trx-commit=2 --skip-log-bin --performance-schema=OFF --skip-networking"
)
LOAD = '--db-driver=mysql --mysql-user="$(id -un)" --mysql-db=sbtest --tables=1 --table-size=10000'


@contextmanager
def data_by_hand() -> Iterator[Path]:
    """What the README of sysbench says, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="by-hand-") as made:
        folder = Path(made)
        root = "--user=root" if os.geteuid() == 0 else ""
        shell(
            f"mariadb-install-db --no-defaults --datadir={folder}/data --tmpdir={folder} {root} "
            "--basedir=/usr --auth-root-authentication-method=socket --skip-test-db "
            '--auth-root-socket-user="$(id -un)" --innodb-log-file-size=16M >/dev/null'
        )
        with server_by_hand(folder):
            shell(
                'mariadb --no-defaults --user="$(id -un)" --execute="create database sbtest" '
                f"--socket={folder}/socket"
            )
            shell(
                f"sysbench {LOAD} --mysql-socket={folder}/socket oltp_read_only prepare >/dev/null"
            )
        yield folder


def throughput_by_hand(folder: Path) -> float:
    """One life by hand."""
    with server_by_hand(folder):
        said = shell(
            f"sysbench {LOAD} --mysql-socket={folder}/socket --threads=4 --time={SECONDS} "
            "oltp_read_only run"
        )
    found = re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", said)
    assert found is not None, said
    return float(found[1])


@contextmanager
def server_by_hand(folder: Path) -> Iterator[int]:
    """A server on these data; gives its process."""
    root = ["--user=root"] if os.geteuid() == 0 else []
    socket = f"--socket={folder}/socket"
    words = ["mariadbd", "--no-defaults", f"--datadir={folder}/data", f"--tmpdir={folder}", socket]
    process = subprocess.Popen(
        [*words, f"--pid-file={folder}/pid", *OPTIONS.split(), *root], stderr=subprocess.DEVNULL
    )
    ready = f'mariadb --no-defaults --user="$(id -un)" {socket} --execute="select 1"'
    while subprocess.run(["sh", "-c", ready], capture_output=True, check=False).returncode:
        time.sleep(0.02)
    yield process.pid
    process.terminate()
    process.wait()


def shell(line: str) -> str:
    """One line of the shell, and what it wrote."""
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def stall(folder: Path) -> None:
    """A server that stands still for 0.6 s: seen at a fixed rate, hidden by clients that wait."""
    with data_by_hand() as data:
        for load in ("", "--rate=100"):
            with server_by_hand(data) as process:
                pause = f"sleep 0.7; kill -STOP {process}; sleep 0.6; kill -CONT {process}"
                said = shell(
                    f"({pause}) & sysbench {LOAD} --mysql-socket={data}/socket --threads=2 "
                    f"--time=3 {load} --histogram=on oltp_read_only run; wait"
                )
            found = sysbench.read(said).percentiles
            print(f"{load or 'closed loop'}: 95 % within {1e3 * found[95]:.1f} ms")


def kill(folder: Path) -> None:
    """kill -9 of the tool at random moments, then `resume` and `doctor` in turns: what remains."""
    for moment in range(MOMENTS):
        before = set(left())
        tool = subprocess.Popen(
            [*TOOL, "run", "database", "--quick", "--quiet"], cwd=folder, stdout=subprocess.DEVNULL
        )
        after_s = random.uniform(1.0, 45.0)
        time.sleep(after_s)
        tool.send_signal(signal.SIGKILL)
        tool.wait()
        if moment % 2:
            subprocess.run([*TOOL, "doctor", "--quiet"], cwd=folder, check=False)
        else:
            words = ["resume", "last", "--quiet", "--budget", "1"]
            subprocess.run([*TOOL, *words], cwd=folder, check=False, stdout=subprocess.DEVNULL)
        time.sleep(1.0)
        remains = sorted(set(left()) - before)
        print(f"killed after {after_s:.1f} s: {remains or 'nothing remains'}", flush=True)


def left() -> list[str]:
    """Servers that run, and scratch folders that are there."""
    found = [str(path) for path in Path(tempfile.gettempdir()).glob("equipoise-*/server-*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name in ("mariadbd", "postgres", "sysbench", "pgbench"):
            found.append(f"{name} {process.name}")
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
