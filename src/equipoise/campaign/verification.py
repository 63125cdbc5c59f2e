"""Verification that each condition is what its name says, before anything is measured.

A preload that did not load, a library path from which nothing is mapped and a tunable that the C
library ignores make a condition that is the baseline under another name. That is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from equipoise.measure.environment import Mapped, Unknown, mapped_libraries
from equipoise.measure.environment.libraries import (
    BLIS_VARIABLE,
    CORE_VARIABLES,
    OPENBLAS_VARIABLE,
    TUNABLES_VARIABLE,
    BlasCores,
    blas_cores,
    ignored_tunables,
    loader_of,
    opened_libraries,
)
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Condition, Plan

HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


def mapped_by_condition(plan: Plan, environment: Mapping[str, str]) -> dict[str, Mapped]:
    """Return the libraries that each condition maps at its start, by its name."""
    known: dict[tuple[object, ...], Mapped] = {}
    mapped: dict[str, Mapped] = {}
    for condition in plan.conditions:
        command, own, folder = _what_starts(condition, plan)
        # Only `env` and its like look at the arguments to find what they start.
        arguments = command if os.path.basename(command[0]) == "env" else command[:1]
        key = (arguments, tuple(sorted(own.items())), folder)
        if key not in known:
            known[key] = mapped_libraries(command, {**environment, **own}, folder)
        mapped[condition.name] = known[key]
    return mapped


def check_that_each_took_effect(
    plan: Plan, mapped: Mapping[str, Mapped], environment: Mapping[str, str]
) -> None:
    """Refuse a plan in which a condition did not take effect.

    Raises
    ------
    TookNoEffect
        The error names the condition and what did not take effect.
    """
    _check_kind_of_trials(plan)
    checked: set[tuple[object, ...]] = set()
    for condition in plan.conditions:
        command, own, folder = _what_starts(condition, plan)
        what = _without_size(condition, plan)
        if what in checked:
            continue
        checked.add(what)
        _check_process(condition)
        for missing in _not_preloaded(own, mapped[condition.name], folder):
            raise TookNoEffect(
                condition.name,
                missing,
                hint="give a library that its loader can load, and a program that is linked to "
                "the C library dynamically",
                key="preload",
            )
        if any(own.get(variable) for variable in CORE_VARIABLES) or condition.tuned_for:
            _check_core_type(condition, plan, own, environment)
        if own.get(TUNABLES_VARIABLE):
            _check_tunables(condition, command, {**environment, **own}, folder)
        _check_libraries(condition, mapped[condition.name], plan, {**environment, **own})


def _check_kind_of_trials(plan: Plan) -> None:
    """Refuse trials that are lives of servers beside trials that are intervals."""
    kinds = {one.server.trial for one in plan.conditions if one.server is not None}
    if len(kinds) > 1:
        raise UnusableInput(
            "a trial is the whole life of one server, but an interval of another",
            hint="give every server the same trial",
        )


def _without_size(condition: Condition, plan: Plan) -> tuple[object, ...]:
    """Return what a condition is at every size: one of them is verified for all."""
    if not condition.levels:
        return (condition.name,)
    return tuple(level for level in condition.levels.items() if level[0] not in plan.sizes)


def _what_starts(condition: Condition, plan: Plan) -> tuple[tuple[str, ...], dict[str, str], str]:
    """Return the command, its own environment and its folder; with a server, those of the server.

    Of programs that differ in layout alone, the first represents all.
    """
    usual = plan.measure.working_folder
    if condition.server is not None:
        server = condition.server
        return server.start, server.environment, server.process.working_folder or usual
    return (
        condition.command_in(1 if plan.layouts else None),
        condition.environment,
        condition.process.working_folder or usual,
    )


def _not_preloaded(own: Mapping[str, str], mapped: Mapped, folder: str) -> Iterator[str]:
    for library in own.get("LD_PRELOAD", "").replace(":", " ").split():
        if mapped.libraries is None:
            # A program that cannot be examined fails in its first trial, with its own message.
            return
        if os.path.realpath(os.path.join(folder, library)) in mapped.libraries.values():
            continue
        if "/" not in library and library in mapped.libraries:
            continue
        complaints = [problem for problem in mapped.problems if "LD_PRELOAD" in problem]
        why = f" ({complaints[0]})" if complaints else ""
        yield f"{library} is not mapped by {mapped.program}{why}"


def _check_tunables(
    condition: Condition, command: tuple[str, ...], environment: Mapping[str, str], folder: str
) -> None:
    try:
        loader = loader_of(command, environment, folder)
        ignored = () if loader is None else ignored_tunables(loader, environment)
    except Unknown as reason:
        raise TookNoEffect(
            condition.name,
            f"{TUNABLES_VARIABLE} cannot be verified: {reason}",
            hint="use a program of glibc",
            key="env",
            value=TUNABLES_VARIABLE,
        ) from None
    if ignored:
        raise TookNoEffect(
            condition.name,
            f"{TUNABLES_VARIABLE}: {ignored[0]}",
            hint="see `ld.so --list-tunables` for the names and their ranges",
            key="env",
            value=TUNABLES_VARIABLE,
        )


def _check_core_type(
    condition: Condition, plan: Plan, own: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Ask the BLAS what it is tuned for; a server cannot be asked."""
    if condition.server is not None:
        return
    folder = condition.process.working_folder or plan.measure.working_folder
    variable = next((name for name in CORE_VARIABLES if own.get(name)), None)
    try:
        tuned = blas_cores(
            condition.command, {**environment, **own}, folder, plan.measure.timeout_s
        )
    except Unknown as reason:
        raise TookNoEffect(
            condition.name,
            f"its core type cannot be verified: {reason}",
            hint="try the command by hand",
            key="env",
            value=variable,
        ) from None
    wrong = _wrong_core(condition, own, tuned)
    if wrong is not None:
        raise TookNoEffect(
            condition.name,
            wrong,
            hint="see `equipoise list blas` for core types that a library knows",
            key="env",
            value=variable,
        )


