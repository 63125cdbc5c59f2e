"""Covariates: values that are observed, not set, around each trial.

Files are opened once and read repeatedly by pread. A source that takes too long on this host is
left out with the reason: reading must not disturb the measurement (rule 4).
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
from equipoise.measure.environment.system import Host, Unknown

T = TypeVar("T")
When = Literal["before", "after", "difference"]

MAX_READING_S = 200e-6
"""Maximum time that one source may take per trial, before and after it together."""
_ATTEMPTS = 5
"""Number of readings to time a source; the quickest counts, because others may be interrupted."""

_TOO_SHORT = "the trial before it was too short for the clock of this source"

RUN_DELAY = "run_delay_s"
CPU = "cpu"


class CovariateReader(AbstractContextManager["CovariateReader"]):
    """Reader of the covariates of each trial; a context manager.

    Call ``before`` just before a trial and ``after`` just after it, both outside its time.

    By default the files of this host are read. ``clock`` returns seconds, for the cost of each
    source, and ``now`` for the time between readings; ``max_s`` is the longest time in seconds
    that one source may take per trial.
    """

    def __init__(
        self,
        host: Host | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.monotonic,
        max_s: float = MAX_READING_S,
    ) -> None:
        host = Host() if host is None else host
        self._now = now
        self.reasons: dict[str, str] = {}
        """Reasons for covariates that are ``None``: missing on this host, or the last failed
        reading."""
        self._sources: list[tuple[tuple[str, ...], Source]] = []
        self._failed: set[tuple[str, ...]] = set()
        for names, open_source in SOURCES:
            try:
                self._sources.append(
                    (names, _quick_source(open_source(host), host, (clock, now), max_s))
                )
            except Unknown as reason:
                self._explain(names, reason)

    def before(self) -> None:
        """Read the sources before a trial."""
        self._failed.clear()
        now = self._now()
        for names, source in self._sources:
            try:
                source.before(now)
            except Unknown as reason:
                self._failed.add(names)
                self._explain(names, reason)

    def after(
        self, *, cpu: int | None = None, run_delay_s: float | None = None
    ) -> dict[str, float | None]:
        """Return the covariates of the trial that began after ``before``.

        The launcher reports ``cpu``, on which the trial ran last, and ``run_delay_s``, the seconds
        during which it was ready but did not run.

        Returns
        -------
        dict
            Every covariate by name, ``None`` if unknown (see ``reasons``). Before the trial:
            ``load_1_minute``, ``temperature_c``, ``frequency_before_hz`` of the CPU that the trial
            before ran on last, and since that trial began ``pressure_cpu_before``,
            ``pressure_memory_before``, ``pressure_io_before`` (fraction of the time) and
            ``steal_before`` (fraction of the CPU time). After it: ``frequency_hz``. Over the trial,
            in seconds: ``pressure_cpu_s``, ``pressure_memory_s``, ``pressure_io_s``, ``steal_s``,
            ``busy_s``, ``run_delay_s``; and ``cpu``.
        """
        values: dict[str, float | None] = dict.fromkeys(
            name for names, _ in SOURCES for name in names
        )
        for names, source in self._sources:
            if names in self._failed:
                continue
            try:
                read = dict(zip(names, source.after(cpu), strict=True))
            except Unknown as reason:
                self._explain(names, reason)
                continue
            values |= read
            self._explain([name for name, value in read.items() if value is None], _TOO_SHORT)
        reported = {RUN_DELAY: run_delay_s, CPU: cpu}
        unreported = [name for name, value in reported.items() if value is None]
        self._explain(unreported, "the launcher did not report it")
        return values | reported

    def close(self) -> None:
        """Close every file."""
        for _, source in self._sources:
            source.close()
        self._sources.clear()

    def __exit__(self, *_: object) -> None:
        """Close every file at the end of the block."""
        self.close()

    def _explain(self, names: Sequence[str], reason: object) -> None:
        self.reasons.update(dict.fromkeys(names, str(reason)))


def _quick_source(
    source: Source,
    host: Host,
    clocks: tuple[Callable[[], float], Callable[[], float]],
    max_s: float,
) -> Source:
    """Return an open source; close it and raise `Unknown` if it cannot be read in time.

    The first clock measures the cost of readings, the second is passed to the readings.
    """
    clock, now = clocks
    with ExitStack() as opened:
        opened.callback(source.close)
        try:
            cpu: int | None = online(host)[0]
        except Unknown:
            # In that case no source that needs a CPU has opened.
            cpu = None
        costs_s = []
        for _ in range(_ATTEMPTS):
            started = clock()
            source.before(now())
            source.after(cpu)
            costs_s.append(clock() - started)
        if min(costs_s) > max_s:
            raise Unknown(
                f"reading it takes {1e3 * min(costs_s):.2g} ms here: too long for each trial"
            )
        opened.pop_all()
    return source


class OpenFile:
    """A small file of /proc or /sys that is opened once and read repeatedly.

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
            raise Unknown(f"{self._name} does not have the documented format") from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


