"""Read covariates: values of the host that are observed around each trial, not set.

A source of covariates is, for example, a file of /proc. Files are opened once and read repeatedly
by pread. Slow reading would disturb the measurement. So a source that is slow on this host is left
out, with the reason (rule 4).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from typing import Literal, NamedTuple, TypeVar

from msgspec import Struct

from equipoise.measure.environment.hardware import CPUS_FOLDER, online_cpus
from equipoise.measure.environment.system import Host, Unknown

Value = TypeVar("Value")
CountedReading = Literal["before", "after", "difference"]
"""The reading before the trial, the reading after the trial, or their difference."""
MAX_READING_S = 200e-6
"""Maximum time for both readings of one source, before and after a trial together."""
_TIMED_READINGS = 5
"""Number of timed readings of a source. The quickest counts, as others may be interrupted."""
_TOO_SHORT_REASON = "the previous trial was too short for the clock of this source"
RUN_DELAY = "run_delay_s"
CPU = "cpu"
"""Covariates that the launcher reports."""
CPU_PRESSURE = "pressure_cpu_s"
"""Covariate: seconds of a trial during which some process of the host waited for a CPU."""


class CovariateReader(AbstractContextManager["CovariateReader"]):
    """Reader of the covariates of each trial; a context manager.

    Call ``read_before`` just before a trial and ``read_after`` just after it, outside the timed
    part. The default ``host`` is this host. The function ``clock`` times the reading of a source,
    in seconds. The function ``now`` gives the time of each reading. ``max_s`` limits the seconds
    for reading one source per trial.
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
        """Reasons for covariates that are ``None``: the host lacks them, or a reading failed."""
        self._sources: list[tuple[tuple[str, ...], Source]] = []
        self._failed: set[tuple[str, ...]] = set()
        """Covariates of the sources whose reading before this trial failed."""
        for names, open_source in SOURCES:
            try:
                self._sources.append(
                    (names, _quick_source(open_source(host), host, (clock, now), max_s))
                )
            except Unknown as reason:
                self._explain(names, reason)

    def read_before(self) -> None:
        """Read the sources before a trial."""
        self._failed.clear()
        now = self._now()
        for names, source in self._sources:
            try:
                source.read_before(now)
            except Unknown as reason:
                self._failed.add(names)
                self._explain(names, reason)

    def read_after(
        self, *, cpu: int | None = None, run_delay_s: float | None = None
    ) -> dict[str, float | None]:
        """Return every covariate of a trial by name; ``reasons`` explains each ``None``.

        ``cpu`` is the CPU on which the trial ran last. ``run_delay_s`` has the seconds during which
        the trial was ready but did not run. The launcher reports both.

        Before the trial: ``load_1_minute``, ``temperature_c``, and ``frequency_before_hz`` of the
        last CPU of the previous trial. Since the previous trial began: ``pressure_cpu_before``,
        ``pressure_memory_before``, ``pressure_io_before`` (fractions of the time) and
        ``steal_before`` (fraction of the CPU time). After the trial: ``frequency_hz``. Over the
        trial, in seconds: ``pressure_cpu_s``, ``pressure_memory_s``, ``pressure_io_s``,
        ``steal_s``, ``busy_s``, ``run_delay_s``. The last covariate is ``cpu``.
        """
        values: dict[str, float | None] = dict.fromkeys(
            name for names, _ in SOURCES for name in names
        )
        for names, source in self._sources:
            if names in self._failed:
                continue
            try:
                readings = dict(zip(names, source.read_after(cpu), strict=True))
            except Unknown as reason:
                self._explain(names, reason)
                continue
            values |= readings
            missing = [name for name, value in readings.items() if value is None]
            self._explain(missing, _TOO_SHORT_REASON)
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
    """Return the source if it is quick; else close the source and raise `Unknown`.

    The first of ``clocks`` measures how long a reading takes. The second returns the time of each
    reading.
    """
    clock, now = clocks
    with ExitStack() as stack:
        stack.callback(source.close)
        try:
            cpu: int | None = online_cpus(host)[0]
        except Unknown:
            # Without a list of CPUs, no source that needs a CPU was opened.
            cpu = None
        durations_s = []
        for _ in range(_TIMED_READINGS):
            start_s = clock()
            source.read_before(now())
            source.read_after(cpu)
            durations_s.append(clock() - start_s)
        if min(durations_s) > max_s:
            raise Unknown(
                f"reading it takes {1e3 * min(durations_s):.2g} ms here: too long for each trial"
            )
        stack.pop_all()
    return source


