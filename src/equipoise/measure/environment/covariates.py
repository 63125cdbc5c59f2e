"""Covariates: what is observed, not set, beside each trial.

Files are opened once and read again by pread. A source that takes too long on this host is left
out with the reason: reading must not disturb what is measured (rule 4).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Literal, Protocol, Self

from equipoise.measure.environment.hardware import CPUS, online
from equipoise.measure.environment.host import Host, Unknown

MOST_S = 200e-6
"""Longest time that one source may take per trial, before and after it together."""
_ATTEMPTS = 5
"""Readings to time a source; the quickest counts, because others may be interrupted."""

RUN_DELAY = "run_delay_s"
CPU = "cpu"


class CovariateReader:
    """Reader of the covariates of each trial; a context manager.

    Call ``before`` just before a trial and ``after`` just after it, both outside its time.

    Parameters
    ----------
    host
        Host whose files are read; by default this one.
    clock
        Seconds, for the cost of each source.
    most_s
        Longest time that one source may take per trial, in seconds.
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
        self._sources: list[Source] = []
        self._failed: set[int] = set()
        self._names: list[str] = []
        for names, open_source in SOURCES:
            self._names.extend(names)
            try:
                source = open_source(host)
            except Unknown as reason:
                self._explain(names, str(reason))
                continue
            try:
                cost_s = _cost_s(source, _any_cpu(host), clock)
            except Unknown as reason:
                self._explain(names, str(reason))
                source.close()
                continue
            if cost_s > most_s:
                self._explain(
                    names, f"to read it takes {1e3 * cost_s:.2g} ms here: too long beside a trial"
                )
                source.close()
                continue
            self._sources.append(source)

    def before(self) -> None:
        """Read what is needed before a trial."""
        self._failed.clear()
        for source in self._sources:
            try:
                source.before()
            except Unknown as reason:
                self._failed.add(id(source))
                self._explain(source.names, str(reason))

    def after(
        self, *, cpu: int | None = None, run_delay_s: float | None = None
    ) -> dict[str, float | None]:
        """Return the covariates of the trial that ``before`` was called for.

        Parameters
        ----------
        cpu
            CPU on which the trial ran last, as the launcher reports it.
        run_delay_s
            Seconds for which the trial was ready but did not run, as the launcher reports it.

        Returns
        -------
        dict
            Every covariate by name, ``None`` where it is unknown (see ``reasons``):
            ``load_1_minute`` and ``temperature_c`` before the trial, ``frequency_hz`` after
            it, and over the trial, in seconds, ``pressure_cpu_s``, ``pressure_memory_s``,
            ``pressure_io_s``, ``steal_s``, ``busy_s``, ``run_delay_s``; and ``cpu``.
        """
        values: dict[str, float | None] = dict.fromkeys(self._names)
        for source in self._sources:
            if id(source) in self._failed:
                continue
            try:
                values.update(zip(source.names, source.after(cpu), strict=True))
            except Unknown as reason:
                self._explain(source.names, str(reason))
        values[RUN_DELAY] = run_delay_s
        values[CPU] = cpu
        for name in (RUN_DELAY, CPU):
            if values[name] is None:
                self.reasons[name] = "the launcher did not report it"
        return values

    def close(self) -> None:
        """Close every file."""
        for source in self._sources:
            source.close()
        self._sources.clear()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it at the end of the block."""
        self.close()

    def _explain(self, names: Sequence[str], reason: str) -> None:
        self.reasons.update(dict.fromkeys(names, reason))


def _any_cpu(host: Host) -> int | None:
    try:
        return online(host)[0]
    except Unknown:
        # Then no source that needs a CPU has opened.
        return None


def _cost_s(source: Source, cpu: int | None, clock: Callable[[], float]) -> float:
    costs = []
    for _ in range(_ATTEMPTS):
        started = clock()
        source.before()
        source.after(cpu)
        costs.append(clock() - started)
    return min(costs)


class Source(Protocol):
    """One source of covariates.

    The constructor raises ``Unknown`` where the host does not offer the source. The methods
    raise ``Unknown`` where the host no longer does.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""

    def before(self) -> None:
        """Read what is needed before a trial."""

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return the covariates of the trial, in the order of ``names``.

        Parameters
        ----------
        cpu
            CPU on which the trial ran last, if it is known.
        """

    def close(self) -> None:
        """Close the files."""


class OpenFile:
    """A small file of /proc or /sys that is opened once and read again each time.

    Raises
    ------
    Unknown
        The file cannot be opened.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._name = name
        try:
            self._descriptor = os.open(host.path(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def read(self, at_most: int = 512) -> bytes:
        """Return the first bytes of the present content.

        Raises
        ------
        Unknown
            The file can no longer be read.
        """
        try:
            return os.pread(self._descriptor, at_most, 0)
        except OSError as error:
            raise Unknown(f"{self._name}: {error.strerror}") from None

    def number(self) -> int:
        """Return the whole number that the file holds.

        Raises
        ------
        Unknown
            The file can no longer be read, or holds something else.
        """
        try:
            return int(self.read(32))
        except ValueError:
            raise self.unexpected_form() from None

    def unexpected_form(self) -> Unknown:
        """Return the error for content that cannot be understood."""
        return Unknown(f"{self._name} has another form than the kernel documents")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class _FileSource:
    """A source that reads one file."""

    def __init__(self, host: Host, name: str) -> None:
        self._file = OpenFile(host, name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Load(_FileSource):
    """Load average over the minute before the trial (proc_loadavg(5))."""

    names = ("load_1_minute",)

    def __init__(self, host: Host) -> None:
        super().__init__(host, "/proc/loadavg")
        self._load = 0.0

    def before(self) -> None:
        """Read the load; after the trial it would contain the trial itself."""
        try:
            self._load = float(self._file.read(64).split(maxsplit=1)[0])
        except (ValueError, IndexError):
            raise self._file.unexpected_form() from None

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return the load before the trial."""
        return (self._load,)


Resource = Literal["cpu", "memory", "io"]
_TOTAL = b"total="


class Pressure(_FileSource):
    """Seconds of the trial during which some process of the host waited for a resource.

    Source: the kernel's Documentation/accounting/psi.rst.
    """

    def __init__(self, host: Host, resource: Resource) -> None:
        super().__init__(host, f"/proc/pressure/{resource}")
        self.names = (f"pressure_{resource}_s",)
        self._total_us = 0

    def before(self) -> None:
        """Read the counter."""
        self._total_us = self._read()

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return how far the counter went, in seconds."""
        return ((self._read() - self._total_us) / 1e6,)

    def _read(self) -> int:
        # The first line counts "some", and its total is the last field.
        line = self._file.read(128).partition(b"\n")[0]
        try:
            return int(line[line.rindex(_TOTAL) + len(_TOTAL) :])
        except ValueError:
            raise self._file.unexpected_form() from None


_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(1, 9)


class ProcessorTime(_FileSource):
    """CPU seconds that the hypervisor took away, and that all processes used (proc_stat(5)).

    The kernel counts ticks, usually of 10 ms: a short trial shows 0 or one tick.
    """

    names = ("steal_s", "busy_s")

    def __init__(self, host: Host) -> None:
        super().__init__(host, "/proc/stat")
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._steal = self._busy = 0

    def before(self) -> None:
        """Read the counters."""
        self._steal, self._busy = self._read()

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return how far the counters went, in CPU seconds, the trial's own included."""
        steal, busy = self._read()
        return (steal - self._steal) * self._tick_s, (busy - self._busy) * self._tick_s

    def _read(self) -> tuple[int, int]:
        fields = self._file.read(256).partition(b"\n")[0].split()
        try:
            return int(fields[_STEAL]), sum(
                int(fields[field]) for field in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ)
            )
        except (ValueError, IndexError):
            raise self._file.unexpected_form() from None


class Frequency:
    """Hertz of the CPU that the trial ran on, just after it.

    Before the trial that CPU has only this process to run. Source: the kernel's
    admin-guide/pm/cpufreq.rst.
    """

    names = ("frequency_hz",)

    def __init__(self, host: Host) -> None:
        self._host = host
        self._files: dict[int, OpenFile] = {}
        self._file_of(online(host)[0])

    def before(self) -> None:
        """Read nothing."""

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return the frequency of the CPU on which the trial ran last."""
        if cpu is None:
            raise Unknown("it is not known on which CPU the trial ran")
        return (self._file_of(cpu).number() * 1e3,)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _file_of(self, cpu: int) -> OpenFile:
        if cpu not in self._files:
            self._files[cpu] = OpenFile(self._host, f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq")
        return self._files[cpu]


ZONES = "/sys/class/thermal"
MONITORS = "/sys/class/hwmon"
_PROCESSOR_ZONES = ("x86_pkg_temp", "cpu", "soc")
"""Beginnings of zone types; other zones say little, and some take milliseconds to read."""
_PROCESSOR_MONITORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
_PACKAGE_SENSOR = "temp1_input"
"""Sensor of the whole package; reading one sensor per core would cost one read per core."""


class Temperature:
    """Degrees Celsius of the hottest sensor of the processor, before the trial.

    Source: the kernel's driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst.
    """

    names = ("temperature_c",)

    def __init__(self, host: Host) -> None:
        names = list(_zones(host)) or list(_monitors(host))
        if not names:
            raise Unknown(f"neither {ZONES} nor {MONITORS} shows a sensor of the processor")
        self._files: list[OpenFile] = []
        self._hottest = 0.0
        try:
            for name in names:
                self._files.append(OpenFile(host, name))
        except Unknown:
            self.close()
            raise

    def before(self) -> None:
        """Read every sensor of the processor."""
        self._hottest = max(file.number() / 1e3 for file in self._files)

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """Return the temperature before the trial."""
        return (self._hottest,)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


def _zones(host: Host) -> Iterator[str]:
    for zone in _names(host, ZONES):
        if zone.startswith("thermal_zone"):
            kind = host.text(f"{ZONES}/{zone}/type").lower()
            if kind.startswith(_PROCESSOR_ZONES):
                yield f"{ZONES}/{zone}/temp"


def _monitors(host: Host) -> Iterator[str]:
    for monitor in _names(host, MONITORS):
        folder = f"{MONITORS}/{monitor}"
        if host.has(f"{folder}/name") and host.text(f"{folder}/name") in _PROCESSOR_MONITORS:
            if host.has(f"{folder}/{_PACKAGE_SENSOR}"):
                yield f"{folder}/{_PACKAGE_SENSOR}"


def _names(host: Host, folder: str) -> list[str]:
    return host.names(folder) if host.has(folder) else []


SOURCES: tuple[tuple[tuple[str, ...], Callable[[Host], Source]], ...] = (
    (Load.names, Load),
    (("pressure_cpu_s",), functools.partial(Pressure, resource="cpu")),
    (("pressure_memory_s",), functools.partial(Pressure, resource="memory")),
    (("pressure_io_s",), functools.partial(Pressure, resource="io")),
    (ProcessorTime.names, ProcessorTime),
    (Frequency.names, Frequency),
    (Temperature.names, Temperature),
)
"""Every source with the names of its covariates; a new source is one line here."""
