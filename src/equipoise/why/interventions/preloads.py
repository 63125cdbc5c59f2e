"""Libraries that are preloaded, before those that a condition preloads already."""

from __future__ import annotations

import os

from equipoise.design.site import Site
from equipoise.model.plan import Condition
from equipoise.why.interventions.intervention import Alter
from equipoise.why.interventions.settings import variable, with_variables

VARIABLE = "LD_PRELOAD"
SEEN = "the process must map the library before the first block"
OWN_LIBRARY = "libequipoise_interventions.so"
"""Changes one thing of a program (crates/interpose/interventions)."""
OWN_VARIABLE = "EQUIPOISE_INTERVENTION"
NOTHING = "nothing"
"""The word with which that library changes nothing."""
_MISSING = "run `make build` in a checkout, or install the package again"


def preloaded(condition: Condition, site: Site) -> tuple[str, ...]:
    """The libraries that a condition preloads, as ``LD_PRELOAD`` names them."""
    return tuple((variable(condition, VARIABLE, site) or "").replace(":", " ").split())


def with_preload(
    condition: Condition, library: str, site: Site, instead_of: frozenset[str] = frozenset()
) -> Condition:
    """The condition with a library preloaded, and without those of these file names."""
    others = [
        one
        for one in preloaded(condition, site)
        if one != library and os.path.basename(one) not in instead_of
    ]
    return with_variables(condition, {VARIABLE: " ".join((library, *others))})


def why_not(library: str | None, name: str, hint: str) -> str | None:
    """Why a library cannot be preloaded, with the hint; ``None`` if it can.

    Parameters
    ----------
    library
        Its path; ``None`` if it was not found.
    name, hint
        What is missing then, and how to get it.
    """
    if library is None:
        return f"{name} is not installed: {hint}"
    if any(one in " :" for one in library):
        # ld.so(8) takes both for the end of a name, and knows no escape.
        return f"LD_PRELOAD cannot name {library}: install it in a folder without spaces and colons"
    return None


def why_not_own(site: Site) -> str | None:
    """Why the library of interventions cannot be preloaded; ``None`` if it can."""
    return why_not(site.find_library(OWN_LIBRARY), OWN_LIBRARY, _MISSING)


def told(word: str, site: Site) -> Alter:
    """Preloads the library of interventions with a word that it knows.

    With ``NOTHING`` each of its functions calls the one that would be called without it: the sham.
    """
    library = site.find_library(OWN_LIBRARY) or OWN_LIBRARY

    def alter(condition: Condition) -> Condition:
        return with_variables(with_preload(condition, library, site), {OWN_VARIABLE: word})

    return alter
