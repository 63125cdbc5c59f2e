"""What is read of a result document that another Equipoise wrote, here or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Which campaign."""

    id: str
    study: str
    started: str


@dataclass(frozen=True, slots=True)
class StoredCondition:
    """One condition."""

    name: str
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """One trial."""

    block: int
    condition: str
    analysed: bool
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """As much of a result document as is held against another one."""

    schema: str
    run: StoredRun
    environment: dict[str, Any]
    conditions: tuple[StoredCondition, ...]
    trials: tuple[StoredTrial, ...]


class Run(Protocol):
    """Of a result document or of a stored one."""

    @property
    def id(self) -> str: ...
    @property
    def started(self) -> str: ...


class Condition(Protocol):
    """Of a result document or of a stored one."""

    @property
    def name(self) -> str: ...
    @property
    def unknown(self) -> dict[str, str]: ...


class Trial(Protocol):
    """Of a result document or of a stored one."""

    @property
    def block(self) -> int: ...
    @property
    def condition(self) -> str: ...
    @property
    def analysed(self) -> bool: ...
    @property
    def metrics(self) -> dict[str, float]: ...


class Result(Protocol):
    """A result document, or a stored one."""

    @property
    def run(self) -> Run: ...
    @property
    def environment(self) -> dict[str, Any]: ...
    @property
    def conditions(self) -> Sequence[Condition]: ...
    @property
    def trials(self) -> Sequence[Trial]: ...
