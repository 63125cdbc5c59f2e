"""One change that can be made to any condition to test a cause, and the common forms of it.

The server is altered, not its client. Variables that ``env KEY=VALUE PROGRAM`` sets in the command
itself are changed there.
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
"""Returns the same condition with something changed; who plans the campaign renames it."""

Pair = tuple[Condition, Condition]
"""The baseline and the candidate."""

OWN_LIBRARY = "libequipoise_interventions.so"
"""Library that changes one thing of a program (crates/interpose/interventions)."""
OWN_VARIABLE = "EQUIPOISE_INTERVENTION"
NOTHING = "nothing"
"""Value of `OWN_VARIABLE` with which that library changes nothing: the sham."""


Changes = Literal["what the cause names", "the file", "threads", "CPUs", "nothing"]
"""What an intervention must change to reach its causes (kinds/explain/reach.py)."""
PRELOAD = "LD_PRELOAD"
Words = tuple[str, ...]


class Intervention(Struct, frozen=True):
    """What is changed, which causes that tests, and whether it can be done here."""

    name: str
    """Stable id, listed in docs/reference/causes.md: ``never_mmap``."""
    summary: str
    """Subject of "… closes 97 % of the gap": ``keeping freed memory (mmap_max=0)``."""
    causes: frozenset[str]
    """Causes that it tests; none for the user's own, which is tried for its own sake."""
    alter: Alter
    """Makes the change. Proof of its effect that can be checked before the first block stands in
    ``mapped_from``, ``tuned_for`` and the like of the altered condition."""
    sham: Alter | None = None
    """The same machinery without the change, if it can be had: what the altered conditions are
    compared with."""
    impossible_because: str | None = None
    """Why it cannot be tried here, with the hint: ``libjemalloc2 is not installed``."""
    only_confirms: bool = False
    """Whether the cause may exist and stay untouched: if this intervention closes nothing, it
    refutes no cause then."""
    advice: str | None = None
    """Line with which a user keeps the change, ``{command}`` for the command; ``None`` if nobody
    should."""
    changes: Changes = "what the cause names"
    """What an observed run, or the campaign's trials, must show as changed. If it is as before,
    the intervention has not reached the cause, and refutes nothing."""
    expected: tuple[ExpectedChange, ...] | None = None
    """What was checked in the plan; ``None`` before it was."""
    is_reachable: bool = True
    """Whether it reaches a cause, as far as that was checked."""
    max_ratio: float = math.inf
    """Largest ratio of times that a change of this kind has been seen to make. A gap that is much
    larger has another cause."""


class Case(Struct, frozen=True):
    """A gap that interventions are offered for: its conditions, where they run, its causes."""

    pair: Pair
    site: Site
    causes: Sequence[Explanation] = ()
    output: Output = Output()
    """The plan's standard output, for a condition without an output of its own."""
    host: Host = field(default_factory=Host)
    ratio: float | None = None
    """Ratio of the gap's times, or the end of its interval that is nearest to 1; ``None`` if it is
    not known."""

    def evidence(self, causes: frozenset[str], key: str) -> Iterator[str]:
        """Yield what the evidence of these causes names, such as a ``file`` or a ``lock``."""
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
    also: Alter = lambda condition: condition,
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention of the preloaded library, and its sham.

    The library knows the intervention by its ``name``. ``also`` is a further change, which the sham
    does not make. ``impossible_because`` is a reason against it
    beside a missing library.
    """
    library = case.site.find_library(OWN_LIBRARY)

    def with_word(condition: Condition, word: str) -> Condition:
        changed = with_preload(condition, library or OWN_LIBRARY, case.site)
        return with_variables(changed, {OWN_VARIABLE: word})

    return Intervention(
        name=name,
        summary=summary,
        causes=causes,
        alter=lambda condition: also(with_word(condition, name)),
        sham=lambda condition: with_word(condition, NOTHING),
        impossible_because=impossible_because or cannot_preload(library, OWN_LIBRARY, REINSTALL),
    )


def tunables(
    case: Case,
    name: str,
    summary: str,
    causes: frozenset[str],
    values: Mapping[str, str],
    *,
    also: Alter = lambda condition: condition,
    only_confirms: bool = False,
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention that sets tunables of glibc (ld.so(8)), and may do more."""
    return Intervention(
        name=name,
        summary=summary,
        causes=causes,
        alter=lambda condition: with_tunables(also(condition), values, case.site),
        impossible_because=impossible_because,
        only_confirms=only_confirms,
        advice=f"{TUNABLES_VARIABLE}={tunables_text(dict(values))} {{command}}",
    )


def cannot_preload(library: str | None, name: str, hint: str) -> str | None:
    """Return why a library cannot be preloaded; the hint is for one that was not found."""
    if library is None:
        return f"{name} is not installed: {hint}"
    if any(sign in " :" for sign in library):
        # ld.so(8) takes both for the end of a name, and has no escape.
        return f"LD_PRELOAD cannot name {library}: install it in a folder without spaces and colons"
    return None


def with_started(condition: Condition, **changed: Any) -> Condition:
    """Return the condition with other fields of `MeasuredProcess` in what it starts."""
    server = condition.server
    if server is None:
        return replace(condition, **changed)
    if "command" in changed:
        changed["start"] = changed.pop("command")
    return replace(condition, server=replace(server, **changed))


def with_process(condition: Condition, **settings: Any) -> Condition:
    """Return the condition with other settings, fields of `Process`, of what is measured."""
    return with_started(condition, process=replace(condition.measured_process.process, **settings))


def variable(condition: Condition, name: str, site: Site) -> str | None:
    """Return the value of a variable when the condition starts."""
    started = condition.measured_process
    assignments = started.command[1 : _program_at(started.command)]
    of_env = dict(word.split("=", 1) for word in assignments)
    return {**site.environment, **started.environment, **of_env}.get(name)


def with_variables(
    condition: Condition, changed: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with some variables set, and others no longer set by it."""
    removed = without | changed.keys()
    started = condition.measured_process
    words, program = started.command, _program_at(started.command)
    assignments = (word for word in words[1:program] if word.partition("=")[0] not in removed)
    others = {name: value for name, value in started.environment.items() if name not in removed}
    environment = {**others, **changed}
    # Equal settings in another order are the same condition.
    if environment == started.environment:
        environment = started.environment
    command = (*words[:1], *assignments, *words[program:])
    return with_started(condition, command=command, environment=environment)


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
