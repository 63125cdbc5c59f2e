"""Verification, before the first trial, that each condition took effect.

A preload that did not load, a library path from which nothing is mapped, or a tunable that the C
library ignores would make the condition equal to the baseline. That is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from equipoise.measure.environment import MappedLibraries, Unknown, mapped_libraries
from equipoise.measure.environment.hardware import HUGE_PAGES
from equipoise.measure.environment.libraries import (
    BLIS_VARIABLE,
    CORE_VARIABLES,
    OPENBLAS_VARIABLE,
    BlasCores,
    blas_cores,
    ignored_tunables,
    opened_libraries,
)
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import TUNABLES_VARIABLE, Condition, Plan


def mapped_by_condition(plan: Plan, environment: Mapping[str, str]) -> dict[str, MappedLibraries]:
    """Return the libraries that each condition maps at its start, by its name."""
    known: dict[tuple[object, ...], MappedLibraries] = {}
    mapped: dict[str, MappedLibraries] = {}
    for condition in plan.conditions:
        launch = _launch(condition, plan, environment)
        # Only `env` and similar programs find the program that they start in their arguments.
        is_env = os.path.basename(launch.command[0]) == "env"
        arguments = launch.command if is_env else launch.command[:1]
        key = (arguments, tuple(sorted(launch.variables.items())), launch.folder)
        if key not in known:
            known[key] = mapped_libraries(launch.command, launch.environment, launch.folder)
        mapped[condition.name] = known[key]
    return mapped


def check_effects(
    plan: Plan, mapped: Mapping[str, MappedLibraries], environment: Mapping[str, str]
) -> None:
    """Refuse a plan in which a condition did not take effect.

    Raise `TookNoEffect`, which names the condition and the setting that did not take effect.
    """
    if (
        len(
            {
                condition.server.trial
                for condition in plan.conditions
                if condition.server is not None
            }
        )
        > 1
    ):
        raise UnusableInput(
            "a trial is the whole life of one server, but an interval of another",
            hint="give every server the same trial",
        )
    checked: set[object] = set()
    for condition in plan.conditions:
        # A condition at several sizes is verified once.
        what = tuple(level for level in condition.levels.items() if level[0] not in plan.sizes)
        key = what if condition.levels else condition.name
        if key in checked:
            continue
        checked.add(key)
        launch = _launch(condition, plan, environment)
        _check_process(condition)
        _check_preloads(launch, mapped[condition.name])
        if (
            any(launch.variables.get(variable) for variable in CORE_VARIABLES)
            or condition.tuned_for
        ):
            _check_core_type(launch)
        if launch.variables.get(TUNABLES_VARIABLE):
            _check_tunables(launch)
        if condition.mapped_from:
            _check_libraries(launch, frozenset((mapped[condition.name].libraries or {}).values()))


class _Launch(Struct, frozen=True):
    """The start of a condition or, with a server, of the server."""

    condition: Condition
    command: tuple[str, ...]
    """Command; the first of several that differ only in the layout."""
    variables: dict[str, str]
    """Variables that the condition sets."""
    environment: dict[str, str]
    """All variables."""
    folder: str
    timeout_s: float


def _launch(condition: Condition, plan: Plan, environment: Mapping[str, str]) -> _Launch:
    started = condition.measured_process
    # A server has no layouts.
    command = condition.command_in(1) if plan.layouts else started.command
    variables, whole = started.environment, {**environment, **started.environment}
    folder = started.process.working_folder or plan.measure.working_folder
    return _Launch(condition, command, variables, whole, folder, plan.measure.timeout_s)


def _check_preloads(launch: _Launch, mapped: MappedLibraries) -> None:
    if mapped.libraries is None:
        # A program that cannot be examined fails in its first trial, with its own message.
        return
    for library in launch.variables.get("LD_PRELOAD", "").replace(":", " ").split():
        if os.path.realpath(os.path.join(launch.folder, library)) in mapped.libraries.values():
            continue
        if "/" not in library and library in mapped.libraries:
            continue
        complaint = next((problem for problem in mapped.problems if "LD_PRELOAD" in problem), None)
        why = "" if complaint is None else f" ({complaint})"
        raise TookNoEffect(
            launch.condition.name,
            f"{library} is not mapped by {mapped.program}{why}",
            hint="give a library that its loader can load, and a program that is linked to "
            "the C library dynamically",
            key="preload",
        )


@contextmanager
def _verifying(
    launch: _Launch, what: str, *, hint: str, key: str, value: str | None
) -> Iterator[None]:
    """Refuse a condition that cannot be verified."""
    try:
        yield
    except Unknown as reason:
        raise TookNoEffect(
            launch.condition.name,
            f"{what} cannot be verified: {reason}",
            hint=hint,
            key=key,
            value=value,
        ) from None


def _check_tunables(launch: _Launch) -> None:
    setting = {"key": "env", "value": TUNABLES_VARIABLE}
    with _verifying(launch, TUNABLES_VARIABLE, hint="use a program of glibc", **setting):
        ignored = ignored_tunables(launch.command, launch.environment, launch.folder)
    if ignored:
        raise TookNoEffect(
            launch.condition.name,
            f"{TUNABLES_VARIABLE}: {ignored[0]}",
            hint="see `ld.so --list-tunables` for the names and their ranges",
            **setting,
        )


def _check_core_type(launch: _Launch) -> None:
    """Check the core type that the BLAS reports; a server cannot report it."""
    condition, variables = launch.condition, launch.variables
    if condition.server is not None:
        return
    variable = next((name for name in CORE_VARIABLES if variables.get(name)), None)
    hint = "try the command by hand"
    with _verifying(launch, "its core type", hint=hint, key="env", value=variable):
        tuned = blas_cores(condition.command, launch.environment, launch.folder, launch.timeout_s)
    wrong = _core_difference(condition, variables, tuned)
    if wrong is not None:
        raise TookNoEffect(
            condition.name,
            wrong,
            hint="see `equipoise list blas` for the core types of each library",
            key="env",
            value=variable,
        )


def _core_difference(
    condition: Condition, variables: Mapping[str, str], tuned: BlasCores
) -> str | None:
    """Return how the core type of a BLAS differs from the requested one, or ``None``."""
    if not tuned.cores:
        return "it uses no OpenBLAS or BLIS that reports its core type"
    requested = variables.get(OPENBLAS_VARIABLE)
    for core in tuned.openblas if requested else ():
        if core.casefold() != str(requested).casefold():
            return f"{OPENBLAS_VARIABLE} is {requested}, and OpenBLAS is tuned for {core}"
    # BLIS has its own numbers for core types; a level also gives the name of the core type.
    requested = variables.get(BLIS_VARIABLE)
    for core in tuned.blis if requested else ():
        if not str(requested).isdecimal() and core != requested:
            return f"{BLIS_VARIABLE} is {requested}, and BLIS is tuned for {core}"
    if condition.tuned_for and not set(condition.tuned_for) & set(tuned.cores):
        return f"it is tuned for {' and '.join(tuned.cores)}, not {condition.tuned_for[0]}"
    return None


def _check_libraries(launch: _Launch, libraries: frozenset[str]) -> None:
    condition = launch.condition
    missing = _not_mapped(condition, libraries)
    if missing is not None and condition.server is None:
        hint = "try the command by hand"
        with _verifying(launch, "it", hint=hint, key="library_path", value=missing):
            libraries |= opened_libraries(
                launch.command, launch.environment, launch.folder, launch.timeout_s
            )
        missing = _not_mapped(condition, libraries)
    if missing is not None:
        raise TookNoEffect(
            condition.name,
            f"it maps no library from {missing}",
            hint="name the folder of a library that the program uses",
            key="library_path",
            value=missing,
        )


def _not_mapped(condition: Condition, libraries: frozenset[str]) -> str | None:
    """Return the first folder or file from which a condition should map a library but does not."""
    mapped = libraries | {os.path.dirname(library) for library in libraries}
    return next(
        (path for path in condition.mapped_from if os.path.realpath(path) not in mapped), None
    )


def _check_process(condition: Condition) -> None:
    server = condition.server
    allowed = os.sched_getaffinity(0)
    for process in (condition.process, *(() if server is None else (server.process,))):
        absent = [cpu for cpu in process.cpus or () if cpu not in allowed]
        if absent:
            raise TookNoEffect(
                condition.name,
                f"Equipoise may not use CPU {absent[0]}",
                hint=f"the CPUs are {', '.join(map(str, sorted(allowed)))}",
                key="cpu",
            )
        if process.huge_pages and _huge_pages_are_off():
            raise TookNoEffect(
                condition.name,
                f"this host gives no huge pages ({HUGE_PAGES})",
                hint=f"echo madvise | sudo tee {HUGE_PAGES}",
                key="huge_pages",
            )


def _huge_pages_are_off() -> bool:
    try:
        return "[never]" in Path(HUGE_PAGES).read_text("ascii")
    except OSError:
        # A kernel without transparent huge pages does not have this file.
        return True
