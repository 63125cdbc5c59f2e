"""Levels of one condition that set the same thing: one of them would not take effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.model.errors import UnusableInput
from equipoise.model.study import Level, Study

_JOINED = {"preload": "LD_PRELOAD", "library_path": "LD_LIBRARY_PATH"}
"""Keys that several levels may have, and the variable that they come to."""


def refuse_contradictions(study: Study, levels: Mapping[str, Level]) -> None:
    """Refuse a condition in which one level undoes what another sets.

    Parameters
    ----------
    levels
        One level of each factor, by factor.

    Raises
    ------
    UnusableInput
        It names both levels, and the key of the later one.
    """
    first: dict[tuple[str, ...], tuple[str, str, object]] = {}
    for factor, level in levels.items():
        for keys, value in _settings(level):
            if keys not in first:
                first[keys] = (factor, level.name, value)
                continue
            other, name, before = first[keys]
            if before != value:
                raise _undone(study, factor, level.name, keys, f"{name} of {other} sets it too")
    for factor, level in levels.items():
        for key, variable in _JOINED.items():
            if variable in level.environment and any(getattr(one, key) for one in levels.values()):
                raise _undone(study, factor, level.name, ("env", variable), f"{key} sets it too")


def _undone(
    study: Study, factor: str, level: str, keys: tuple[str, ...], why: str
) -> UnusableInput:
    return study.places.key("factors", factor, level, *keys).fail(
        f"{why}, and one would undo the other",
        "set it in one of them, or keep the two apart by an [[exclude]]",
    )


def _settings(level: Level) -> Iterator[tuple[tuple[str, ...], object]]:
    """What no two levels can both have their way in, by key."""
    for variable, value in level.environment.items():
        yield ("env", variable), value
    alone = {
        "command": level.command if level.server is None else None,
        "server": level.server,
        "folder": level.working_folder,
        "cpu": level.cpus,
        "aslr": level.random_addresses,
        "huge_pages": level.huge_pages,
    }
    for key, setting in alone.items():
        if setting is not None:
            yield (key,), setting
    if level.client_cpus is not None:
        yield ("client", "cpu"), level.client_cpus
