"""Reading a study's file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Literal, Protocol, get_args

from equipoise.design.choice import named_data
from equipoise.design.grid import kept_settings
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.record import Accounting
from equipoise.model.study import (
    ComparedFactor,
    Exclusion,
    Factor,
    Level,
    QuickForm,
    Role,
    ServerWorkload,
    Study,
    StudyMeasure,
    Words,
    Workload,
    is_size,
)
from equipoise.studies.data_sets import DATA_SETS
from equipoise.studies.kinds import KINDS, PACKAGES, Kind
from equipoise.studies.reader.server_table import (
    PLACEHOLDERS,
    check_that_trials_are_of_one_kind,
    read_server,
    server_metrics,
    servers_of,
)
from equipoise.studies.reader.table import Table, one_of

_CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_FACTOR = re.compile(r"[A-Za-z_][\w-]*")
_ROLES: tuple[Role, ...] = get_args(Role)
_TAKEN = ("study", "python", "build", "data", "folder", "port")


def read_factors(table: Table, folder: str) -> tuple[Factor, ...]:
    """Read ``[factors]``.

    Parameters
    ----------
    folder
        What relative paths start from.

    Raises
    ------
    UnusableInput
        A factor without levels, an unknown role, kind or key, a wrong type.
    """
    factors = tuple(_factor(table, name, folder) for name in table.keys())
    if not factors:
        raise table.fail(None, "there are no factors", "as in [factors.size] levels = [1, 2]")
    building = [factor for factor in factors if any(level.build for level in factor.levels)]
    if len(building) > 1:
        raise table.fail(
            building[1].name,
            f"{building[0].name} has levels that are built already",
            "build in one factor, and use the other's name in its lines",
        )
    return factors


def _factor(factors: Table, name: str, folder: str) -> Factor:
    if not _FACTOR.fullmatch(name) or name in _TAKEN:
        raise factors.fail(name, f"a factor cannot be called {name!r}", "give it another name")
    table = factors.table(name)
    role = _role(table)
    kind = table.text("kind")
    if kind is not None and kind not in KINDS:
        raise table.fail("kind", f"there is no kind {kind!r}", one_of(kind, sorted(KINDS)))
    own = tuple(_level(table, level, folder) for level in _own_levels(table))
    if kind is None:
        choices: tuple[Level, ...] = ()
        levels = own or tuple(Level(level) for level in table.values_of("levels") or ())
    else:
        choices = KINDS[kind].choices
        levels = (*_of_kind(table, KINDS[kind], own), *own)
    if not levels:
        raise table.fail(None, "it has no levels", "as in levels = [1, 2]")
    if role == "size":
        _check_sizes(table, levels)
    return Factor(name, levels, role, plain=table.has("levels") and kind is None, choices=choices)


def _own_levels(table: Table) -> tuple[str, ...]:
    """The levels that are tables."""
    listed = table.has("levels")
    own = table.keys()
    if listed and own and not table.has("kind"):
        raise table.fail(
            own[0],
            "a factor has levels = [...] or a table for each level, not both",
            "write each level as a table",
        )
    return own


def _of_kind(table: Table, kind: Kind, own: tuple[Level, ...]) -> tuple[Level, ...]:
    """The levels of a kind that a factor has: those it lists, or the usual ones."""
    listed = table.values_of("levels")
    if listed is None:
        return () if own else kind.usual
    for level in own:
        if level.name in listed:
            raise table.fail(level.name, "it stands among levels too", "leave one of them out")
    return tuple(_chosen(table, level, kind.choices) for level in listed)


def _check_sizes(table: Table, levels: Iterable[Level]) -> None:
    for level in levels:
        if not is_size(level.name):
            raise table.fail(
                level.name if table.has(level.name) else "levels",
                f"{level.name!r} is no size",
                'give numbers above 0, or role = "stratum" to what is no number',
            )


def _role(table: Table) -> Role:
    asked = table.text("role") or "treatment"
    for role in _ROLES:
        if role == asked:
            return role
    raise table.fail("role", f"there is no role {asked!r}", one_of(asked, _ROLES))


def _chosen(table: Table, name: str, choices: tuple[Level, ...]) -> Level:
    for level in choices:
        if level.name == name:
            return level
    raise table.fail(
        "levels", f"there is no level {name!r}", one_of(name, [level.name for level in choices])
    )


def _level(factor: Table, name: str, folder: str) -> Level:
    table = factor.table(name)
    preload = table.texts("preload") or ()
    working_folder = table.text("folder")
    package = table.text("package")
    server: ServerWorkload | None = None
    command = table.words("command")
    if table.has("server"):
        if command is not None:
            raise table.fail("command", "a server has a client", "move it to the table server")
        server, command = read_server(table.table("server"))
    client = table.table("client")
    client_arguments, client_cpus = client.texts("args") or (), _cpus(client)
    client.finish()
    if package is None:
        package = next((PACKAGES[library] for library in preload if library in PACKAGES), None)
    level = Level(
        name,
        environment=table.mapping("env") or {},
        preload=tuple(_path(folder, library) for library in preload),
        library_path=tuple(os.path.join(folder, one) for one in table.texts("library_path") or ()),
        arguments=table.texts("args") or (),
        command=command,
        server=server,
        client_arguments=client_arguments,
        client_cpus=client_cpus,
        working_folder=None if working_folder is None else os.path.join(folder, working_folder),
        cpus=_cpus(table),
        random_addresses=table.truth("aslr"),
        huge_pages=table.truth("huge_pages"),
        build=table.text("build"),
        instructions=table.texts("instructions") or (),
        tuned_for=table.texts("tuned_for") or (),
        package=package,
        summary=table.text("summary") or "",
    )
    table.finish()
    return level


def _path(folder: str, library: str) -> str:
    """A file name is looked for where the loader looks; a path starts from the study."""
    return os.path.join(folder, library) if "/" in library else library


def _cpus(table: Table) -> tuple[int, ...] | None:
    if not table.has("cpu"):
        return None
    value = table.values["cpu"]
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,)
    if not isinstance(value, str) or not _CPUS.fullmatch(value):
        raise table.fail("cpu", f"{value!r} names no CPUs", 'as in cpu = 0 or cpu = "0-1,4"')
    cpus: set[int] = set()
    for part in value.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    if not cpus:
        raise table.fail("cpu", f"{value!r} names no CPUs", 'as in cpu = "0-1"')
    return tuple(sorted(cpus))


_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")
_FILE_PLACEHOLDERS = ("study", "python")


def check_placeholders(file: Table, study: Study) -> None:
    """Refuse a name in braces that stands for nothing, and one in a path.

    Raises
    ------
    UnusableInput
        It names the key, and what there is.
    """
    known = {*_FILE_PLACEHOLDERS, *(factor.name for factor in study.factors)}
    if any(level.build is not None for factor in study.factors for level in factor.levels):
        known.add("build")
    if study.workload.data is not None:
        known.add("data")
    if study.measure.layouts is not None:
        if "layout" in known:
            raise file.table("measure").fail(
                "layouts", "there is a factor called layout already", "leave out one of them"
            )
        known.add("layout")
    server = study.workload.server
    if servers_of(study.workload, study.factors):
        known.update(PLACEHOLDERS)
    workload = file.table("workload")
    if server is None:
        _check_words(workload, "command", study.workload.command, known)
    else:
        table = workload.table("server")
        for key, words in {**server.commands(), "client": study.workload.command}.items():
            _check_words(table, key, words, known)
    if study.quick is not None and study.quick.command is not None:
        _check_words(file.table("quick"), "command", study.quick.command, known)
    factors = file.table("factors")
    for factor in study.factors:
        for level in factor.levels:
            table = factors.table(factor.name).table(level.name) if not factor.plain else factors
            if level.server is not None:
                for key, words in level.server.commands().items():
                    _check_words(table.table("server"), key, words, known)
            _check_words(table, "command", level.command or (), known)
            _check_words(table, "client", level.client_arguments, known)
            _check_words(table, "args", level.arguments, known)
            _check_words(table, "env", tuple(level.environment.values()), known)
            _check_words(table, "build", (level.build or "",), known)
            paths = {
                "preload": level.preload,
                "library_path": level.library_path,
                "folder": (level.working_folder or "",),
            }
            for key, words in paths.items():
                _refuse_placeholders(table, key, words, known)


def _check_words(table: Table, key: str, words: Words, known: set[str]) -> None:
    for name in (found for word in words for found in _PLACEHOLDER.findall(word)):
        if name not in known:
            raise table.fail(
                key,
                f"{{{name}}} stands for nothing",
                f"{one_of(name, sorted(known))}; write {{{{{name}}}}} for the braces themselves",
            )


def _refuse_placeholders(table: Table, key: str, words: Words, known: set[str]) -> None:
    for name in (found for word in words for found in _PLACEHOLDER.findall(word)):
        if name in known:
            raise table.fail(
                key,
                f"nothing is put in for {{{name}}} in a path",
                "write the path out; a relative one starts from the study's own folder",
            )


METRICS = tuple(
    field.name for field in fields(Accounting) if field.name not in ("counters", "unknown")
)
"""What every trial has."""
MOST_WARMUP = 1000
"""As ``--warmup``."""
MOST_LAYOUTS = 1000
"""As ``--layouts``."""
_NAME = re.compile(r"[A-Za-z0-9][\w .-]*")


def read_study(path: Path, shown: str | None = None, *, counters: Collection[str] = ()) -> Study:
    """Read the file of a study.

    Parameters
    ----------
    path
        The file.
    shown
        What errors call it; by default the path.
    counters
        What can be counted in each trial, and so be a metric.

    Raises
    ------
    UnusableInput
        It cannot be read, or is no study: file, line, key and the hint.
    """
    file = Table.of_file(path, str(path) if shown is None else shown)
    header = file.table("study")
    name = header.required("name", header.text, '[study] name = "allocators"')
    if not _NAME.fullmatch(name):
        raise header.fail("name", f"{name!r} is no name", "use letters, digits, - and _")
    summary = header.text("summary") or ""
    header.finish()
    folder = os.path.abspath(path.parent)
    workload = _workload(file.table("workload"), folder)
    factors = read_factors(file.table("factors"), folder)
    exclusions = tuple(_exclusion(table, factors) for table in file.tables("exclude"))
    study = Study(
        name=name,
        folder=folder,
        workload=workload,
        factors=factors,
        exclusions=exclusions,
        measure=_measure(file.table("measure"), workload, factors, counters),
        compared=_compared(file.table("compare"), factors),
        quick=_quick(file.table("quick"), factors) if file.has("quick") else None,
        summary=summary,
        places=file.places,
    )
    file.finish()
    _check_that_everything_has_a_command(file, study)
    check_that_trials_are_of_one_kind(file, study)
    _check_that_something_is_left(file, study)
    check_placeholders(file, study)
    if workload.data is not None and named_data(study) is None:
        raise file.table("workload").fail(
            "data", "nothing asks for {data}", "write {data} where the file of the rows belongs"
        )
    return study


def _workload(table: Table, folder: str) -> Workload:
    server_table = table.table("server") if table.has("server") else None
    server: ServerWorkload | None = None
    command: Words = ()
    if server_table is None:
        command = table.words("command") or ()
        command_place = table.place("command")
    else:
        if table.has("command"):
            raise table.fail(
                "command", "a workload with a server has a client", "move it to [workload.server]"
            )
        server, command = read_server(server_table)
        command_place = server_table.place("client")
    own_folder = table.text("folder")
    if own_folder is not None and not os.path.isdir(os.path.join(folder, own_folder)):
        raise table.fail(
            "folder",
            f"there is no folder {os.path.join(folder, own_folder)}",
            "make it; a relative one starts from the study's own folder",
        )
    reports = table.texts("reports") or ()
    for metric in reports:
        if not metric or reports.count(metric) > 1:
            raise table.fail(
                "reports", f"{metric!r} is no name, or stands there twice", "name each metric once"
            )
        if metric in METRICS:
            raise table.fail("reports", f"{metric} is measured of every trial", "leave it out")
    data = table.text("data")
    if data is not None and data not in DATA_SETS:
        raise table.fail("data", f"there is no data set {data!r}", one_of(data, list(DATA_SETS)))
    found = Workload(
        command=command,
        command_place=command_place,
        server=server,
        working_folder=None if own_folder is None else os.path.join(folder, own_folder),
        reports=reports,
        data=data,
    )
    table.finish()
    return found


def _measure(
    table: Table,
    workload: Workload,
    factors: tuple[Factor, ...],
    counters: Collection[str],
) -> StudyMeasure:
    metrics = table.texts("metrics")
    if metrics == ():
        raise table.fail("metrics", "it is empty", 'as in metrics = ["wall_s"]')
    metrics = metrics or (PRIMARY_METRIC,)
    of_server = server_metrics(servers_of(workload, factors))
    known = (*METRICS, *counters, *of_server, *workload.reports)
    for metric in metrics:
        if metric not in known:
            raise table.fail(
                "metrics",
                f"there is no metric {metric!r}",
                f"{one_of(metric, known)}; what the workload itself reports is named in "
                "[workload] reports",
            )
        if metrics.count(metric) > 1:
            raise table.fail("metrics", f"{metric} stands there twice", "leave one of them out")
    alpha = table.number("alpha", above=0)
    if alpha is not None and alpha >= 0.5:
        raise table.fail("alpha", f"it is {alpha:g}", "give a number above 0 and below 0.5")
    found = StudyMeasure(
        metrics=metrics,
        min_effect=table.number("min_effect", least=0),
        alpha=alpha,
        budget_s=table.number("budget", above=0),
        blocks=table.whole("blocks", least=1),
        min_blocks=table.whole("min_blocks", least=1),
        precision=table.number("precision", above=0),
        warmup=table.whole("warmup", least=0, most=MOST_WARMUP),
        timeout_s=table.number("timeout", above=0),
        washout=table.truth("washout") or False,
        ignore_failure=table.truth("ignore_failure") or False,
        about_s=table.number("about", above=0),
        layouts=table.whole("layouts", least=2, most=MOST_LAYOUTS),
        aslr=_aslr(table),
    )
    blocks, min_blocks = found.blocks, found.min_blocks
    if blocks is not None and min_blocks is not None and min_blocks > blocks:
        raise table.fail(
            "min_blocks", f"it is {min_blocks}, more than blocks = {blocks}", "lower it"
        )
    table.finish()
    return found


def _aslr(table: Table) -> Literal["drawn", "on", "off"] | None:
    word = table.text("aslr")
    match word:
        case None | "drawn" | "on" | "off":
            return word
    raise table.fail("aslr", f"there is no {word!r}", one_of(word, ["drawn", "on", "off"]))


def _compared(table: Table, factors: tuple[Factor, ...]) -> ComparedFactor | None:
    treatments = [factor for factor in factors if factor.role == "treatment"]
    name = table.text("factor")
    if name is None:
        if table.has("baseline") or len(treatments) > 1:
            raise table.fail(
                None,
                "factor is missing",
                f"name what is compared: {', '.join(factor.name for factor in treatments)}",
            )
        table.finish()
        return (
            ComparedFactor(treatments[0].name, treatments[0].levels[0].name) if treatments else None
        )
    factor = next((factor for factor in factors if factor.name == name), None)
    if factor is None:
        raise table.fail("factor", f"there is no factor {name!r}", one_of(name, _names(factors)))
    if factor.role != "treatment":
        raise table.fail(
            "factor",
            f"{name} is a {factor.role}, not a treatment",
            f"compare another factor at each {factor.role}",
        )
    baseline = table.text("baseline") or factor.levels[0].name
    levels = _names(factor.levels)
    if baseline not in levels:
        raise table.fail("baseline", f"{name} has no level {baseline!r}", one_of(baseline, levels))
    not_at = _levels_by_factor(table.table("not_at"), [one for one in factors if one != factor])
    table.finish()
    return ComparedFactor(name, baseline, not_at)


def _exclusion(table: Table, factors: tuple[Factor, ...]) -> Exclusion:
    found = _levels_by_factor(table, factors)
    if not found:
        raise table.fail(None, "it excludes everything", "name at least one factor and its level")
    return found


def _levels_by_factor(table: Table, factors: Iterable[Factor]) -> dict[str, tuple[str, ...]]:
    """A table that is nothing but levels, one or more, of some of these factors."""
    found: dict[str, tuple[str, ...]] = {}
    for factor in factors:
        if table.has(factor.name):
            levels = table.one_or_more(factor.name)
            if not levels:
                raise table.fail(factor.name, "it has no levels", "name at least one")
            _check_levels(table, factor, levels)
            found[factor.name] = levels
    table.finish()
    return found


def _check_that_everything_has_a_command(file: Table, study: Study) -> None:
    brings_its_own = any(
        all(level.command is not None for level in factor.levels) for factor in study.factors
    )
    if not study.workload.command and not brings_its_own:
        raise file.table("workload").fail(
            None, "command is missing", 'as in command = ["sort", "words"]'
        )


def _check_that_something_is_left(file: Table, study: Study) -> None:
    for _ in kept_settings(study):
        return
    raise file.tables("exclude")[-1].fail(
        None, "with it, nothing is left to run", "leave out one level from it"
    )


def _quick(table: Table, factors: tuple[Factor, ...]) -> QuickForm:
    levels_table = table.table("factors")
    levels: dict[str, tuple[str, ...]] = {}
    for factor in factors:
        chosen = levels_table.values_of(factor.name)
        if chosen is not None:
            if not chosen:
                raise levels_table.fail(factor.name, "it has no levels", "name at least one")
            _check_levels(levels_table, factor, chosen)
            levels[factor.name] = chosen
    levels_table.finish()
    found = QuickForm(
        levels=levels,
        not_at=_levels_by_factor(table.table("not_at"), factors),
        command=table.words("command"),
        command_place=table.place("command"),
        budget_s=table.number("budget", above=0),
        blocks=table.whole("blocks", least=1),
    )
    table.finish()
    return found


def _check_levels(table: Table, factor: Factor, levels: Iterable[str]) -> None:
    known = list(dict.fromkeys(_names((*factor.levels, *factor.choices))))
    for level in levels:
        if factor.role == "size" and not is_size(level):
            raise table.fail(factor.name, f"{level!r} is no size", "give numbers above 0")
        if level not in known and not factor.plain:
            raise table.fail(
                factor.name, f"{factor.name} has no level {level!r}", one_of(level, known)
            )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _names(named: Iterable[_Named]) -> list[str]:
    return [one.name for one in named]
