"""Changing what is set for a condition: of the server, if it has one.

``env KEY=VALUE PROGRAM`` sets variables in the command itself; what is changed is changed there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from equipoise.design.site import Site
from equipoise.model.plan import Condition, Process

Words = tuple[str, ...]


def variable(condition: Condition, name: str, site: Site) -> str | None:
    """What a variable of the environment is when the condition starts."""
    own = own_variables(condition)
    return own[name] if name in own else site.environment.get(name)


def own_variables(condition: Condition) -> dict[str, str]:
    """What the condition itself sets, not what it inherits."""
    server = condition.server
    environment = condition.environment if server is None else server.environment
    words = condition.command if server is None else server.start
    return {**environment, **_assignments(words)}


def with_variables(
    condition: Condition, changed: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Condition:
    """The condition with some variables set, and others no longer set by it."""
    gone = without | changed.keys()
    server = condition.server
    if server is None:
        return replace(
            condition,
            command=_without_assignments(condition.command, gone),
            environment=_merged(condition.environment, changed, gone),
        )
    return replace(
        condition,
        server=replace(
            server,
            start=_without_assignments(server.start, gone),
            environment=_merged(server.environment, changed, gone),
        ),
    )


def process_of(condition: Condition) -> Process:
    """What is set for the process that is measured."""
    return condition.process if condition.server is None else condition.server.process


def with_process(condition: Condition, process: Process) -> Condition:
    """The condition with this set for the process that is measured."""
    if condition.server is None:
        return replace(condition, process=process)
    return replace(condition, server=replace(condition.server, process=process))


def with_prepared(condition: Condition, line: str) -> Condition:
    """The condition with a shell's line before each trial, after what it has there already."""
    own = condition.hooks.prepare
    # On a line of its own, so that a comment at its end takes nothing with it.
    both = line if own is None else f"( {own}\n) && {{ {line}\n}}"
    return replace(condition, hooks=replace(condition.hooks, prepare=both))


def _merged(
    environment: Mapping[str, str], changed: Mapping[str, str], gone: frozenset[str]
) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if name not in gone}
    merged = {**kept, **changed}
    # Equal settings in another order are the same condition.
    return dict(environment) if merged == dict(environment) else merged


def _assignments(words: Words) -> dict[str, str]:
    own: dict[str, str] = {}
    for word in words[1 : _program_at(words)]:
        name, _, value = word.partition("=")
        own[name] = value
    return own


def _without_assignments(words: Words, names: frozenset[str]) -> Words:
    program = _program_at(words)
    kept = tuple(word for word in words[1:program] if word.partition("=")[0] not in names)
    return (*words[:1], *kept, *words[program:])


def _program_at(words: Words) -> int:
    """Where the program stands behind ``env`` and its assignments; 1 for another command."""
    if not words or os.path.basename(words[0]) != "env":
        return 1
    at = 1
    while at < len(words) and "=" in words[at] and not words[at].startswith("-"):
        at += 1
    return at
