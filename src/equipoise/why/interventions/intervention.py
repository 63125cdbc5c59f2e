"""One change that can be made to any condition to test an explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equipoise.model.plan import Condition

Alter = Callable[[Condition], Condition]
"""The same condition with something changed; its name is given by who plans the campaign."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """What is changed, which causes that tests, and whether it can be done here."""

    name: str
    """A stable id, listed in docs/why.md: ``never_mmap``."""
    words: str
    """The subject of "… closes 97 % of the gap": ``keeping freed memory (mmap_max=0)``."""
    causes: frozenset[str]
    """The causes that it tests; empty for the user's own, which is tried for its own sake."""
    alter: Alter
    """With the intervention. What must be seen to have taken effect stands in ``mapped_from``,
    ``tuned_for`` and the like of the condition, and is checked before the first block."""
    verified: str
    """How it is seen to have taken effect, in words."""
    sham: Alter | None = None
    """The same machinery doing nothing, where there is such a thing: the "without" arm then."""
    impossible_because: str | None = None
    """Why it cannot be tried here, with the hint: ``libjemalloc2 is not installed``."""
    only_confirms: bool = False
    """Whether the cause may be there and stay untouched: that this closes nothing refutes no cause
    then."""
    advice: str | None = None
    """The line with which a user keeps it, ``{command}`` for the command; ``None`` if nobody
    should."""
    asked_by: tuple[str, str] | None = None
    """The option and its value that asked for it; ``None`` if a cause did."""
