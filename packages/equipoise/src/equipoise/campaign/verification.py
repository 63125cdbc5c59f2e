"""Checks, before the first trial, that the settings of each condition take effect.

A setting may have no effect: for example, a library cannot be preloaded. This is an error, because
the condition would equal the baseline. A *core type* is a type of CPU for which a BLAS library is
tuned. A *tunable* is a setting of the C library.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.measure.environment import MappedLibraries, Unknown, mapped_libraries
from equipoise.measure.environment.hardware import HUGE_PAGES_FILE
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
from equipoise.shared.spelling import option


def mapped_by_condition(plan: Plan, environment: Mapping[str, str]) -> dict[str, MappedLibraries]:
    """Return the libraries that each condition loads at its start, by name of the condition."""
    mapped_by_launch: dict[tuple[object, ...], MappedLibraries] = {}
    mapped: dict[str, MappedLibraries] = {}
    for condition in plan.conditions:
        launch = _launch(condition, plan, environment)
        # Arguments matter only for `env`, which starts the program that they name.
        is_env = os.path.basename(launch.command[0]) == "env"
        arguments = launch.command if is_env else launch.command[:1]
        launch_key = (arguments, tuple(sorted(launch.variables.items())), launch.folder)
        if launch_key not in mapped_by_launch:
            mapped_by_launch[launch_key] = mapped_libraries(
                launch.command, launch.environment, launch.folder
            )
        mapped[condition.name] = mapped_by_launch[launch_key]
    return mapped


def check_effects(
    plan: Plan, mapped: Mapping[str, MappedLibraries], environment: Mapping[str, str]
) -> None:
    """Check that each condition takes effect.

    Raise `TookNoEffect` if a setting has no effect. Raise `UnusableInput` if the servers do not
    agree on the length of a trial.
    """
    name_by_length = {
        condition.server.trial: condition.name
        for condition in plan.conditions
        if condition.server is not None
    }
    if len(name_by_length) > 1:
        examples = [f'"{length}" for {name}' for length, name in sorted(name_by_length.items())]
        raise UnusableInput(
            f"the servers have different lengths of a trial: {', '.join(examples)}",
            hint=f'set trial = "{min(name_by_length)}" in the table of every server',
        )
    _check_cpu_sets(plan)
    checked_keys: set[object] = set()
    for condition in plan.conditions:
        # Conditions that differ only in the size of the workload are verified once.
        settings = tuple(item for item in condition.levels.items() if item[0] not in plan.sizes)
        condition_key = settings if condition.levels else condition.name
        if condition_key in checked_keys:
            continue
        checked_keys.add(condition_key)
        launch = _launch(condition, plan, environment)
        _check_process(condition)
        _check_preloads(launch, mapped[condition.name])
        if condition.tuned_for or any(map(launch.variables.get, CORE_VARIABLES)):
            _check_core_type(launch)
        if launch.variables.get(TUNABLES_VARIABLE):
            _check_tunables(launch)
        if condition.mapped_from:
            _check_libraries(launch, frozenset((mapped[condition.name].libraries or {}).values()))


class _Launch(Struct, frozen=True):
    """The start of a condition's process; with a server, the start of the server."""

    condition: Condition
    command: tuple[str, ...]
    """Command; with layouts, the command in the first layout."""
    variables: dict[str, str]
    """Environment variables that the condition sets."""
    environment: dict[str, str]
    """All environment variables of the process."""
    folder: str
    timeout_s: float


def _launch(condition: Condition, plan: Plan, environment: Mapping[str, str]) -> _Launch:
    measured = condition.measured_process
    # A server has no layouts.
    command = condition.command_in(1) if plan.layouts else measured.command
    variables, all_variables = measured.environment, {**environment, **measured.environment}
    folder = measured.process.working_folder or plan.measure.working_folder
    return _Launch(condition, command, variables, all_variables, folder, plan.measure.timeout_s)


def _check_preloads(launch: _Launch, mapped: MappedLibraries) -> None:
    if mapped.libraries is None:
        # A program that cannot be examined fails in its first trial, with its own message.
        return
    for library in launch.variables.get("LD_PRELOAD", "").replace(":", " ").split():
        if os.path.realpath(os.path.join(launch.folder, library)) in mapped.libraries.values():
            continue
        if "/" not in library and library in mapped.libraries:
            continue
        problem = next((problem for problem in mapped.problems if "LD_PRELOAD" in problem), None)
        reason = "" if problem is None else f" ({problem})"
        raise TookNoEffect(
            launch.condition.name,
            f"{mapped.program} does not load {library}{reason}",
            hint="give a library that this program can load, and a program that is linked "
            "dynamically to the C library",
            study_key="preload",
        )


@contextmanager
def _unknown_as_error(
    launch: _Launch, setting: str, *, hint: str, study_key: str, value: str | None
) -> Iterator[None]:
    """Raise `TookNoEffect` if the setting cannot be verified."""
    try:
        yield
    except Unknown as reason:
        raise TookNoEffect(
            launch.condition.name,
            f"{setting} cannot be verified: {reason}",
            hint=hint,
            study_key=study_key,
            value=value,
        ) from None


