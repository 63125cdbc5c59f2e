"""Conditions with other variables, preloaded libraries, process settings or hooks.

The server is altered, not its client. Variables that ``env KEY=VALUE PROGRAM`` sets in the command
itself are changed there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from equipoise.design.libraries import TUNABLES_VARIABLE, tunables_of, tunables_text
from equipoise.design.site import Site
from equipoise.model.plan import Condition, Process

PRELOAD = "LD_PRELOAD"

Words = tuple[str, ...]


class Started(Struct, frozen=True):
    """What a condition starts to be measured: its server, or its command if it has none."""

    command: Words
    environment: dict[str, str]
    process: Process


def started_by(condition: Condition) -> Started:
    """Return what a condition starts to be measured."""
    server = condition.server
    if server is None:
        return Started(condition.command, condition.environment, condition.process)
    return Started(server.start, server.environment, server.process)


def with_started(condition: Condition, started: Started) -> Condition:
    """Return the condition that starts this instead."""
    server = condition.server
    if server is None:
        return replace(condition, **asdict(started))
    changed = replace(
        server, start=started.command, environment=started.environment, process=started.process
    )
    return replace(condition, server=changed)


def with_process(condition: Condition, **settings: Any) -> Condition:
    """Return the condition with other settings, fields of `Process`, of what is measured."""
    started = started_by(condition)
    return with_started(condition, replace(started, process=replace(started.process, **settings)))


def variable(condition: Condition, name: str, site: Site) -> str | None:
    """Return the value of a variable when the condition starts."""
    started = started_by(condition)
    assignments = started.command[1 : _program_at(started.command)]
    of_env = dict(word.split("=", 1) for word in assignments)
    return {**site.environment, **started.environment, **of_env}.get(name)


def with_variables(
    condition: Condition, changed: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with some variables set, and others no longer set by it."""
    removed = without | changed.keys()
    started = started_by(condition)
    words, program = started.command, _program_at(started.command)
    assignments = (word for word in words[1:program] if word.partition("=")[0] not in removed)
    others = {name: value for name, value in started.environment.items() if name not in removed}
    environment = {**others, **changed}
    # Equal settings in another order are the same condition.
    if environment == started.environment:
        environment = started.environment
    command = (*words[:1], *assignments, *words[program:])
    return with_started(condition, replace(started, command=command, environment=environment))


def preloaded(condition: Condition, site: Site) -> tuple[str, ...]:
    """Return the libraries that a condition preloads, as ``LD_PRELOAD`` names them."""
    return tuple((variable(condition, PRELOAD, site) or "").replace(":", " ").split())


def with_preload(
    condition: Condition, library: str, site: Site, instead_of: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with a library preloaded before the others, or instead of some."""
    others = (
        other
        for other in preloaded(condition, site)
        if other != library and os.path.basename(other) not in instead_of
    )
    return with_variables(condition, {PRELOAD: " ".join((library, *others))})


def with_tunables(condition: Condition, tunables: Mapping[str, str], site: Site) -> Condition:
    """Return the condition with these tunables of glibc, beside others that it has."""
    current = tunables_of(variable(condition, TUNABLES_VARIABLE, site) or "")
    if tunables.items() <= current.items():
        return condition
    return with_variables(condition, {TUNABLES_VARIABLE: tunables_text({**current, **tunables})})


def with_prepared(condition: Condition, line: str) -> Condition:
    """Return the condition with a shell line before each trial, after the line that it has."""
    first = condition.hooks.prepare
    # The new line is a line of its own: a comment at the end of the other hides nothing of it.
    both = line if first is None else f"( {first}\n) && {{ {line}\n}}"
    return replace(condition, hooks=replace(condition.hooks, prepare=both))


def _program_at(words: Words) -> int:
    """Return the place of the program behind ``env`` and its assignments; 1 without ``env``."""
    if not words or os.path.basename(words[0]) != "env":
        return 1
    assignments = takewhile(lambda word: "=" in word and not word.startswith("-"), words[1:])
    return 1 + len(tuple(assignments))
