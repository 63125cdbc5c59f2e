"""List the sources, and decode their evidence about one pair of conditions.

A source is a tool that observes a run, such as a profiler. A series consists of the observations of
one execution of `equipoise why`, about one pair of conditions. Their positions count from 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.model.record import Observation
from equipoise.why.evidence import allocations, instructions
from equipoise.why.evidence.allocations import Allocations
from equipoise.why.evidence.instructions import Instructions
from equipoise.why.evidence.observer import (
    Process,
    SampledSource,
    SampledStacks,
    SystemCalls,
    read_calls,
    read_sampled,
    wrap_calls,
    wrap_sampled,
)


class Source(Struct, frozen=True):
    """A tool that observes a run, and the type of the evidence that it gives."""

    wrap: Callable[[Process, Path], Process]
    """Function that returns the process under the tool, which writes into the folder."""
    read: Callable[[Path], Any]
    """Function that reads the evidence in the folder; it returns a ``document``."""
    document: type
    """Type of the evidence; it can be written as JSON."""


def _stack_source(name: SampledSource) -> Source:
    return Source(partial(wrap_sampled, name), partial(read_sampled, name), SampledStacks)


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "system_calls": Source(wrap_calls, read_calls, SystemCalls),
        "profile": _stack_source("profile"),
        "page_faults": _stack_source("page_faults"),
        "waits": _stack_source("waits"),
        "allocations": Source(allocations.wrap, allocations.read, Allocations),
        "instructions": Source(instructions.wrap, instructions.read, Instructions),
    }
)
"""All sources by name. Each name is a field of `EvidenceSet`."""
SLOW_SOURCE = "instructions"
"""Source that slows a run down 20 to 100 times; it is used only on request."""
DEFAULT_SOURCES = tuple(name for name in SOURCES if name != SLOW_SOURCE)


def known_sources(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repetitions; raise `UnusableInput` for an unknown name, or none."""
    unknown = [name for name in names if name not in SOURCES]
    if unknown or not names:
        raise UnusableInput(
            f"there is no source of evidence {unknown[0]!r}"
            if unknown
            else "the list of sources of evidence is empty",
            hint=f"choose among {', '.join(SOURCES)}",
        )
    return tuple(dict.fromkeys(names))


Run = TypeVar("Run")
Value = TypeVar("Value")
Side = Literal["baseline", "candidate"]
"""One of the two conditions of a pair."""


class Runs(Struct, Generic[Run], frozen=True):
    """Values of the runs of each condition, in the order of the runs."""

    baseline: tuple[Run, ...] = ()
    candidate: tuple[Run, ...] = ()

    @property
    def has_both(self) -> bool:
        """Whether both conditions have a run."""
        return bool(self.baseline and self.candidate)

    @property
    def all_runs(self) -> tuple[Run, ...]:
        """The runs of the baseline, then the runs of the candidate."""
        return (*self.baseline, *self.candidate)

    def runs_of(self, side: Side) -> tuple[Run, ...]:
        """Return the runs of one condition."""
        return self.baseline if side == "baseline" else self.candidate

    def map(self, value_of: Callable[[Run], Value]) -> Runs[Value]:
        """Return one value of each run."""
        return Runs(tuple(map(value_of, self.baseline)), tuple(map(value_of, self.candidate)))


class EvidenceSet(Struct, frozen=True):
    """Observations of a pair of conditions by all sources."""

    system_calls: Runs[SystemCalls] = Runs()
    profile: Runs[SampledStacks] = Runs()
    page_faults: Runs[SampledStacks] = Runs()
    waits: Runs[SampledStacks] = Runs()
    allocations: Runs[Allocations] = Runs()
    instructions: Runs[Instructions] = Runs()
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why runs gave no evidence, by source, each reason once."""

    def by_source(self) -> dict[str, Runs[Any]]:
        """Return the runs of each source by its name."""
        return {source: getattr(self, source) for source in SOURCES}


def decode_evidence(
    observations: Sequence[Observation], baseline: int, candidate: int
) -> EvidenceSet:
    """Decode the observations of two conditions of a plan."""
    failures: dict[str, list[str]] = defaultdict(list)
    documents: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    for observation in observations:
        source = observation.source
        if observation.failure is not None:
            failures[source].append(observation.failure)
        if observation.document is not None:
            documents[source, observation.condition].append(observation.document)

    def decode(source: str, condition: int) -> tuple[Any, ...]:
        document_type = SOURCES[source].document
        contents = documents[source, condition]
        return tuple(msgspec.json.decode(content, type=document_type) for content in contents)

    return EvidenceSet(
        **{source: Runs(decode(source, baseline), decode(source, candidate)) for source in SOURCES},
        failures={source: tuple(dict.fromkeys(reasons)) for source, reasons in failures.items()},
    )


def observations_of_pair(
    observations: Iterable[Observation], baseline: int, candidate: int
) -> tuple[Observation, ...]:
    """Return the latest observation for each of two conditions, each source and repetition."""
    latest: dict[tuple[str, int, int], Observation] = {}
    for series in _series_of(observations):
        if {run.condition for run in series} <= {baseline, candidate}:
            latest |= {(run.source, run.condition, run.repetition): run for run in series}
    return tuple(latest.values())


def latest_conditions(observations: Sequence[Observation]) -> frozenset[int]:
    """Return the conditions of the latest series; empty without observations."""
    latest = _series_of(observations)[-1:]
    return frozenset(run.condition for series in latest for run in series)


def _series_of(observations: Iterable[Observation]) -> list[list[Observation]]:
    """Return the observations of each `equipoise why`, the earliest series first."""
    series: list[list[Observation]] = []
    runs = (observation for observation in observations if observation.source in SOURCES)
    for observation in runs:
        if observation.position == 0 or not series:
            series.append([])
        series[-1].append(observation)
    return series