def _check_tunables(launch: _Launch) -> None:
    study_setting = {"study_key": "env", "value": TUNABLES_VARIABLE}
    hint = "use a program that is linked dynamically to glibc"
    with _unknown_as_error(launch, TUNABLES_VARIABLE, hint=hint, **study_setting):
        ignored = ignored_tunables(launch.command, launch.environment, launch.folder)
    if ignored:
        raise TookNoEffect(
            launch.condition.name,
            f"{TUNABLES_VARIABLE}: {ignored[0]}",
            hint="see `ld.so --list-tunables` for the names and their ranges",
            **study_setting,
        )


def _check_core_type(launch: _Launch) -> None:
    """Check the core type that the BLAS library reports; a server is not checked."""
    condition, variables = launch.condition, launch.variables
    if condition.server is not None:
        return
    variable = next((name for name in CORE_VARIABLES if variables.get(name)), None)
    study_setting: dict[str, Any] = {"study_key": "env", "value": variable}
    hint = "run the command in a terminal to see why"
    with _unknown_as_error(launch, "the core type", hint=hint, **study_setting):
        cores = blas_cores(condition.command, launch.environment, launch.folder, launch.timeout_s)
    difference = _core_difference(condition, variables, cores)
    if difference is not None:
        raise TookNoEffect(
            condition.name,
            difference,
            hint="see `equipoise list blas` for the core types of each library",
            **study_setting,
        )


def _core_difference(
    condition: Condition, variables: Mapping[str, str], cores: BlasCores
) -> str | None:
    if not cores.cores:
        return "the command uses no OpenBLAS or BLIS that reports its core type"
    requested = variables.get(OPENBLAS_VARIABLE)
    for core in cores.openblas if requested else ():
        if core.casefold() != str(requested).casefold():
            return f"{OPENBLAS_VARIABLE} is {requested}, and OpenBLAS is tuned for {core}"
    # For BLIS, the core type may be a number. The check of `tuned_for` below then applies.
    requested = variables.get(BLIS_VARIABLE)
    for core in cores.blis if requested else ():
        if not str(requested).isdecimal() and core != requested:
            return f"{BLIS_VARIABLE} is {requested}, and BLIS is tuned for {core}"
    if condition.tuned_for and not set(condition.tuned_for) & set(cores.cores):
        return f"the BLAS is tuned for {' and '.join(cores.cores)}, not {condition.tuned_for[0]}"
    return None


def _check_libraries(launch: _Launch, libraries: frozenset[str]) -> None:
    condition = launch.condition
    missing_path = _first_unmapped_path(condition, libraries)
    if missing_path is not None and condition.server is None:
        hint = "run the command in a terminal to see why"
        study_setting = {"study_key": "library_path", "value": missing_path}
        with _unknown_as_error(launch, "the library path", hint=hint, **study_setting):
            libraries |= opened_libraries(
                launch.command, launch.environment, launch.folder, launch.timeout_s
            )
        missing_path = _first_unmapped_path(condition, libraries)
    if missing_path is not None:
        raise TookNoEffect(
            condition.name,
            f"the command loads no library from {missing_path}",
            hint="give the folder of a library that the program uses",
            study_key="library_path",
            value=missing_path,
        )


def _first_unmapped_path(condition: Condition, libraries: frozenset[str]) -> str | None:
    mapped = libraries | {os.path.dirname(library) for library in libraries}
    return next(
        (path for path in condition.mapped_from if os.path.realpath(path) not in mapped), None
    )


def _check_cpu_sets(plan: Plan) -> None:
    """Check that this host allows the CPUs of trials that run at once."""
    forbidden = set().union(*plan.measure.cpu_sets) - os.sched_getaffinity(0)
    if forbidden:
        raise UnusableInput(
            f"the trials of this campaign run at once on CPU {min(forbidden)} too, which Equipoise "
            "may not use here",
            hint=f"allow it, or begin a new campaign without {option('duet', True)}",
        )


def _check_process(condition: Condition) -> None:
    """Check that the host allows the CPUs and the huge pages of a condition."""
    server = condition.server
    allowed = os.sched_getaffinity(0)
    for process in (condition.process, *(() if server is None else (server.process,))):
        forbidden = [cpu for cpu in process.cpus or () if cpu not in allowed]
        if forbidden:
            raise TookNoEffect(
                condition.name,
                f"Equipoise may not use CPU {forbidden[0]} on this host",
                hint=f"choose from the CPUs {', '.join(map(str, sorted(allowed)))}",
                study_key="cpu",
            )
        if process.huge_pages and _huge_pages_are_off():
            raise TookNoEffect(
                condition.name,
                f"huge pages are disabled on this host ({HUGE_PAGES_FILE})",
                hint=f"enable them: echo madvise | sudo tee {HUGE_PAGES_FILE}",
                study_key="huge_pages",
            )


def _huge_pages_are_off() -> bool:
    try:
        return "[never]" in Path(HUGE_PAGES_FILE).read_text("ascii")
    except OSError:
        # A kernel without transparent huge pages does not have this file.
        return True
