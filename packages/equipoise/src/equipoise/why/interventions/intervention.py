"""An intervention: a change to any condition that tests a cause; and its common forms.

An intervention changes the server, not its client. Variables of ``env KEY=VALUE PROGRAM`` are
changed in the command itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.libraries import tunables_of, tunables_text
from equipoise.design.site import Site
from equipoise.measure.environment.system import Host
from equipoise.measure.installation import REINSTALL
from equipoise.model.plan import TUNABLES_VARIABLE, Condition, Output
from equipoise.model.why import ExpectedChange, Explanation

Alter = Callable[[Condition], Condition]
"""Returns a changed condition with the same name; the planner of the campaign renames it."""

Pair = tuple[Condition, Condition]
"""The baseline and the candidate."""

OWN_LIBRARY = "libequipoise_interventions.so"
"""Library that changes one thing of a program (crates/interpose/interventions)."""
OWN_VARIABLE = "EQUIPOISE_INTERVENTION"
NOTHING = "nothing"
"""Value of `OWN_VARIABLE` for the sham, with which the library changes nothing."""


Changes = Literal["what the cause names", "the file", "threads", "CPUs", "nothing"]
"""Property that an intervention must change to reach its causes (kinds/explain/reach.py)."""
PRELOAD = "LD_PRELOAD"
Words = tuple[str, ...]


class Intervention(Struct, frozen=True):
    """A change, the causes that it tests, and whether it is possible on this host."""

    name: str
    """Stable id, listed in docs/reference/causes.md, such as ``never_mmap``."""
    summary: str
    """Subject of "… closes 97 % of the gap", such as ``keeping freed memory (mmap_max=0)``."""
    causes: frozenset[str]
    """Causes that the change tests; empty for the user's own interventions."""
    alter: Alter
    """Makes the change. ``mapped_from`` or ``tuned_for`` of the altered condition allow to check
    its effect before the first block."""
    sham: Alter | None = None
    """Prepares a condition in the same way without the change, if that is possible. The altered
    conditions are compared with their shams."""
    impossible_because: str | None = None
    """Reason why it is impossible on this host, with a hint: ``libjemalloc2 is not installed``."""
    only_confirms: bool = False
    """Whether the intervention may miss an existing cause. If it closes nothing, the cause is not
    refuted."""
    advice: str | None = None
    """Line with which a user keeps the change, with ``{command}`` for the command; ``None`` if
    nobody should keep it."""
    changes: Changes = "what the cause names"
    """Property that an observed run, or the campaign's trials, must show as changed. Without that
    change, the intervention has not reached the cause and refutes nothing."""
    expected: tuple[ExpectedChange, ...] | None = None
    """Expected changes that were checked in the plan; ``None`` before the check."""
    is_reachable: bool = True
    """Whether the intervention reaches a cause, as far as that was checked."""
    max_ratio: float = math.inf
    """Largest known ratio of times that such a change makes. A much larger gap has another cause.
    """


class Case(Struct, frozen=True):
    """A gap to choose interventions for: its conditions, their host, its causes."""

    pair: Pair
    site: Site
    causes: Sequence[Explanation] = ()
    output: Output = Output()
    """The plan's standard output, for a condition without an output of its own."""
    host: Host = field(default_factory=Host)
    ratio: float | None = None
    """Ratio of the gap's times, or the bound of its interval that is nearest to 1; ``None`` if it
    is not known."""

    def evidence_names(self, causes: frozenset[str], key: str) -> Iterator[str]:
        """Yield the names in the evidence of these causes, such as each ``file`` or ``lock``."""
        for cause in self.causes:
            value = cause.evidence.get(key)
            if cause.cause in causes and isinstance(value, str):
                yield value