def _wrong_core(condition: Condition, own: Mapping[str, str], tuned: BlasCores) -> str | None:
    """Return how the core type of a BLAS differs from the requested one, or ``None``."""
    if not tuned.cores:
        return "no OpenBLAS and no BLIS that it uses says which core type it is tuned for"
    requested = own.get(OPENBLAS_VARIABLE)
    for core in tuned.openblas if requested else ():
        if core.casefold() != str(requested).casefold():
            return f"{OPENBLAS_VARIABLE} is {requested}, and OpenBLAS is tuned for {core}"
    # The numbers of BLIS are its own; a level gives the name of the core type beside them.
    requested = own.get(BLIS_VARIABLE)
    for core in tuned.blis if requested else ():
        if not str(requested).isdecimal() and core != requested:
            return f"{BLIS_VARIABLE} is {requested}, and BLIS is tuned for {core}"
    if condition.tuned_for and not set(condition.tuned_for) & set(tuned.cores):
        return f"it is tuned for {' and '.join(tuned.cores)}, not {condition.tuned_for[0]}"
    return None


def _check_libraries(
    condition: Condition, mapped: Mapped, plan: Plan, environment: Mapping[str, str]
) -> None:
    if not condition.mapped_from:
        return
    libraries = frozenset((mapped.libraries or {}).values())
    missing = [place for place in condition.mapped_from if not _comes_from(place, libraries)]
    if missing and condition.server is None:
        folder = condition.process.working_folder or plan.measure.working_folder
        try:
            command, _, folder = _what_starts(condition, plan)
            libraries |= opened_libraries(command, environment, folder, plan.measure.timeout_s)
        except Unknown as reason:
            raise TookNoEffect(
                condition.name,
                f"it cannot be verified: {reason}",
                hint="try the command by hand",
                key="library_path",
                value=missing[0],
            ) from None
        missing = [place for place in missing if not _comes_from(place, libraries)]
    if missing:
        raise TookNoEffect(
            condition.name,
            f"it maps no library from {missing[0]}",
            hint="name the folder of a library that the program uses",
            key="library_path",
            value=missing[0],
        )


def _comes_from(place: str, libraries: frozenset[str]) -> bool:
    real = os.path.realpath(place)
    return real in libraries or any(os.path.dirname(library) == real for library in libraries)


def _check_process(condition: Condition) -> None:
    server = condition.server
    for process in (condition.process, *(() if server is None else (server.process,))):
        allowed = os.sched_getaffinity(0)
        absent = [cpu for cpu in process.cpus or () if cpu not in allowed]
        if absent:
            raise TookNoEffect(
                condition.name,
                f"we may not use CPU {absent[0]}",
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
        with open(HUGE_PAGES, encoding="ascii") as file:
            return "[never]" in file.read()
    except OSError:
        # A kernel without transparent huge pages has no such file.
        return True
