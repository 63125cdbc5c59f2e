"""A server that is ready, and afterwards what became of it and what it consumed."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.measure.hooks import signal_words
from equipoise.measure.launcher import Report
from equipoise.measure.servers.place import Place
from equipoise.measure.servers.processes import Consumed
from equipoise.model.record import Sample

PREFIX = "server_"


@dataclass(slots=True)
class Service:
    """A server that is ready, and afterwards what became of it."""

    place: Place
    search_path: tuple[str, ...] = ()
    failure: str | None = None
    """Why it ended before it was told to."""
    last_words: str = ""
    """The end of its log, if it ended so."""
    samples: tuple[Sample, ...] = field(default=())
    """What it consumed while its client ran, under ``server_`` and the name of the metric."""

    def tell_how(self, report: Report, said: str) -> None:
        """Note that it ended before it was told to, and the end of its log."""
        self.failure, self.last_words = how_it_ended(report), said


def how_it_ended(report: Report) -> str:
    """In words."""
    if report.could_not_start is not None:
        return f"could not be started: {report.could_not_start}"
    if report.signal is not None:
        return signal_words(report.signal)
    return f"exit status {report.exit}"


def samples_of(before: Consumed, after: Consumed, life: Report | None) -> tuple[Sample, ...]:
    """What a server consumed between two looks.

    Parameters
    ----------
    life
        How its whole life was accounted for, if it has ended: it alone knows the switches of the
        processes that ended meanwhile, and the peak of all.
    """
    found: dict[str, float | None] = {
        "user_s": after.user_s - before.user_s,
        "sys_s": after.sys_s - before.sys_s,
        "minor_faults": after.minor_faults - before.minor_faults,
        "major_faults": after.major_faults - before.major_faults,
        "pss_bytes": after.pss_bytes,
        "max_rss_bytes": after.largest_rss_bytes,
    }
    if life is not None:
        found["max_rss_bytes"] = life.max_rss_bytes
        found["voluntary_switches"] = _since(before.voluntary_switches, life.voluntary_switches)
        found["involuntary_switches"] = _since(
            before.involuntary_switches, life.involuntary_switches
        )
    # A process that ended without being waited for takes its share with it: below zero is unknown.
    return tuple(
        Sample(PREFIX + name, float(value))
        for name, value in found.items()
        if value is not None and value >= 0
    )


def _since(before: int, whole: int | None) -> int | None:
    return None if whole is None else whole - before