class OpenFile:
    """A small file of /proc or /sys that is opened once and read repeatedly.

    The constructor raises `Unknown` if the file cannot be opened.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._name = name
        try:
            self._descriptor = os.open(host.path(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def parse(self, parser: Callable[[bytes], Value], max_bytes: int) -> Value:
        """Parse the first ``max_bytes`` bytes of the current content.

        Raise `Unknown` if they cannot be read or the parser raises `ValueError` or `IndexError`.
        """
        try:
            return parser(os.pread(self._descriptor, max_bytes, 0))
        except OSError as error:
            raise Unknown(f"{self._name}: {error.strerror}") from None
        except (ValueError, IndexError):
            raise Unknown(f"{self._name} does not have the documented format") from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


BetweenReadings = Callable[[tuple[float, ...], tuple[float, ...], float], tuple[float | None, ...]]
"""Function of two readings and the seconds between them; returns covariates."""


class Source(Struct):
    """A source of covariates, such as a file of /proc."""

    counted_reading: CountedReading
    """Reading that gives the covariates."""
    read: Callable[[int | None], tuple[float, ...]]
    """Function that reads the source; raises `Unknown` if the host no longer has the source. The
    argument is the CPU on which the trial ran last; ``None`` if unknown."""
    files: list[OpenFile]
    divisor: float = 1.0
    """Number by which a difference is divided."""
    difference_count: int = 1
    """Number of the first values of a reading whose differences are reported."""
    between_trials: BetweenReadings | None = None
    """Function of the readings before two consecutive trials; its values are reported, too."""
    remember_cpu: Callable[[int | None], None] = lambda cpu: None
    """Function that stores the CPU of the last trial, for the reading before the next trial."""
    reading_before: tuple[float, ...] = ()
    read_at_s: float = 0.0
    """Time of the reading before the trial, in seconds."""
    values_between: tuple[float | None, ...] = ()
    """Values of ``between_trials`` for this trial."""

    def read_before(self, now: float) -> None:
        """Read the source before a trial; ``now`` is in seconds."""
        if self.counted_reading == "after":
            return
        earlier, earlier_at_s = self.reading_before, self.read_at_s
        latest = self.reading_before = self.read(None)
        self.read_at_s = now
        if self.between_trials is not None:
            # The first call, which times the source, has no earlier reading.
            seconds = now - earlier_at_s
            self.values_between = self.between_trials(earlier or latest, latest, seconds)

    def read_after(self, cpu: int | None) -> tuple[float | None, ...]:
        """Return the covariates of a trial that ran on this CPU last."""
        self.remember_cpu(cpu)
        if self.counted_reading == "before":
            return self.reading_before
        reading_after = self.read(cpu)
        if self.counted_reading == "after":
            return reading_after
        # Only ``between_trials`` uses the other values of a reading.
        pairs = zip(self.reading_before[: self.difference_count], reading_after, strict=False)
        differences = ((after - before) / self.divisor for before, after in pairs)
        return (*differences, *self.values_between)

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            file.close()


def _file_source(
    counted_reading: CountedReading,
    name: str,
    parser: Callable[[bytes], tuple[float, ...]],
    max_bytes: int,
    divisor: float = 1.0,
    difference_count: int = 1,
    between_trials: BetweenReadings | None = None,
) -> Callable[[Host], Source]:
    """Return a function that opens a source, which reads the first bytes of one file."""

    def open_source(host: Host) -> Source:
        file = OpenFile(host, name)

        def read(_: int | None) -> tuple[float, ...]:
            return file.parse(parser, max_bytes)

        return Source(counted_reading, read, [file], divisor, difference_count, between_trials)

    return open_source


def _parse_load(content: bytes) -> tuple[float]:
    return (float(content.split(None, 1)[0]),)


def _parse_pressure_us(content: bytes) -> tuple[int]:
    # The first line counts "some", and its total is the last field.
    line = content.partition(b"\n")[0]
    return (int(line[line.rindex(_TOTAL) + len(_TOTAL) :]),)


_TOTAL = b"total="
_US_PER_S = 1e6
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(1, 9)
"""Indices of the fields in the first line of /proc/stat."""


class CpuTicks(NamedTuple):
    """Ticks of all processors since the boot."""

    stolen: int
    busy: int
    total: int


def parse_cpu_ticks(content: bytes) -> CpuTicks:
    """Return the ticks of /proc/stat; raise `ValueError` or `IndexError` for another content."""
    fields = content.partition(b"\n")[0].split()
    busy_ticks = sum(int(fields[field]) for field in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ))
    stolen_ticks = int(fields[_STEAL])
    idle_ticks = int(fields[_IDLE]) + int(fields[_IOWAIT])
    return CpuTicks(stolen_ticks, busy_ticks, busy_ticks + stolen_ticks + idle_ticks)


def _stolen_fraction(
    earlier: tuple[float, ...], later: tuple[float, ...], _: float
) -> tuple[float | None]:
    # Both readings are `CpuTicks`.
    earlier_stolen, _busy, earlier_ticks = earlier
    later_stolen, _busy, later_ticks = later
    ticks = later_ticks - earlier_ticks
    return ((later_stolen - earlier_stolen) / ticks if ticks > 0 else None,)


def _waiting_fraction(
    earlier: tuple[float, ...], later: tuple[float, ...], seconds: float
) -> tuple[float | None]:
    waited_s = (later[0] - earlier[0]) / _US_PER_S
    return (min(1.0, waited_s / seconds) if seconds > 0 else None,)


def open_frequency(host: Host) -> Source:
    """Open the source of the frequency of the trial's CPU, read just after the trial.

    See the kernel's admin-guide/pm/cpufreq.rst.
    """
    files: list[OpenFile] = []
    frequency_of = _frequency_of(host, files)

    def read(cpu: int | None) -> tuple[float, ...]:
        if cpu is None:
            raise Unknown("it is not known on which CPU the trial ran")
        return (frequency_of(cpu),)

    return Source("after", read, files)


def open_frequency_before(host: Host) -> Source:
    """Open the source of the frequency before a trial.

    The CPU of the trial is not known yet, so the last CPU of the previous trial is read. Before the
    first trial, the first CPU is read.
    """
    files: list[OpenFile] = []
    frequency_of = _frequency_of(host, files)
    last_cpu = online_cpus(host)[0]

    def remember_cpu(cpu: int | None) -> None:
        nonlocal last_cpu
        last_cpu = last_cpu if cpu is None else cpu

    return Source("before", lambda _: (frequency_of(last_cpu),), files, remember_cpu=remember_cpu)


def _frequency_of(host: Host, files: list[OpenFile]) -> Callable[[int], float]:
    """Return a function that reads a CPU's frequency; raise `Unknown` if the first CPU has none."""

    @functools.cache
    def file_of(cpu: int) -> OpenFile:
        files.append(OpenFile(host, f"{CPUS_FOLDER}/cpu{cpu}/cpufreq/scaling_cur_freq"))
        return files[-1]

    file_of(online_cpus(host)[0])
    # The file is in kilohertz.
    return lambda cpu: file_of(cpu).parse(int, 32) * 1e3


