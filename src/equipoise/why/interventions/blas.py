"""Another BLAS in both conditions, or one that is told what it runs on (design/blas.py)."""

from __future__ import annotations

import os
from dataclasses import replace

from equipoise.design.libraries import BLAS_LIBRARIES, Blas, CoreType
from equipoise.design.site import Site
from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import variable, with_variables

CAUSES = frozenset({"wrong_blas_kernel"})
PATH = "LD_LIBRARY_PATH"
FOLDERS = {os.path.realpath(library.folder): library for library in BLAS_LIBRARIES}


def offered(case: Case) -> tuple[Intervention, ...]:
    """Those that are tuned for a processor, by themselves and told of this one."""
    tuned = [library for library in BLAS_LIBRARIES if library.core_types]
    told = [(library, _best(library, case.site)) for library in tuned]
    return (
        *(_core(library, core, case) for library, core in told if core is not None),
        *(_swap(library, case) for library in tuned),
    )


def _swap(library: Blas, case: Case) -> Intervention:
    folder = str(library.folder)
    foreign = frozenset(
        other.core_variable
        for other in BLAS_LIBRARIES
        if other.core_variable and other is not library
    )

    def alter(condition: Condition) -> Condition:
        before = used_by(condition, case.site)
        if before is library:
            return condition
        kept = [one for one in _path(condition, case.site) if not _is_blas(one)]
        changed = with_variables(condition, {PATH: ":".join((folder, *kept))}, without=foreign)
        others = tuple(one for one in condition.mapped_from if not _is_blas(one))
        return replace(changed, mapped_from=(*others, folder), tuned_for=())

    return Intervention(
        name=library.name,
        words=f"the BLAS library {library.name}",
        causes=CAUSES,
        alter=alter,
        verified="the process must map a library from its folder before the first block",
        impossible_because=_missing(library),
        advice=f"{PATH}={folder} {{command}}",
    )


def _core(library: Blas, name: str, case: Case) -> Intervention:
    core = library.core_types[name]
    told = {str(library.core_variable): core.value}

    def alter(condition: Condition) -> Condition:
        used = used_by(condition, case.site)
        # What is known to use another library is no worse for it.
        if used is not None and used is not library:
            return condition
        return replace(with_variables(condition, told), tuned_for=(core.says,))

    return Intervention(
        name=f"{library.name}_{name}",
        words=f"telling {library.name} that the CPU is a {core.says}",
        causes=CAUSES,
        alter=alter,
        verified="the library must say of itself that it is tuned for that",
        impossible_because=_missing(library),
        advice=f"{library.core_variable}={core.value} {{command}}",
    )


def used_by(condition: Condition, site: Site) -> Blas | None:
    """The library that a condition's folders choose; ``None`` if they choose none that is known."""
    for folder in (*condition.mapped_from, *_path(condition, site)):
        if _is_blas(folder):
            return FOLDERS[os.path.realpath(folder)]
    return None


def _path(condition: Condition, site: Site) -> tuple[str, ...]:
    return tuple(filter(None, (variable(condition, PATH, site) or "").split(":")))


def _is_blas(folder: str) -> bool:
    return os.path.realpath(folder) in FOLDERS


def _best(library: Blas, site: Site) -> str | None:
    """The core type that asks for most of what this CPU is able to; the first of equals."""
    able = site.instructions

    def asks(one: tuple[str, CoreType]) -> int:
        return len(one[1].instructions)

    possible = [
        one
        for one in library.core_types.items()
        if able is not None and set(one[1].instructions) <= able
    ]
    return max(possible, key=asks)[0] if possible else None


def _missing(library: Blas) -> str | None:
    if library.is_installed():
        return None
    return f"{library.package} is not installed: apt install {library.package}"
