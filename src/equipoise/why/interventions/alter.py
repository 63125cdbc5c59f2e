"""Conditions with other variables, preloaded libraries, process settings or hooks.

The server is altered, not its client. Variables that ``env KEY=VALUE PROGRAM`` sets in the command
itself are changed there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import takewhile

from msgspec.structs import replace

from equipoise.design.libraries import TUNABLES_VARIABLE, tunables_of, tunables_text
from equipoise.design.site import Site
from equipoise.model.plan import Condition, Process

PRELOAD = "LD_PRELOAD"

Words = tuple[str, ...]


def variable(condition: Condition, name: str, site: Site) -> str | None:
    """Return the value of a variable when the condition starts."""
    own = own_variables(condition)
    return own[name] if name in own else site.environment.get(name)


def own_variables(condition: Condition) -> dict[str, str]:
    """Return the variables that the condition itself sets, not those that it inherits."""
    server = condition.server
    environment = condition.environment if server is None else server.environment
    words = condition.command if server is None else server.start
    return {**environment, **_assignments(words)}


def with_variables(
    condition: Condition, changed: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with some variables set, and others no longer set by it."""
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


def preloaded(condition: Condition, site: Site) -> tuple[str, ...]:
    """Return the libraries that a condition preloads, as ``LD_PRELOAD`` names them."""
    return tuple((variable(condition, PRELOAD, site) or "").replace(":", " ").split())


def with_preload(
    condition: Condition, library: str, site: Site, instead_of: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with a library preloaded before the others, or instead of some."""
    before = (one for one in preloaded(condition, site) if one != library)
    others = (one for one in before if os.path.basename(one) not in instead_of)
    return with_variables(condition, {PRELOAD: " ".join((library, *others))})


def with_tunables(condition: Condition, tunables: Mapping[str, str], site: Site) -> Condition:
    """Return the condition with these tunables of glibc, beside others that it has."""
    own = tunables_of(variable(condition, TUNABLES_VARIABLE, site) or "")
    if tunables.items() <= own.items():
        return condition
    return with_variables(condition, {TUNABLES_VARIABLE: tunables_text({**own, **tunables})})


def process_of(condition: Condition) -> Process:
    """Return the settings of the process that is measured."""
    return condition.process if condition.server is None else condition.server.process


def with_process(condition: Condition, process: Process) -> Condition:
    """Return the condition with other settings of the process that is measured."""
    if condition.server is None:
        return replace(condition, process=process)
    return replace(condition, server=replace(condition.server, process=process))


def with_prepared(condition: Condition, line: str) -> Condition:
    """Return the condition with a shell line before each trial, after the line that it has."""
    own = condition.hooks.prepare
    # The new line is a line of its own: a comment at the end of the other hides nothing of it.
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
    pairs = (word.partition("=") for word in words[1 : _program_at(words)])
    return {name: value for name, _, value in pairs}


def _without_assignments(words: Words, names: frozenset[str]) -> Words:
    program = _program_at(words)
    kept = tuple(word for word in words[1:program] if word.partition("=")[0] not in names)
    return (*words[:1], *kept, *words[program:])


def _program_at(words: Words) -> int:
    """Return the place of the program behind ``env`` and its assignments; 1 without ``env``."""
    if not words or os.path.basename(words[0]) != "env":
        return 1
    assignments = takewhile(lambda word: "=" in word and not word.startswith("-"), words[1:])
    return 1 + len(tuple(assignments))
