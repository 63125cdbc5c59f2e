"""Define an intervention, a change to both conditions that tests a cause; build interventions.

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
from equipoise.measure.installation import REINSTALL_HINT
from equipoise.model.plan import TUNABLES_VARIABLE, Condition, Output
from equipoise.model.why import Explanation, ReachCheck

Alter = Callable[[Condition], Condition]
"""Function that returns a changed condition with the same name; the campaign's plan renames it."""

INTERVENTION_LIBRARY = "libequipoise_interventions.so"
"""Preloaded library that makes the change (crates/interpose)."""
MODE_VARIABLE = "EQUIPOISE_INTERVENTION"
"""Variable that names the change of the library, such as ``quick_sync``."""
SHAM_MODE = "nothing"
"""Value of `MODE_VARIABLE` for the sham: the library changes nothing."""

ChangedProperty = Literal["evidence of the cause", "the output", "threads", "CPUs", "nothing"]
"""Property that an intervention must change to test its causes (kinds/explain/reach.py)."""
PRELOAD_VARIABLE = "LD_PRELOAD"


class Intervention(Struct, frozen=True):
    """A change, the causes that it tests, and whether it is possible on this host."""

    name: str
    """Stable id, listed in docs/reference/causes.md, such as ``never_mmap``."""
    summary: str
    """Subject of "… closes 97 % of the gap", such as ``keeping freed memory (mmap_max=0)``."""
    causes: frozenset[str]
    """Causes that the change tests; empty for the user's own interventions."""
    alter: Alter
    """Function that makes the change. The fields ``mapped_from`` and ``tuned_for`` of the changed
    condition define how the effect is checked before the first block."""
    sham: Alter | None = None
    """Function that prepares a condition in the same way, but does not make the change. Changed
    conditions are compared with their shams."""
    impossible_because: str | None = None
    """Reason why the change is impossible on this host: ``libjemalloc2 is not installed: …``."""
    cannot_refute: bool = False
    """Whether the gap may stay although the cause exists, so that nothing refutes the cause."""
    advice: str | None = None
    """Shell line with which a user keeps the change; ``{command}`` stands for the command.
    ``None`` if nobody should keep the change."""
    changed_property: ChangedProperty = "evidence of the cause"
    """Property that must differ in an observed run or in the campaign's trials. If it does not,
    the intervention has not reached the cause and refutes nothing."""
    reach_checks: tuple[ReachCheck, ...] | None = None
    """Checks whether the change reaches its causes; ``None`` before the run that they need."""
    may_reach_cause: bool = True
    """``False`` if an observed run shows that the intervention reaches no cause."""
    max_ratio: float = math.inf
    """Largest known ratio of times that such a change makes; a larger gap has another cause."""


class Case(Struct, frozen=True):
    """The conditions of a gap, their host, and the causes of the gap."""

    conditions: tuple[Condition, Condition]
    """The baseline and the candidate."""
    site: Site
    causes: Sequence[Explanation] = ()
    output: Output = Output()
    """The plan's standard output, for a condition without an output of its own."""
    host: Host = field(default_factory=Host)
    ratio: float | None = None
    """Ratio of the gap, or the end of its interval if that is nearer to 1."""

    def names_in_evidence(self, causes: frozenset[str], key: str) -> Iterator[str]:
        """Yield the names in the evidence of these causes, such as each ``file`` or ``lock``."""
        for cause in self.causes:
            value = cause.evidence.get(key)
            if cause.cause in causes and isinstance(value, str):
                yield value


