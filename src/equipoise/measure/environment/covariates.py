"""Covariates: what is observed, not set, beside each trial.

Files are opened once and read again by pread. A source that takes too long on this host is left
out with the reason: reading must not disturb what is measured (rule 4).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from typing import Literal, TypeVar

from msgspec import Struct

from equipoise.measure.environment.hardware import CPUS, online
from equipoise.measure.environment.host import Host, Unknown

T = TypeVar("T")
When = Literal["before", "after", "difference"]

MOST_S = 200e-6
"""Longest time that one source may take per trial, before and after it together."""
_ATTEMPTS = 5
"""Readings to time a source; the quickest counts, because others may be interrupted."""

RUN_DELAY = "run_delay_s"
CPU = "cpu"


class CovariateReader(AbstractContextManager["CovariateReader"]):
    """Reader of the covariates of each trial; a context manager.

    Call ``before`` just before a trial and ``after`` just after it, both outside its time.

    By default the files of this host are read. ``clock`` returns seconds, for the cost of each
    source; ``most_s`` is the longest time in seconds that one source may take per trial.
    """

    def __init__(
        self,
        host: Host | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
        most_s: float = MOST_S,
    ) -> None:
        host = Host() if host is None else host
        self.reasons: dict[str, str] = {}
        """Why a covariate is ``None``: what this host lacks, or the last failure to read it."""
        self._sources: list[tuple[tuple[str, ...], Source]] = []
        self._failed: set[tuple[str, ...]] = set()
        for names, open_source in SOURCES:
            try:
                self._sources.append((names, _quick(open_source(host), host, clock, most_s)))
            except Unknown as reason:
                self._explain(names, reason)

    def before(self) -> None:
        """Read what is needed before a trial."""
        self._failed.clear()
        for names, source in self._sources:
            try:
                source.before()
            except Unknown as reason:
                self._failed.add(names)
                self._explain(names, reason)

    def after(
        self, *, cpu: int | None = None, run_delay_s: float | None = None
    ) -> dict[str, float | None]:
        """Return the covariates of the trial that ``before`` was called for.

        The launcher reports ``cpu``, on which the trial ran last, and ``run_delay_s``, the seconds
        for which it was ready but did not run.

        Returns
        -------
        dict
            Every covariate by name, ``None`` where it is unknown (see ``reasons``):
            ``load_1_minute`` and ``temperature_c`` before the trial, ``frequency_hz`` after
            it, and over the trial, in seconds, ``pressure_cpu_s``, ``pressure_memory_s``,
            ``pressure_io_s``, ``steal_s``, ``busy_s``, ``run_delay_s``; and ``cpu``.
        """
        values: dict[str, float | None] = dict.fromkeys(
            name for names, _ in SOURCES for name in names
        )
        for names, source in self._sources:
            if names in self._failed:
                continue
            try:
                values.update(zip(names, source.after(cpu), strict=True))
            except Unknown as reason:
                self._explain(names, reason)
        reported = {RUN_DELAY: run_delay_s, CPU: cpu}
        for name, value in reported.items():
            if value is None:
                self.reasons[name] = "the launcher did not report it"
        values |= reported
        return values

    def close(self) -> None:
        """Close every file."""
        for _, source in self._sources:
            source.close()
        self._sources.clear()

    def __exit__(self, *_: object) -> None:
        """Close it at the end of the block."""
        self.close()

    def _explain(self, names: Sequence[str], reason: Unknown) -> None:
        self.reasons.update(dict.fromkeys(names, str(reason)))


def _quick(source: Source, host: Host, clock: Callable[[], float], most_s: float) -> Source:
    """Return an open source; close it and raise `Unknown` if it cannot be read in time."""
    with ExitStack() as opened:
        opened.callback(source.close)
        try:
            cpu: int | None = online(host)[0]
        except Unknown:
            # Then no source that needs a CPU has opened.
            cpu = None
        costs_s = []
        for _ in range(_ATTEMPTS):
            started = clock()
            source.before()
            source.after(cpu)
            costs_s.append(clock() - started)
        if min(costs_s) > most_s:
            raise Unknown(
                f"to read it takes {1e3 * min(costs_s):.2g} ms here: too long beside a trial"
            )
        opened.pop_all()
    return source


class OpenFile:
    """A small file of /proc or /sys that is opened once and read again each time.

    It raises `Unknown` if the file cannot be opened.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._name = name
        try:
            self._descriptor = os.open(host.path(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def parse(self, parser: Callable[[bytes], T], at_most: int) -> T:
        """Parse the first bytes of the present content.

        Raise `Unknown` if the file can no longer be read, or the parser raises `ValueError` or
        `IndexError`.
        """
        try:
            return parser(os.pread(self._descriptor, at_most, 0))
        except OSError as error:
            raise Unknown(f"{self._name}: {error.strerror}") from None
        except (ValueError, IndexError):
            raise Unknown(f"{self._name} has another form than the kernel documents") from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class Source(Struct):
    """One source of covariates."""

    when: When
    """Whether a reading before the trial counts, one after it, or their difference."""
    read: Callable[[int | None], tuple[float, ...]]
    """Reads, given the CPU on which the trial ran last, if it is known; raises `Unknown` where
    the host no longer offers the source."""
    files: list[OpenFile]
    per_unit: float = 1.0
    """Divisor of a difference."""
    first: tuple[float, ...] = ()
    """Reading before the trial."""

    def before(self) -> None:
        """Read what is needed before a trial."""
        if self.when != "after":
            self.first = self.read(None)

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return the covariates of the trial, which ran on this CPU last."""
        if self.when == "before":
            return self.first
        last = self.read(cpu)
        if self.when == "after":
            return last
        return tuple((b - a) / self.per_unit for a, b in zip(self.first, last, strict=True))

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            file.close()


def _one_file(
    when: When,
    name: str,
    parser: Callable[[bytes], tuple[float, ...]],
    at_most: int,
    per_unit: float = 1.0,
) -> Callable[[Host], Source]:
    """Return a function that opens the source that is the beginning of one file."""

    def open_source(host: Host) -> Source:
        file = OpenFile(host, name)
        return Source(when, lambda _: file.parse(parser, at_most), [file], per_unit)

    return open_source


def _load(text: bytes) -> tuple[float]:
    return (float(text.split(None, 1)[0]),)


def _total_us(text: bytes) -> tuple[int]:
    # The first line counts "some", and its total is the last field.
    line = text.partition(b"\n")[0]
    return (int(line[line.rindex(_TOTAL) + len(_TOTAL) :]),)


_TOTAL = b"total="
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(1, 9)


def _stolen_and_busy(text: bytes) -> tuple[int, int]:
    fields = text.partition(b"\n")[0].split()
    busy = (int(fields[field]) for field in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ))
    return int(fields[_STEAL]), sum(busy)


def frequency(host: Host) -> Source:
    """Open the frequency of the CPU that the trial ran on, read just after it.

    Before the trial that CPU has only this process to run. Source: the kernel's
    admin-guide/pm/cpufreq.rst.
    """
    files: list[OpenFile] = []

    @functools.cache
    def file_of(cpu: int) -> OpenFile:
        files.append(OpenFile(host, f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"))
        return files[-1]

    def read(cpu: int | None) -> tuple[float, ...]:
        if cpu is None:
            raise Unknown("it is not known on which CPU the trial ran")
        return (file_of(cpu).parse(int, 32) * 1e3,)

    file_of(online(host)[0])
    return Source("after", read, files)


ZONES = "/sys/class/thermal"
MONITORS = "/sys/class/hwmon"
_PROCESSOR_ZONES = ("x86_pkg_temp", "cpu", "soc")
"""Beginnings of zone types; other zones say little, and some take milliseconds to read."""
_PROCESSOR_MONITORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
_PACKAGE_SENSOR = "temp1_input"
"""Sensor of the whole package; reading one sensor per core would cost one read per core."""


def temperature(host: Host) -> Source:
    """Open the processor's sensors; the hottest counts, before the trial.

    Source: the kernel's driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst.
    """
    names = list(_zones(host)) or list(_monitors(host))
    if not names:
        raise Unknown(f"neither {ZONES} nor {MONITORS} shows a sensor of the processor")
    with ExitStack() as opened:
        files = [opened.enter_context(closing(OpenFile(host, name))) for name in names]
        opened.pop_all()
    return Source("before", lambda _: (max(file.parse(int, 32) / 1e3 for file in files),), files)


def _zones(host: Host) -> Iterator[str]:
    for zone in _names(host, ZONES):
        if zone.startswith("thermal_zone"):
            kind = host.text(f"{ZONES}/{zone}/type").lower()
            if kind.startswith(_PROCESSOR_ZONES):
                yield f"{ZONES}/{zone}/temp"


def _monitors(host: Host) -> Iterator[str]:
    for folder in (f"{MONITORS}/{monitor}" for monitor in _names(host, MONITORS)):
        sensor = f"{folder}/{_PACKAGE_SENSOR}"
        if host.has(f"{folder}/name") and host.text(f"{folder}/name") in _PROCESSOR_MONITORS:
            if host.has(sensor):
                yield sensor


def _names(host: Host, folder: str) -> list[str]:
    return host.names(folder) if host.has(folder) else []


def _pressure(resource: str) -> Callable[[Host], Source]:
    return _one_file("difference", f"/proc/pressure/{resource}", _total_us, 128, 1e6)


SOURCES: tuple[tuple[tuple[str, ...], Callable[[Host], Source]], ...] = (
    # After the trial the load average would contain the trial (proc_loadavg(5)).
    (("load_1_minute",), _one_file("before", "/proc/loadavg", _load, 64)),
    # Seconds during which some process of the host waited: Documentation/accounting/psi.rst.
    (("pressure_cpu_s",), _pressure("cpu")),
    (("pressure_memory_s",), _pressure("memory")),
    (("pressure_io_s",), _pressure("io")),
    # Ticks that the hypervisor took away, and that all processes used, usually of 10 ms: a short
    # trial shows 0 or one tick (proc_stat(5)).
    (
        ("steal_s", "busy_s"),
        _one_file("difference", "/proc/stat", _stolen_and_busy, 256, os.sysconf("SC_CLK_TCK")),
    ),
    (("frequency_hz",), frequency),
    (("temperature_c",), temperature),
)
"""Every source with the names of its covariates; a new source is one line here."""
