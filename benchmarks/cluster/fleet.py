"""The processes of a fleet: a scheduler, a supervisor on each host, and a coordinator."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
from msgspec import Struct

from benchmarks.cluster.network import Network, within

HERE = Path(__file__).parent
PROGRAM = "nap"
LEDGER = Path(".equipoise/ledger.db")
STARTED_S = 60.0
"""Seconds in which a scheduler, a worker or a campaign starts, on a busy machine too."""
SCHEDULER_IS_AWAY = 2
"""Exit status of unusable input."""
RESUME_AFTER_S = 2.0
COORDINATOR_LOG = "coordinator.log"
LABORATORY = "equipoise.cluster.campaign_process"

TrialKey = tuple[str, int, int, bool]
"""Phase, block, position and whether it is a washout."""


class Unfinished(Exception):
    """Something failed, or did not come in time."""


class Plan(Struct, frozen=True):
    """What is planted, and how long it is measured."""

    ratios: tuple[float, ...]
    """Of each host: candidate over baseline."""
    seconds: float
    """Of a trial of the baseline."""
    spread: float
    """Standard deviation of the log time of a trial."""
    blocks: int
    """Of each host."""
    seed: int
    clocks_h: tuple[float, ...] = ()
    """Hours by which the clock of each host is ahead; empty if all are right."""


CLOCK = """
import time
right = time.time
time.time = lambda: right() + {seconds!r}
"""
"""What Python imports at its start on a host whose clock is wrong."""


def compiled(folder: Path) -> Path:
    """Compile the planted program."""
    program = folder / PROGRAM
    source = HERE / "nap.c"
    subprocess.run(["cc", "-O2", "-o", str(program), str(source), "-lm"], check=True)
    return program


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a machine of its own, whose home is this folder."""
    own = ("EQUIPOISE_LEDGER", "EQUIPOISE_HOST", "EQUIPOISE_ALLOW", "DASK_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    scratch = folder / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    return kept | {
        "HOME": str(folder),
        "TMPDIR": str(scratch),
        "XDG_STATE_HOME": str(folder / "state"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


class Machine:
    """A machine's folder and namespace; what is started in it is ended by `end`."""

    def __init__(self, folder: Path, namespace: str | None, program: Path) -> None:
        self.folder = folder
        self._namespace = namespace
        folder.mkdir()
        shutil.copy(program, folder / PROGRAM)
        self.environment = environment(folder)
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def ledger(self) -> Path:
        """The ledger of what runs here."""
        return self.folder / LEDGER

    def start(
        self, words: Sequence[str], log: str, more: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a module of Python here; what it says goes to a file."""
        with (self.folder / log).open("ab") as file:
            process = subprocess.Popen(
                [*within(self._namespace), sys.executable, "-m", *words],
                cwd=self.folder,
                env=self.environment | (more or {}),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def run(self, words: Sequence[str]) -> None:
        """Run a module of Python here to its end.

        Raise `Unfinished` if it failed; the error has what it said.
        """
        done = subprocess.run(
            [*within(self._namespace), sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Unfinished(f"{' '.join(words)}: {done.stderr.strip()}")

    def processes(self) -> list[psutil.Process]:
        """Return the processes of this machine: those with its home, or its descendants."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("HOME") == str(self.folder):
                    found.append(process)
        return found

    def kill(self, *words: str) -> bool:
        """Kill the processes whose command line has these words; whether there was one."""
        hit = False
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                line = process.cmdline()
                if all(word in line for word in words):
                    process.kill()
                    hit = True
        return hit

    def end(self) -> None:
        """Kill all that is left of this machine."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
        while left := self.processes():
            for one in left:
                with contextlib.suppress(psutil.Error):
                    one.kill()
            psutil.wait_procs(left, timeout=1)

    def trials(self) -> dict[TrialKey, tuple[float | None, float]]:
        """Return the committed trials: their key, with wall time and start."""
        if not self.ledger.exists():
            return {}
        with contextlib.closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as open_:
            try:
                rows = open_.execute(
                    "SELECT phase, block, position, washout, wall_s, started_at FROM trial"
                ).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return {}  # it is being made
                raise
        return {(row[0], row[1], row[2], bool(row[3])): (row[4], row[5]) for row in rows}


class Fleet:
    """Scheduler, supervisors and coordinator of one repetition."""

    def __init__(self, network: Network, folder: Path, plan: Plan, program: Path) -> None:
        folder.mkdir()
        self.network = network
        self.plan = plan
        self.hub = Machine(folder / "hub", network.hub, program)
        self.hosts = [
            Machine(folder / f"host{place}", namespace, program)
            for place, namespace in enumerate(network.hosts)
        ]
        for machine, ratio in zip((self.hub, *self.hosts), (1.0, *plan.ratios), strict=True):
            planted = f"{plan.seconds} {ratio} {plan.spread}\n"
            (machine.folder / "planted").write_text(planted, encoding="ascii")
        for host, hours in zip(self.hosts, plan.clocks_h, strict=False):
            clock = host.folder / "clock"
            clock.mkdir()
            text = CLOCK.format(seconds=3600.0 * hours)
            (clock / "sitecustomize.py").write_text(text, encoding="ascii")
            host.environment["PYTHONPATH"] = str(clock)
        self.coordinator_starts = 0
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._coordinator: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start the scheduler and a supervisor on each host."""
        self.start_scheduler()
        for place, host in enumerate(self.hosts):
            supervisor = ["equipoise.cluster.worker", self.network.scheduler]
            host.start([*supervisor, "--name", f"host{place}"], "supervisor.log")
        self._wait_for(lambda: all("Registered to" in log(host) for host in self.hosts), "workers")

    def start_scheduler(self) -> None:
        """Start the scheduler; its hosts and its coordinator find it at the same address."""
        host, _, port = self.network.scheduler.removeprefix("tcp://").rpartition(":")
        words = ["distributed.cli.dask_scheduler", "--host", host, "--port", port]
        self._scheduler = self.hub.start([*words, "--no-dashboard"], "scheduler.log")

    def kill_scheduler(self) -> None:
        """Kill the scheduler."""
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def kill_coordinator(self) -> bool:
        """Kill the coordinator; whether it was running."""
        coordinator = self._coordinator
        if coordinator is None or coordinator.poll() is not None:
            return False
        coordinator.kill()
        return True

    def coordinate(self, until: float) -> None:
        """Run the coordinator, and resume it until it says that it is done.

        Raise `Unfinished` if it has not said so by ``until``, a time of the monotonic clock.
        """
        options = {
            "--cluster": self.network.scheduler,
            "--blocks": self.plan.blocks,
            "--min-blocks": self.plan.blocks,
            "--budget": 100_000,
            "--seed": self.plan.seed,
        }
        words = ["compare", f"./{PROGRAM} 0", f"./{PROGRAM} 1", "-n", "baseline", "-n", "candidate"]
        words += [str(part) for pair in options.items() for part in pair]
        if self.network.hub is None:
            words.append("--allow-concurrent")
        while True:
            self.coordinator_starts += 1
            self._coordinator = self.hub.start(["equipoise.cli", *words], COORDINATOR_LOG)
            try:
                status = self._coordinator.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                raise Unfinished("the coordinator did not end in time") from error
            if status == 0:
                return
            said = last_line(self.hub.folder / COORDINATOR_LOG)
            crashed = status not in (-signal.SIGKILL, SCHEDULER_IS_AWAY)
            if crashed or time.monotonic() > until or not self.hub.ledger.exists():
                raise Unfinished(f"the coordinator ended with {status}: {said}")
            time.sleep(RESUME_AFTER_S)
            words = ["resume", "last"]

    def wait_until_measuring(self) -> None:
        """Wait until every host has committed a trial."""
        self._wait_for(lambda: all(host.trials() for host in self.hosts), "first trials")

    def end(self) -> None:
        """Kill all processes."""
        for machine in (self.hub, *self.hosts):
            machine.end()

    def _wait_for(self, is_there: object, what: str) -> None:
        assert callable(is_there)
        deadline = time.monotonic() + STARTED_S
        while not is_there():
            if time.monotonic() > deadline:
                raise Unfinished(f"{what} did not come in {STARTED_S:g} s")
            time.sleep(0.2)


def log(host: Machine) -> str:
    """Return what the supervisor of a host and its workers have said."""
    return (host.folder / "supervisor.log").read_text(encoding="utf-8", errors="replace")


def last_line(file: Path) -> str:
    """Return the last line of a file."""
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


@contextlib.contextmanager
def running_fleet(network: Network, folder: Path, plan: Plan, program: Path) -> Iterator[Fleet]:
    """Start a fleet; at the end of the block all its processes are killed."""
    fleet = Fleet(network, folder, plan, program)
    try:
        fleet.begin()
        yield fleet
    finally:
        fleet.end()
