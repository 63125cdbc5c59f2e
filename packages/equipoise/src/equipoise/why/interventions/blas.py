"""Interventions in BLAS: another library, or another core type (processor that it assumes)."""

from __future__ import annotations

import os

from msgspec.structs import replace

from equipoise.design.libraries import BLAS_LIBRARIES, Blas
from equipoise.design.site import Site
from equipoise.model.plan import Condition
from equipoise.why.interventions.intervention import (
    Case,
    Intervention,
    variable_value,
    with_variables,
)

_CAUSES = frozenset({"wrong_blas_kernel"})
_PATH_VARIABLE = "LD_LIBRARY_PATH"
_LIBRARY_BY_FOLDER = {os.path.realpath(library.folder): library for library in BLAS_LIBRARIES}


def blas_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions that set a library to this processor, or choose another library."""
    libraries = [library for library in BLAS_LIBRARIES if library.core_types]
    core_types = [(library, _best_core_type(library, case.site)) for library in libraries]
    return (
        *(_core_intervention(library, core, case) for library, core in core_types if core),
        *(_library_intervention(library, case) for library in libraries),
    )


def _library_intervention(library: Blas, case: Case) -> Intervention:
    folder = str(library.folder)
    variables_of_other_libraries = frozenset(
        other.core_variable
        for other in BLAS_LIBRARIES
        if other.core_variable and other is not library
    )

    def alter(condition: Condition) -> Condition:
        if _chosen_library(condition, case.site) is library:
            return condition
        folders = [other for other in _library_path(condition, case.site) if not _has_blas(other)]
        path = ":".join((folder, *folders))
        changed = with_variables(condition, {_PATH_VARIABLE: path}, variables_of_other_libraries)
        other_folders = (other for other in condition.mapped_from if not _has_blas(other))
        return replace(changed, mapped_from=(*other_folders, folder), tuned_for=())

    return Intervention(
        name=library.name,
        summary=f"the BLAS library {library.name}",
        causes=_CAUSES,
        alter=alter,
        impossible_because=_missing_reason(library),
        advice=f"{_PATH_VARIABLE}={folder} {{command}}",
    )


def _core_intervention(library: Blas, core_name: str, case: Case) -> Intervention:
    core = library.core_types[core_name]
    setting = {str(library.core_variable): core.value}

    def alter(condition: Condition) -> Condition:
        current = _chosen_library(condition, case.site)
        # The setting has no effect on a condition that uses another library.
        if current is not None and current is not library:
            return condition
        return replace(with_variables(condition, setting), tuned_for=(core.reported_name,))

    return Intervention(
        name=f"{library.name}_{core_name}",
        summary=f"telling {library.name} that the CPU is a {core.reported_name}",
        causes=_CAUSES,
        alter=alter,
        impossible_because=_missing_reason(library),
        advice=f"{library.core_variable}={core.value} {{command}}",
    )


def _chosen_library(condition: Condition, site: Site) -> Blas | None:
    """Return the known BLAS library that a condition's folders choose, or ``None``."""
    for folder in (*condition.mapped_from, *_library_path(condition, site)):
        if _has_blas(folder):
            return _LIBRARY_BY_FOLDER[os.path.realpath(folder)]
    return None


def _library_path(condition: Condition, site: Site) -> tuple[str, ...]:
    return tuple(filter(None, (variable_value(condition, _PATH_VARIABLE, site) or "").split(":")))


def _has_blas(folder: str) -> bool:
    return os.path.realpath(folder) in _LIBRARY_BY_FOLDER


def _best_core_type(library: Blas, site: Site) -> str | None:
    """Return the first core type that uses most of this CPU's instruction sets, or ``None``."""
    available = site.instructions
    if available is None:
        return None
    needed = {name: core.instructions for name, core in library.core_types.items()}
    usable = [name for name in needed if available.issuperset(needed[name])]
    return max(usable, key=lambda name: len(needed[name]), default=None)


def _missing_reason(library: Blas) -> str | None:
    if library.is_installed():
        return None
    return f"{library.package} is not installed: apt install {library.package}"