def preload_intervention(
    case: Case,
    name: str,
    summary: str,
    causes: frozenset[str],
    *,
    further_change: Alter = lambda condition: condition,
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention that preloads Equipoise's own library, with its sham.

    The library implements the change under the same ``name``. The sham does not make the
    ``further_change``. ``impossible_because`` is a reason other than a missing library.
    """
    library = case.site.find_library(INTERVENTION_LIBRARY)

    def with_library(condition: Condition, mode: str) -> Condition:
        changed = with_preload(condition, library or INTERVENTION_LIBRARY, case.site)
        return with_variables(changed, {MODE_VARIABLE: mode})

    return Intervention(
        name=name,
        summary=summary,
        causes=causes,
        alter=lambda condition: further_change(with_library(condition, name)),
        sham=lambda condition: with_library(condition, SHAM_MODE),
        impossible_because=impossible_because
        or preload_obstacle(library, INTERVENTION_LIBRARY, REINSTALL_HINT),
    )


def tunables_intervention(
    case: Case,
    name: str,
    summary: str,
    causes: frozenset[str],
    values: Mapping[str, str],
    *,
    further_change: Alter = lambda condition: condition,
    cannot_refute: bool = False,
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention that sets glibc's tunables (ld.so(8)), and makes a further change."""
    return Intervention(
        name=name,
        summary=summary,
        causes=causes,
        alter=lambda condition: with_tunables(further_change(condition), values, case.site),
        impossible_because=impossible_because,
        cannot_refute=cannot_refute,
        advice=f"{TUNABLES_VARIABLE}={tunables_text(dict(values))} {{command}}",
    )


def preload_obstacle(library: str | None, name: str, install_hint: str) -> str | None:
    """Return the reason why a library cannot be preloaded; ``None`` if it can be."""
    if library is None:
        return f"{name} is not installed: {install_hint}"
    if any(character in " :" for character in library):
        # ld.so(8) reads a space or a colon as the end of a name, and has no escape.
        return f"LD_PRELOAD cannot name {library}: install it in a folder without spaces and colons"
    return None


def with_measured_process(condition: Condition, **fields: Any) -> Condition:
    """Return the condition with other fields of its server or, without a server, of its command."""
    server = condition.server
    if server is None:
        return replace(condition, **fields)
    if "command" in fields:
        fields["start"] = fields.pop("command")
    return replace(condition, server=replace(server, **fields))


def with_process(condition: Condition, **settings: Any) -> Condition:
    """Return the condition with other settings of the measured process (fields of `Process`)."""
    process = replace(condition.measured_process.process, **settings)
    return with_measured_process(condition, process=process)


def variable_value(condition: Condition, name: str, site: Site) -> str | None:
    """Return the value of an environment variable with which the condition starts."""
    process = condition.measured_process
    assignments = process.command[1 : _program_index(process.command)]
    env_variables = dict(assignment.split("=", 1) for assignment in assignments)
    return {**site.environment, **process.environment, **env_variables}.get(name)


def with_variables(
    condition: Condition, changed: Mapping[str, str], removed: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with changed environment variables, and without the removed ones."""
    dropped = removed | changed.keys()
    process = condition.measured_process
    argv, index = process.command, _program_index(process.command)
    assignments = (word for word in argv[1:index] if word.partition("=")[0] not in dropped)
    unchanged = {name: value for name, value in process.environment.items() if name not in dropped}
    environment = {**unchanged, **changed}
    # Equal variables in another order must not make another condition.
    if environment == process.environment:
        environment = process.environment
    command = (*argv[:1], *assignments, *argv[index:])
    return with_measured_process(condition, command=command, environment=environment)


def preloaded_libraries(condition: Condition, site: Site) -> tuple[str, ...]:
    """Return the libraries that a condition preloads, as ``LD_PRELOAD`` names them."""
    value = variable_value(condition, PRELOAD_VARIABLE, site) or ""
    return tuple(value.replace(":", " ").split())


def with_preload(
    condition: Condition, library: str, site: Site, instead_of: frozenset[str] = frozenset()
) -> Condition:
    """Return the condition with a further preloaded library, without those in ``instead_of``."""
    other_libraries = (
        other_library
        for other_library in preloaded_libraries(condition, site)
        if other_library != library and os.path.basename(other_library) not in instead_of
    )
    return with_variables(condition, {PRELOAD_VARIABLE: " ".join((library, *other_libraries))})


def with_tunables(condition: Condition, tunables: Mapping[str, str], site: Site) -> Condition:
    """Return the condition with further tunables of glibc."""
    current = tunables_of(variable_value(condition, TUNABLES_VARIABLE, site) or "")
    if tunables.items() <= current.items():
        return condition
    return with_variables(condition, {TUNABLES_VARIABLE: tunables_text({**current, **tunables})})


def with_preparation(condition: Condition, line: str) -> Condition:
    """Return the condition with one more shell line that prepares each trial."""
    own_line = condition.hooks.prepare
    # The condition's own line may end with a comment, so the new line begins below.
    prepare = line if own_line is None else f"( {own_line}\n) && {{ {line}\n}}"
    return replace(condition, hooks=replace(condition.hooks, prepare=prepare))


def _program_index(argv: tuple[str, ...]) -> int:
    """Return the index of the program after ``env`` and its assignments; 1 without ``env``."""
    if not argv or os.path.basename(argv[0]) != "env":
        return 1
    assignments = takewhile(lambda word: "=" in word and not word.startswith("-"), argv[1:])
    return 1 + len(tuple(assignments))