Since = Callable[[tuple[float, ...], tuple[float, ...], float], tuple[float | None, ...]]
"""Function from two consecutive readings and the seconds between them to values."""


class Source(Struct):
    """One source of covariates."""

    when: When
    """Reading that counts: that before the trial, that after it, or their difference."""
    read: Callable[[int | None], tuple[float, ...]]
    """Function that reads the source; its argument is the CPU on which the trial ran last, if
    known. It raises `Unknown` if the host no longer has the source."""
    files: list[OpenFile]
    per_unit: float = 1.0
    """Divisor of a difference."""
    differences: int = 1
    """Number of values whose difference is reported."""
    since: Since | None = None
    """Function from the readings before two consecutive trials to values for the time between,
    which are reported after the differences over the trial."""
    remember_cpu: Callable[[int | None], None] = lambda cpu: None
    """Function that stores the CPU on which a trial ran last, for the reading before the next."""
    first: tuple[float, ...] = ()
    """Reading before the trial."""
    at: float = 0.0
    """Time of that reading, in seconds."""
    recent: tuple[float | None, ...] = ()
    """Values of ``since`` for this trial."""

    def before(self, now: float) -> None:
        """Read the source before a trial; ``now`` is in seconds."""
        if self.when == "after":
            return
        earlier, earlier_at = self.first, self.at
        self.first, self.at = self.read(None), now
        if self.since is not None:
            # The first readings time the source and belong to no trial.
            self.recent = self.since(earlier or self.first, self.first, now - earlier_at)

    def after(self, cpu: int | None) -> tuple[float | None, ...]:
        """Return the covariates of the trial, which ran on this CPU last."""
        self.remember_cpu(cpu)
        if self.when == "before":
            return self.first
        last = self.read(cpu)
        if self.when == "after":
            return last
        # A reading may have further values that only ``since`` needs.
        pairs = zip(self.first[: self.differences], last, strict=False)
        return (*((b - a) / self.per_unit for a, b in pairs), *self.recent)

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
    differences: int = 1,
    since: Since | None = None,
) -> Callable[[Host], Source]:
    """Return a function that opens a source: the beginning of one file."""

    def open_source(host: Host) -> Source:
        file = OpenFile(host, name)
        return Source(
            when, lambda _: file.parse(parser, at_most), [file], per_unit, differences, since
        )

    return open_source


def _load(text: bytes) -> tuple[float]:
    return (float(text.split(None, 1)[0]),)


def _total_us(text: bytes) -> tuple[int]:
    # The first line counts "some", and its total is the last field.
    line = text.partition(b"\n")[0]
    return (int(line[line.rindex(_TOTAL) + len(_TOTAL) :]),)


_TOTAL = b"total="
_PER_SECOND = 1e6
"""Units of a total of pressure in a second."""
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(1, 9)


def stolen_busy_and_all(text: bytes) -> tuple[int, int, int]:
    """Return the ticks in the first line of /proc/stat; raise `ValueError` or `IndexError`."""
    fields = text.partition(b"\n")[0].split()
    busy = sum(int(fields[field]) for field in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ))
    stolen = int(fields[_STEAL])
    return stolen, busy, busy + stolen + int(fields[_IDLE]) + int(fields[_IOWAIT])


