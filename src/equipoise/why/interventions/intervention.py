"""One change that can be made to any condition to test a cause, and the common forms of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from equipoise.design.libraries import TUNABLES_VARIABLE, tunables_text
from equipoise.design.site import Site
from equipoise.measure.environment.host import Host
from equipoise.model.plan import Condition, ExpectedChange, Output
from equipoise.model.why import Explanation
from equipoise.why.interventions.alter import with_preload, with_tunables, with_variables

Alter = Callable[[Condition], Condition]
"""Returns the same condition with something changed; who plans the campaign renames it."""

Pair = tuple[Condition, Condition]
"""The baseline and the candidate."""

LIBRARY_IS_MAPPED = "the process must map the library before the first block"
TUNABLES_ARE_LISTED = "glibc's loader must list the tunables as they were set"

OWN_LIBRARY = "libequipoise_interventions.so"
"""Library that changes one thing of a program (crates/interpose/interventions)."""
OWN_VARIABLE = "EQUIPOISE_INTERVENTION"
NOTHING = "nothing"
"""Value of `OWN_VARIABLE` with which that library changes nothing: the sham."""


Changes = Literal["what the cause names", "the file", "threads", "CPUs", "nothing"]
"""What an intervention must change to reach its causes (why/experiment/reach.py)."""


class Intervention(Struct, frozen=True):
    """What is changed, which causes that tests, and whether it can be done here."""

    name: str
    """Stable id, listed in docs/why.md: ``never_mmap``."""
    summary: str
    """Subject of "… closes 97 % of the gap": ``keeping freed memory (mmap_max=0)``."""
    causes: frozenset[str]
    """Causes that it tests; none for the user's own, which is tried for its own sake."""
    alter: Alter
    """Makes the change. Proof of its effect that can be checked before the first block stands in
    ``mapped_from``, ``tuned_for`` and the like of the altered condition."""
    verified: str
    """Sentence that says how its effect is proved."""
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
    asked_by: tuple[str, str] | None = None
    """Option that asked for it and the option's value; ``None`` if a cause did."""
    changes: Changes = "what the cause names"
    """What an observed run, or the campaign's trials, must show as changed. If it is as before,
    the intervention has not reached the cause, and refutes nothing."""
    expected: tuple[ExpectedChange, ...] | None = None
    """What was checked in the plan; ``None`` before it was."""
    is_reachable: bool = True
    """Whether it reaches a cause, as far as that was checked."""


class Case(Struct, frozen=True):
    """A gap that interventions are offered for: its conditions, where they run, its causes."""

    pair: Pair
    site: Site
    causes: Sequence[Explanation] = ()
    output: Output = Output()
    """The plan's standard output, for a condition without an output of its own."""
    host: Host = field(default_factory=Host)

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
    also_verified: str = "",
    impossible_because: str | None = None,
) -> Intervention:
    """Return an intervention of the preloaded library, and its sham.

    The library knows the intervention by its ``name``. ``also`` is a further change, which the sham
    does not make, and ``also_verified`` its proof. ``impossible_because`` is a reason against it
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
        verified=LIBRARY_IS_MAPPED + also_verified,
        impossible_because=impossible_because
        or cannot_preload(
            library, OWN_LIBRARY, "run `make build` in a checkout, or install the package again"
        ),
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
        verified=TUNABLES_ARE_LISTED,
        impossible_because=impossible_because,
        only_confirms=only_confirms,
        advice=f"{TUNABLES_VARIABLE}={tunables_text(dict(values))} {{command}}",
    )


def cannot_preload(library: str | None, name: str, hint: str) -> str | None:
    """Return why a library cannot be preloaded; the hint is for one that was not found."""
    if library is None:
        return f"{name} is not installed: {hint}"
    if any(one in " :" for one in library):
        # ld.so(8) takes both for the end of a name, and has no escape.
        return f"LD_PRELOAD cannot name {library}: install it in a folder without spaces and colons"
    return None