ZONES = "/sys/class/thermal"
MONITORS = "/sys/class/hwmon"
"""Folders with the sensors of thermal zones and of hardware monitors."""
_PROCESSOR_ZONES = ("x86_pkg_temp", "cpu", "soc")
"""Prefixes of the types of thermal zones that belong to the processor. Other zones are less
informative, and some take milliseconds to read."""
_PROCESSOR_MONITORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
"""Names of hardware monitors that belong to the processor."""
_PACKAGE_SENSOR = "temp1_input"
"""Sensor of the whole package; reading a sensor of each core would take longer."""


def open_temperature(host: Host) -> Source:
    """Open the source of the temperature before a trial, of the processor's hottest sensor.

    See the kernel's driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst.
    """
    names = list(_zones(host)) or list(_monitors(host))
    if not names:
        raise Unknown(f"neither {ZONES} nor {MONITORS} has a sensor of the processor")
    with ExitStack() as stack:
        files = [stack.enter_context(closing(OpenFile(host, name))) for name in names]
        stack.pop_all()
    return Source("before", lambda _: (max(file.parse(int, 32) / 1e3 for file in files),), files)


def _zones(host: Host) -> Iterator[str]:
    for zone in _names(host, ZONES):
        if zone.startswith("thermal_zone"):
            if host.text(f"{ZONES}/{zone}/type").lower().startswith(_PROCESSOR_ZONES):
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
    return _file_source(
        "difference", name, _parse_pressure_us, 128, _US_PER_S, between_trials=_waiting_fraction
    )


SOURCES: tuple[tuple[tuple[str, ...], Callable[[Host], Source]], ...] = (
    # After the trial, the load average would contain the trial (proc_loadavg(5)).
    (("load_1_minute",), _file_source("before", "/proc/loadavg", _parse_load, 64)),
    # Seconds during which some process of the host waited: Documentation/accounting/psi.rst.
    ((CPU_PRESSURE, "pressure_cpu_before"), _pressure("cpu")),
    (("pressure_memory_s", "pressure_memory_before"), _pressure("memory")),
    (("pressure_io_s", "pressure_io_before"), _pressure("io")),
    # Ticks, usually of 10 ms, that the hypervisor took away or that processes used (proc_stat(5)).
    # A short trial has 0 ticks or one tick.
    (
        ("steal_s", "busy_s", "steal_before"),
        _file_source(
            "difference",
            "/proc/stat",
            parse_cpu_ticks,
            256,
            os.sysconf("SC_CLK_TCK"),
            difference_count=2,
            between_trials=_stolen_fraction,
        ),
    ),
    (("frequency_hz",), open_frequency),
    (("frequency_before_hz",), open_frequency_before),
    (("temperature_c",), open_temperature),
)
"""The covariates of each source, and the function that opens the source."""