def _stolen_fraction(
    earlier: tuple[float, ...], now: tuple[float, ...], _: float
) -> tuple[float | None]:
    ticks = now[2] - earlier[2]
    return ((now[0] - earlier[0]) / ticks if ticks > 0 else None,)


def _waiting_fraction(
    earlier: tuple[float, ...], now: tuple[float, ...], seconds: float
) -> tuple[float | None]:
    waited_s = (now[0] - earlier[0]) / _PER_SECOND
    return (min(1.0, waited_s / seconds) if seconds > 0 else None,)


def frequency(host: Host) -> Source:
    """Open the frequency of the trial's CPU, read just after the trial.

    Source: the kernel's admin-guide/pm/cpufreq.rst.
    """
    files: list[OpenFile] = []
    frequency_of = _frequency_of(host, files)

    def read(cpu: int | None) -> tuple[float, ...]:
        if cpu is None:
            raise Unknown("it is not known on which CPU the trial ran")
        return (frequency_of(cpu),)

    return Source("after", read, files)


def frequency_before(host: Host) -> Source:
    """Open the frequency, before a trial, of the last CPU of the trial before it.

    The CPU of the trial itself is not known yet; before the first trial it is the first CPU.
    """
    files: list[OpenFile] = []
    frequency_of = _frequency_of(host, files)
    latest = online(host)[0]

    def remember(cpu: int | None) -> None:
        nonlocal latest
        latest = latest if cpu is None else cpu

    return Source("before", lambda _: (frequency_of(latest),), files, remember_cpu=remember)


def _frequency_of(host: Host, files: list[OpenFile]) -> Callable[[int], float]:
    """Return a function that reads the frequency of a CPU; `Unknown` if the first CPU has none."""

    @functools.cache
    def file_of(cpu: int) -> OpenFile:
        files.append(OpenFile(host, f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"))
        return files[-1]

    file_of(online(host)[0])
    return lambda cpu: file_of(cpu).parse(int, 32) * 1e3


ZONES = "/sys/class/thermal"
MONITORS = "/sys/class/hwmon"
_PROCESSOR_ZONES = ("x86_pkg_temp", "cpu", "soc")
"""Prefixes of zone types; other zones are less informative, and some take milliseconds to read."""
_PROCESSOR_MONITORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
_PACKAGE_SENSOR = "temp1_input"
"""Sensor of the whole package; the sensors of the cores would cost one read each."""


def temperature(host: Host) -> Source:
    """Open the processor's sensors; the hottest counts, before the trial.

    Source: the kernel's driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst.
    """
    names = list(_zones(host)) or list(_monitors(host))
    if not names:
        raise Unknown(f"neither {ZONES} nor {MONITORS} has a sensor of the processor")
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
    name = f"/proc/pressure/{resource}"
    return _one_file("difference", name, _total_us, 128, _PER_SECOND, since=_waiting_fraction)


SOURCES: tuple[tuple[tuple[str, ...], Callable[[Host], Source]], ...] = (
    # After the trial the load average would contain the trial (proc_loadavg(5)).
    (("load_1_minute",), _one_file("before", "/proc/loadavg", _load, 64)),
    # Seconds during which some process of the host waited: Documentation/accounting/psi.rst.
    (("pressure_cpu_s", "pressure_cpu_before"), _pressure("cpu")),
    (("pressure_memory_s", "pressure_memory_before"), _pressure("memory")),
    (("pressure_io_s", "pressure_io_before"), _pressure("io")),
    # Ticks, usually of 10 ms, that the hypervisor took away and that all processes used: in a short
    # trial 0 or one tick (proc_stat(5)).
    (
        ("steal_s", "busy_s", "steal_before"),
        _one_file(
            "difference",
            "/proc/stat",
            stolen_busy_and_all,
            256,
            os.sysconf("SC_CLK_TCK"),
            differences=2,
            since=_stolen_fraction,
        ),
    ),
    (("frequency_hz",), frequency),
    (("frequency_before_hz",), frequency_before),
    (("temperature_c",), temperature),
)
"""Every source with the names of its covariates; a new source is one line here."""
