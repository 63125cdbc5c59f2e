"""Interventions in BLAS: another library, or another processor that a library is set to."""

from __future__ import annotations

import os

from msgspec.structs import replace

from equipoise.design.libraries import BLAS_LIBRARIES, Blas
from equipoise.design.site import Site
from equipoise.model.plan import Condition
from equipoise.why.interventions.intervention import Case, Intervention, variable, with_variables

CAUSES = frozenset({"wrong_blas_kernel"})
PATH = "LD_LIBRARY_PATH"
FOLDERS = {os.path.realpath(library.folder): library for library in BLAS_LIBRARIES}


def offered(case: Case) -> tuple[Intervention, ...]:
    """Return the libraries that are tuned for processors: set to this processor, then unset."""
    tuned = [library for library in BLAS_LIBRARIES if library.core_types]
    best = [(library, _best(library, case.site)) for library in tuned]
    return (
        *(_core(library, core, case) for library, core in best if core is not None),
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
        if used_by(condition, case.site) is library:
            return condition
        others = [other for other in _path(condition, case.site) if not _is_blas(other)]
        changed = with_variables(condition, {PATH: ":".join((folder, *others))}, without=foreign)
        mapped = (other for other in condition.mapped_from if not _is_blas(other))
        return replace(changed, mapped_from=(*mapped, folder), tuned_for=())

    return Intervention(
        name=library.name,
        summary=f"the BLAS library {library.name}",
        causes=CAUSES,
        alter=alter,
        impossible_because=_missing(library),
        advice=f"{PATH}={folder} {{command}}",
    )


def _core(library: Blas, name: str, case: Case) -> Intervention:
    core = library.core_types[name]
    setting = {str(library.core_variable): core.value}

    def alter(condition: Condition) -> Condition:
        used = used_by(condition, case.site)
        # The setting does not concern a condition that is known to use another library.
        if used is not None and used is not library:
            return condition
        return replace(with_variables(condition, setting), tuned_for=(core.reported_name,))

    return Intervention(
        name=f"{library.name}_{name}",
        summary=f"telling {library.name} that the CPU is a {core.reported_name}",
        causes=CAUSES,
        alter=alter,
        impossible_because=_missing(library),
        advice=f"{library.core_variable}={core.value} {{command}}",
    )


def used_by(condition: Condition, site: Site) -> Blas | None:
    """Return the library that a condition's folders choose; ``None`` if no known one."""
    for folder in (*condition.mapped_from, *_path(condition, site)):
        if _is_blas(folder):
            return FOLDERS[os.path.realpath(folder)]
    return None


def _path(condition: Condition, site: Site) -> tuple[str, ...]:
    return tuple(filter(None, (variable(condition, PATH, site) or "").split(":")))


def _is_blas(folder: str) -> bool:
    return os.path.realpath(folder) in FOLDERS


def _best(library: Blas, site: Site) -> str | None:
    """Return the core type that needs most of this CPU's instructions; the first of equals."""
    available = site.instructions
    needed = {name: core.instructions for name, core in library.core_types.items()}
    possible = [
        name for name in needed if available is not None and available.issuperset(needed[name])
    ]
    return max(possible, key=lambda name: len(needed[name]), default=None)


def _missing(library: Blas) -> str | None:
    if library.is_installed():
        return None
    return f"{library.package} is not installed: apt install {library.package}"