def preload(
    case: Case,
    name: str,
    summary: str,
    causes: frozenset[str],
    *,
    further_change: Alter = lambda condition: condition,
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention of the preloaded library, and its sham.

    The library implements the intervention under the same ``name``. The sham does not make
    ``further_change``. ``impossible_because`` is a reason besides a missing library.
    """
    library = case.site.find_library(OWN_LIBRARY)

    def with_library(condition: Condition, mode: str) -> Condition:
        changed = with_preload(condition, library or OWN_LIBRARY, case.site)
        return with_variables(changed, {OWN_VARIABLE: mode})

    return Intervention(
        name=name,
        summary=summary,
        causes=causes,
        alter=lambda condition: further_change(with_library(condition, name)),
        sham=lambda condition: with_library(condition, NOTHING),
        impossible_because=impossible_because or cannot_preload(library, OWN_LIBRARY, REINSTALL),
    )


def tunables(
    case: Case,
    name: str,
    summary: str,
    causes: frozenset[str],
    values: Mapping[str, str],
    *,
    further_change: Alter = lambda condition: condition,
    only_confirms: bool = False,
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention that sets tunables of glibc (ld.so(8)), and makes a further change."""
    return Intervention(
        name=name,
        summary=summary,
        causes=causes,
        alter=lambda condition: with_tunables(further_change(condition), values, case.site),
        impossible_because=impossible_because,
        only_confirms=only_confirms,
        advice=f"{TUNABLES_VARIABLE}={tunables_text(dict(values))} {{command}}",
    )


def cannot_preload(library: str | None, name: str, hint: str) -> str | None:
    """Return why a library cannot be preloaded; ``hint`` helps if the library is missing."""
    if library is None:
        return f"{name} is not installed: {hint}"
    if any(sign in " :" for sign in library):
        # ld.so(8) reads a space or a colon as the end of a name, and has no escape.
        return f"LD_PRELOAD cannot name {library}: install it in a folder without spaces and colons"
    return None


def with_started(condition: Condition, **changed: Any) -> Condition:
    """Return the condition with changed fields of `Started`, in the server if there is one."""
    server = condition.server
    if server is None:
        return replace(condition, **changed)
    if "command" in changed:
        changed["start"] = changed.pop("command")
    return replace(condition, server=replace(server, **changed))


def with_process(condition: Condition, **settings: Any) -> Condition:
    """Return the condition with changed fields of `Process` in the measured process."""
    return with_started(condition, process=replace(condition.measured_process.process, **settings))


def variable(condition: Condition, name: str, site: Site) -> str | None:
    """Return the value of a variable when the condition starts."""
    started = condition.measured_process
    assignments = started.command[1 : _program_index(started.command)]
    env_variables = dict(word.split("=", 1) for word in assignments)
    return {**site.environment, **started.environment, **env_variables}.get(name)


def with_variables(
    condition: Condition, changed: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with some variables set, and without its settings of others."""
    removed = without | changed.keys()
    started = condition.measured_process
    words, program = started.command, _program_index(started.command)
    assignments = (word for word in words[1:program] if word.partition("=")[0] not in removed)
    others = {name: value for name, value in started.environment.items() if name not in removed}
    environment = {**others, **changed}
    # Equal settings in another order are the same condition.
    if environment == started.environment:
        environment = started.environment
    command = (*words[:1], *assignments, *words[program:])
    return with_started(condition, command=command, environment=environment)


def preloaded_libraries(condition: Condition, site: Site) -> tuple[str, ...]:
    """Return the libraries that a condition preloads, as ``LD_PRELOAD`` names them."""
    return tuple((variable(condition, PRELOAD, site) or "").replace(":", " ").split())


def with_preload(
    condition: Condition, library: str, site: Site, instead_of: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with a library preloaded before the others, or instead of some."""
    others = (
        other
        for other in preloaded_libraries(condition, site)
        if other != library and os.path.basename(other) not in instead_of
    )
    return with_variables(condition, {PRELOAD: " ".join((library, *others))})


def with_tunables(condition: Condition, tunables: Mapping[str, str], site: Site) -> Condition:
    """Return the condition with these tunables of glibc, in addition to its own."""
    current = tunables_of(variable(condition, TUNABLES_VARIABLE, site) or "")
    if tunables.items() <= current.items():
        return condition
    return with_variables(condition, {TUNABLES_VARIABLE: tunables_text({**current, **tunables})})


def with_prepared(condition: Condition, line: str) -> Condition:
    """Return the condition with a shell line before each trial, after its own preparation."""
    first = condition.hooks.prepare
    # A separate line, so that a comment at the end of the first line cannot hide it.
    both = line if first is None else f"( {first}\n) && {{ {line}\n}}"
    return replace(condition, hooks=replace(condition.hooks, prepare=both))


def _program_index(words: Words) -> int:
    """Return the index after ``env`` and its assignments; 1 without ``env``."""
    if not words or os.path.basename(words[0]) != "env":
        return 1
    assignments = takewhile(lambda word: "=" in word and not word.startswith("-"), words[1:])
    return 1 + len(tuple(assignments))
