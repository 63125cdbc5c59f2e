"""The environment as the page shows it: what is short at once, long parts folded, alikes once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.report.units import byte_count

UNKNOWN = "unknown"
FOLDED_FROM = 8
"""So many lines of one part are folded."""
NAMED = 3
"""Of parts that are alike."""


@dataclass(frozen=True, slots=True)
class EnvironmentView:
    """Lines of a table: what, and its value."""

    facts: tuple[tuple[str, str], ...]
    folded: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """The title of each long part, and its lines."""


def environment_view(environment: Mapping[str, Any]) -> EnvironmentView:
    """Put an environment into lines; nothing that is known of it is left out."""
    facts: list[tuple[str, str]] = []
    folded: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for key, value in environment.items():
        if not isinstance(value, Mapping):
            facts.extend(flattened({key: value}))
            continue
        lines = tuple(flattened({key: _alike_once(value)}))
        if len(lines) < FOLDED_FROM:
            facts.extend(lines)
        else:
            folded.append((key.replace("_", " "), lines))
    return EnvironmentView(tuple(facts), tuple(folded))


def flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as lines of a table; what is null is unknown."""
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{prefix}{key}, ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(str(one) for one in value) or "none"
        elif isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif str(key).endswith("_bytes") and isinstance(value, int | float):
            yield name.removesuffix(" bytes"), byte_count(value)
        else:
            yield name, UNKNOWN if value is None else str(value)


def _alike_once(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Mappings of the same content under one name, which says whose they are."""
    names: dict[str, list[str]] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            names.setdefault(repr(value), []).append(name)
    if all(len(alike) == 1 for alike in names.values()):
        return values
    merged: dict[str, Any] = {}
    for name, value in values.items():
        alike = names.get(repr(value), [name]) if isinstance(value, Mapping) else [name]
        if alike[0] == name:
            merged[_together(alike, len(values))] = value
    return merged


def _together(names: list[str], of: int) -> str:
    if len(names) == of and of > NAMED:
        return f"all {of} alike"
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
