"""Reading the covariates of each trial, within a cost that does not matter.

Files are opened once and read again by pread. A source that takes too long on this host is
left out, with the reason: what is observed must not become what is measured (rule 4).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from equipoise.measure.surroundings.covariates.frequency import Frequency
from equipoise.measure.surroundings.covariates.load import Load
from equipoise.measure.surroundings.covariates.pressure import Pressure
from equipoise.measure.surroundings.covariates.processor_time import ProcessorTime
from equipoise.measure.surroundings.covariates.source import Source
from equipoise.measure.surroundings.covariates.temperature import Temperature
from equipoise.measure.surroundings.host import Host, Unknown
from equipoise.measure.surroundings.processor import online

SOURCES: tuple[tuple[tuple[str, ...], Callable[[Host], Source]], ...] = (
    (Load.names, Load),
    (("pressure_cpu_s",), functools.partial(Pressure, resource="cpu")),
    (("pressure_memory_s",), functools.partial(Pressure, resource="memory")),
    (("pressure_io_s",), functools.partial(Pressure, resource="io")),
    (ProcessorTime.names, ProcessorTime),
    (Frequency.names, Frequency),
    (Temperature.names, Temperature),
)
"""What is read, with the names of what it gives; a new source is one line here."""

MOST_S = 200e-6
"""What one source may cost a trial, before and after it together."""
_ATTEMPTS = 5
"""The quickest counts: on a busy host any single one may be interrupted."""

RUN_DELAY = "run_delay_s"
CPU = "cpu"


class CovariateReader:
    """Reads what is observed, not set, beside each trial; a context manager.

    Call ``before`` just before a trial and ``after`` just after it, both outside its time.

    Parameters
    ----------
    host
        Whose files are read; by default this host's.
    clock
        Seconds, for the cost of each source.
    most_s
        What one source may cost a trial, in seconds.
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
        """The covariates of the trial that ``before`` was called for.

        Parameters
        ----------
        cpu
            The one on which the trial ran last, as the launcher reports it.
        run_delay_s
            For how long it was ready but did not run, as the launcher reports it.

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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _explain(self, names: Sequence[str], reason: str) -> None:
        for name in names:
            self.reasons[name] = reason


def _any_cpu(host: Host) -> int | None:
    try:
        return online(host)[0]
    except Unknown:
        # Then no source that asks for one has opened.
        return None


def _cost_s(source: Source, cpu: int | None, clock: Callable[[], float]) -> float:
    costs = []
    for _ in range(_ATTEMPTS):
        started = clock()
        source.before()
        source.after(cpu)
        costs.append(clock() - started)
    return min(costs)
