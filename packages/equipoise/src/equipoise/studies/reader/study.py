"""Read a study's TOML file as a `Study`. docs/reference/study.md explains every key.

Each kind of table has a `TableSchema` with its keys and their types, which msgspec checks. The
functions below check all further rules, and make the parts of the `Study`. Every message names the
file, the line and the key.

A placeholder is a name in braces, such as ``{size}``, that a level or a path replaces. A trial of a
server is its whole life from start to end, or an interval of a longer life.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from equipoise.design.grid import kept_combinations
from equipoise.design.libraries import KINDS, PACKAGES, FactorKind
from equipoise.model.plan import PRIMARY_METRIC, SOCKET, Process, ServerTrial
from equipoise.model.record import Accounting
from equipoise.model.study import (
    ComparedFactor,
    Exclusion,
    Factor,
    Level,
    QuickForm,
    Role,
    ServerWorkload,
    Strings,
    Study,
    StudyMeasure,
    Workload,
    is_size,
)
from equipoise.studies.data_sets import DATA_SETS, named_data
from equipoise.studies.reader.toml_file import Table, TableSchema, one_of, read_toml

METRICS = tuple(
    name for name in Accounting.__struct_fields__ if name not in ("counters", "unknown")
)
"""Metrics that every trial has."""
SERVER_METRICS = (
    "server_user_s",
    "server_sys_s",
    "server_max_rss_bytes",
    "server_pss_bytes",
    "server_minor_faults",
    "server_major_faults",
    "server_voluntary_switches",
    "server_involuntary_switches",
)
"""Metrics of a server in a trial."""
_WHOLE_LIFE_METRICS = ("server_voluntary_switches", "server_involuntary_switches")
"""Metrics of a server that are known only if a trial is a whole life."""
_SERVER_PLACEHOLDERS = ("folder", "port", "password_file")
"""Placeholders in the commands of a server and its client, in addition to the factors."""
_RESERVED_NAMES = ("study", "python", "helpers", "build", "data", "folder", "port")
"""Placeholders with a fixed meaning; no factor can have such a name."""
_STUDY_NAME = re.compile(r"[A-Za-z0-9][\w .-]*")
_FACTOR_NAME = re.compile(r"[A-Za-z_][\w-]*")
_CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")

Values = dict[str, Any]
"""The keys and values of a TOML table."""
OneOrMoreStrings = Annotated[str | list[str], Meta(description="a string or an array of strings")]
Command = Annotated[str | list[str], Meta(description="a command: a string or an array of strings")]
Cpus = Annotated[int | str, Meta(description='CPUs, such as cpu = 0 or cpu = "0-1,4"')]
Positive = Annotated[float, Meta(gt=0, description="a number above 0")]
NotNegative = Annotated[float, Meta(ge=0, description="a number from 0 up")]
Alpha = Annotated[float, Meta(gt=0, lt=0.5, description="a number above 0 and below 0.5")]
Count = Annotated[int, Meta(ge=1, le=10**9, description="a whole number from 1 up")]
Warmup = Annotated[int, Meta(ge=0, le=1000, description="a whole number from 0 to 1000")]
Layouts = Annotated[int, Meta(ge=2, le=1000, description="a whole number from 2 to 1000")]


class _File(TableSchema, frozen=True):
    study: Values = {}
    workload: Values = {}
    factors: Values = {}
    exclude: Annotated[list[Values], Meta(description="an array of tables: [[exclude]]")] = []
    measure: Values = {}
    compare: Values = {}
    quick: Values | None = None


class _Header(TableSchema, frozen=True):
    name: Annotated[str, Meta(examples=['[study] name = "allocators"'])]
    summary: str = ""


class _Workload(TableSchema, frozen=True):
    command: Command | None = None
    server: Values | None = None
    folder: str | None = None
    reports: OneOrMoreStrings = []
    data: str | None = None


class _Server(TableSchema, frozen=True):
    client: Annotated[Command, Meta(examples=['client = ["curl", "…"]'])]
    start: Annotated[Command, Meta(examples=['start = ["python3", "-m", "http.server"]'])]
    install: Command | None = None
    fill: Command | None = None
    prepare: Command | None = None
    ready: Command | None = None
    stop: Command | None = None
    signal: str = "TERM"
    ready_s: Positive = 30.0
    path: OneOrMoreStrings = []
    needs: Values = {}
    unprivileged: bool = False
    trial: ServerTrial = "life"


class _Factor(TableSchema, frozen=True):
    """Keys of ``[factors.NAME]``. Every other key is the name of a level with its own table."""

    role: Role = "treatment"
    kind: str | None = None
    """Kind of libraries (`KINDS`) from which the factor takes levels."""
    levels: list[str | int | float] | None = None


class _Level(TableSchema, frozen=True):
    env: Values = {}
    preload: OneOrMoreStrings = []
    library_path: OneOrMoreStrings = []
    args: OneOrMoreStrings = []
    command: Command | None = None
    server: Values | None = None
    client: Values = {}
    folder: str | None = None
    cpu: Cpus | None = None
    aslr: bool | None = None
    huge_pages: bool | None = None
    build: str | None = None
    instructions: OneOrMoreStrings = []
    tuned_for: OneOrMoreStrings = []
    package: str | None = None
    summary: str = ""


class _Client(TableSchema, frozen=True):
    args: OneOrMoreStrings = []
    cpu: Cpus | None = None


class _Measure(TableSchema, frozen=True):
    """Keys of ``[measure]``; `StudyMeasure` has their meanings."""

    metrics: OneOrMoreStrings = PRIMARY_METRIC
    min_effect: NotNegative | None = None
    alpha: Alpha | None = None
    budget: Positive | None = None
    blocks: Count | None = None
    min_blocks: Count | None = None
    min_seconds: NotNegative | None = None
    precision: Positive | None = None
    tail: Positive | None = None
    warmup: Warmup | None = None
    timeout: Positive | None = None
    washout: bool = False
    ignore_failure: bool = False
    author_block_s: Positive | None = None
    layouts: Layouts | None = None
    aslr: Literal["drawn", "on", "off"] | None = None


class _Compare(TableSchema, frozen=True):
    factor: str | None = None
    baseline: str | None = None
    not_compared_at: Values = {}
    """Levels of other factors at which conditions run but are not compared."""


class _Quick(TableSchema, frozen=True):
    factors: Values = {}
    not_compared_at: Values = {}
    """Further levels at which nothing is compared."""
    command: Command | None = None
    budget: Positive | None = None
    blocks: Count | None = None


def read_study(path: Path, name: str | None = None, *, counters: Collection[str] = ()) -> Study:
    """Read the file of a study, which has ``name`` in errors, by default its path.

    ``counters`` are the counters that each trial can measure, so that they can be metrics. Raise
    `UnusableInput`, with file, line, key and hint, if the file cannot be read or is not a study.
    """
    file = read_toml(path, str(path) if name is None else name)
    sections = file.read_as(_File)
    header_table = file.table("study")
    header = header_table.read_as(_Header)
    if not _STUDY_NAME.fullmatch(header.name):
        raise header_table.error(
            "name",
            f"{header.name!r} is not a valid name of a study",
            "begin with a letter or digit, and use only letters, digits, - and _",
        )
    folder = os.path.abspath(path.parent)
    workload = _workload(file.table("workload"), folder)
    factors = _factors(file.table("factors"), folder)
    study = Study(
        name=header.name,
        folder=folder,
        workload=workload,
        factors=factors,
        exclusions=tuple(_exclusion(table, factors) for table in file.tables("exclude")),
        measure=_measure(file.table("measure"), workload, factors, counters),
        compared=_compared_factor(file.table("compare"), factors),
        quick=None if sections.quick is None else _quick_form(file.table("quick"), factors),
        summary=header.summary,
        places=file.places,
    )
    _check_study(file, study)
    _check_placeholders(file, study)
    return study


def _workload(table: Table, folder: str) -> Workload:
    settings = table.read_as(_Workload)
    server, command = _server_and_command(table)
    place = table.place("command") if server is None else table.table("server").place("client")
    working_folder = None if settings.folder is None else os.path.join(folder, settings.folder)
    if working_folder is not None and not os.path.isdir(working_folder):
        raise table.error(
            "folder",
            f"there is no folder {working_folder}",
            "create it; a relative path starts from the study's own folder",
        )
    reports = table.strings("reports")
    for metric in reports:
        if not metric:
            raise table.error("reports", "the name of a metric is empty", "remove the empty name")
        if reports.count(metric) > 1:
            raise table.error("reports", f"{metric} appears twice", "remove one of the two")
        if metric in METRICS:
            raise table.error(
                "reports", f"every trial measures {metric} anyway", f"remove {metric} from reports"
            )
    if settings.data is not None:
        table.require_one_of("data", settings.data, list(DATA_SETS), "there is no data set")
    return Workload(
        command=command or (),
        command_place=place,
        server=server,
        working_folder=working_folder,
        reports=reports,
        data=settings.data,
    )


def _server_and_command(workload: Table) -> tuple[ServerWorkload | None, Strings | None]:
    """Return the server of a workload or level, if it has one, and the command of its trials."""
    command = workload.command("command")
    if "server" not in workload.values:
        return None, command
    if command is not None:
        hint = "move the command to the key client of the server"
        raise workload.error("command", "there is a command besides a server", hint)
    table = workload.table("server")
    settings = table.read_as(_Server)
    if f"SIG{settings.signal.removeprefix('SIG')}" not in signal.Signals.__members__:
        problem = f"there is no signal {settings.signal}"
        raise table.error("signal", problem, 'name one, such as signal = "TERM"')
    start, ready = table.command("start") or (), table.command("ready")
    if ready is None and not any("{port}" in word or word.endswith(SOCKET) for word in start):
        raise table.error(
            None,
            "ready is missing, and start contains neither {port} nor {folder}/socket",
            'add a command that succeeds once the server is ready: ready = ["pg_isready"]',
        )
    server = ServerWorkload(
        start=start,
        install=table.command("install"),
        fill=table.command("fill"),
        prepare=table.command("prepare"),
        ready=ready,
        stop=table.command("stop"),
        stop_signal=settings.signal,
        ready_s=settings.ready_s,
        path=table.strings("path"),
        needs=table.environment("needs"),
        unprivileged=settings.unprivileged,
        trial=settings.trial,
    )
    return server, table.command("client")


def _factors(table: Table, folder: str) -> tuple[Factor, ...]:
    """Return the factors; relative paths start from ``folder``."""
    factors = tuple(_factor(table, name, folder) for name in table.values)
    if not factors:
        raise table.error(None, "the study has no factor", "add [factors.size] levels = [1, 2]")
    built_factors = [factor for factor in factors if any(level.build for level in factor.levels)]
    if len(built_factors) > 1:
        first, second = (factor.name for factor in built_factors[:2])
        raise table.error(
            second,
            f"{first} and {second} have levels with the key build, but only one factor can",
            f"remove build here, and write {{{second}}} in the build lines of {first}",
        )
    return factors


def _factor(factors: Table, name: str, folder: str) -> Factor:
    if name in _RESERVED_NAMES:
        problem = f"a factor cannot have the name {name}, because {{{name}}} has a fixed meaning"
        raise factors.error(name, problem, f"choose another name, such as my_{name}")
    if not _FACTOR_NAME.fullmatch(name):
        raise factors.error(
            name,
            f"{name!r} is not a valid name of a factor",
            "begin with a letter, and use only letters, digits, - and _",
        )
    table = factors.table(name)
    settings_values = {key: table.values[key] for key in table.values if key in _FACTOR_KEYS}
    settings = Table(table.places, settings_values, table.path).read_as(_Factor)
    level_keys = [key for key in table.values if key not in settings_values]
    if settings.levels is not None and level_keys and settings.kind is None:
        raise table.error(
            level_keys[0],
            "a factor has levels = [...] or a table for each level, not both",
            f"write each level as a table, such as [factors.{name}.{level_keys[0]}]",
        )
    levels_with_tables = tuple(_level(table.table(key), key, folder) for key in level_keys)
    optional_levels: tuple[Level, ...] = ()
    if settings.kind is not None:
        table.require_one_of("kind", settings.kind, sorted(KINDS), "there is no kind")
        kind = KINDS[settings.kind]
        optional_levels = kind.all_levels
        levels = (*_levels_of_kind(table, kind, levels_with_tables), *levels_with_tables)
    else:
        levels = levels_with_tables or tuple(map(Level, table.names("levels")))
    if not levels:
        raise table.error(None, "the factor has no levels", "add levels, such as levels = [1, 2]")
    for level in levels if settings.role == "size" else ():
        if not is_size(level.name):
            raise table.error(
                level.name if level.name in table.values else "levels",
                f"{level.name!r} is not a size",
                'give numbers above 0, or role = "stratum" for other levels',
            )
    accepts_other_levels = settings.levels is not None and settings.kind is None
    return Factor(name, levels, settings.role, accepts_other_levels, optional_levels)


_FACTOR_KEYS = frozenset(_Factor.__struct_fields__)
"""Keys of a factor's table that are not names of levels."""


def _levels_of_kind(
    table: Table, kind: FactorKind, levels_with_tables: Sequence[Level]
) -> tuple[Level, ...]:
    """Return the levels of a kind of libraries that the key ``levels`` names.

    Without the key, return the default levels of the kind. But if some levels have tables, the
    factor has only these levels, so return no level.
    """
    if "levels" not in table.values:
        return () if levels_with_tables else kind.default_levels
    level_names = table.names("levels")
    for level in levels_with_tables:
        if level.name in level_names:
            problem = f"{level.name} is in levels and also has a table"
            raise table.error(level.name, problem, f"remove {level.name} from levels")
    level_by_name = {level.name: level for level in kind.all_levels}
    for name in level_names:
        table.require_one_of("levels", name, [*level_by_name], "there is no level")
    return tuple(level_by_name[name] for name in level_names)


def _level(table: Table, name: str, folder: str) -> Level:
    settings = table.read_as(_Level)
    server, command = _server_and_command(table)
    client = table.table("client")
    client_cpus = client.read_as(_Client).cpu
    preload = table.strings("preload")
    package = settings.package
    if package is None:
        package = next((PACKAGES[library] for library in preload if library in PACKAGES), None)
    return Level(
        name,
        environment=table.environment("env"),
        # The loader searches for a plain file name; a relative path starts from the study.
        preload=tuple(os.path.join(folder, file) if "/" in file else file for file in preload),
        library_path=tuple(os.path.join(folder, path) for path in table.strings("library_path")),
        arguments=table.strings("args"),
        command=command,
        server=server,
        client_arguments=client.strings("args"),
        client_cpus=_cpus(client, client_cpus),
        process=Process(
            None if settings.folder is None else os.path.join(folder, settings.folder),
            _cpus(table, settings.cpu),
            settings.aslr,
            settings.huge_pages,
        ),
        build=settings.build,
        instructions=table.strings("instructions"),
        tuned_for=table.strings("tuned_for"),
        package=package,
        summary=settings.summary,
    )


def _cpus(table: Table, value: int | str | None) -> tuple[int, ...] | None:
    """Return the CPUs in a number, or in a list with ranges such as ``0-1,4``."""
    if value is None:
        return None
    cpus: set[int] = set()
    for cpu_range in str(value).split(",") if _CPUS.fullmatch(str(value)) else ():
        first, _, last = cpu_range.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    if not cpus:
        raise table.error("cpu", f"{value!r} does not name CPUs", 'write cpu = 0 or cpu = "0-1,4"')
    return tuple(sorted(cpus))


def _exclusion(table: Table, factors: tuple[Factor, ...]) -> Exclusion:
    levels = _levels_by_factor(table, factors)
    if not levels:
        raise table.error(
            None, "this excludes every condition", "add a factor and its level, such as size = 1"
        )
    return levels


def _levels_by_factor(table: Table, factors: Iterable[Factor]) -> Exclusion:
    factor_by_name = {factor.name: factor for factor in factors}
    for key in table.values:
        if key not in factor_by_name:
            raise table.unknown(key, one_of(key, sorted(factor_by_name)))
    levels = {name: table.names(name) for name in factor_by_name if name in table.values}
    for name, level_names in levels.items():
        _check_levels(table, factor_by_name[name], level_names)
    return levels


def _check_levels(table: Table, factor: Factor, levels: Sequence[str]) -> None:
    if not levels:
        raise table.error(factor.name, "the list of levels is empty", "name at least one level")
    known_names = list(dict.fromkeys(_names((*factor.levels, *factor.optional_levels))))
    for level in levels:
        if factor.role == "size" and not is_size(level):
            raise table.error(factor.name, f"{level!r} is not a size", "give numbers above 0")
        if not factor.accepts_other_levels:
            table.require_one_of(factor.name, level, known_names, f"{factor.name} has no level")


def _measure(
    table: Table, workload: Workload, factors: tuple[Factor, ...], counters: Collection[str]
) -> StudyMeasure:
    settings = table.read_as(_Measure)
    metrics = table.strings("metrics") if "metrics" in table.values else (PRIMARY_METRIC,)
    if not metrics:
        raise table.error("metrics", "the list of metrics is empty", 'write metrics = ["wall_s"]')
    known_metrics = (*METRICS, *counters, *_server_metrics(workload, factors), *workload.reports)
    for metric in metrics:
        if metric not in known_metrics:
            raise table.error(
                "metrics",
                f"there is no metric {metric!r}",
                f"{one_of(metric, known_metrics)}; list metrics that the workload itself reports "
                "in [workload] reports",
            )
        if metrics.count(metric) > 1:
            raise table.error("metrics", f"{metric} appears twice", "remove one of the two")
    blocks, min_blocks = settings.blocks, settings.min_blocks
    if blocks is not None and min_blocks is not None and min_blocks > blocks:
        raise table.error(
            "min_blocks",
            f"{min_blocks} is more than blocks = {blocks}",
            f"lower min_blocks to {blocks}, or raise blocks to {min_blocks}",
        )
    return StudyMeasure(**asdict(settings) | {"metrics": metrics})


def _server_metrics(workload: Workload, factors: tuple[Factor, ...]) -> list[str]:
    servers = _servers(workload, factors)
    if not servers:
        return []
    are_whole_lives = all(server.trial == "life" for server in servers)
    return [
        metric for metric in SERVER_METRICS if are_whole_lives or metric not in _WHOLE_LIFE_METRICS
    ]


def _servers(workload: Workload, factors: Iterable[Factor]) -> tuple[ServerWorkload, ...]:
    levels = (level.server for factor in factors for level in factor.levels)
    return tuple(server for server in (workload.server, *levels) if server is not None)


def _compared_factor(table: Table, factors: tuple[Factor, ...]) -> ComparedFactor | None:
    settings = table.read_as(_Compare)
    treatments = [factor for factor in factors if factor.role == "treatment"]
    name = settings.factor
    if name is None:
        if settings.baseline is not None or len(treatments) > 1:
            names = ", ".join(_names(treatments))
            raise table.error(None, "factor is missing", f"add factor, one of {names}")
        if not treatments:
            return None
        return ComparedFactor(treatments[0].name, treatments[0].levels[0].name)
    table.require_one_of("factor", name, _names(factors), "there is no factor")
    factor = next(factor for factor in factors if factor.name == name)
    if factor.role != "treatment":
        raise table.error(
            "factor",
            f"{name} is a {factor.role}, not a treatment",
            f"compare another factor at each {factor.role}",
        )
    levels = _names(factor.levels)
    baseline = levels[0] if settings.baseline is None else settings.baseline
    table.require_one_of("baseline", baseline, levels, f"{name} has no level")
    other_factors = [other for other in factors if other != factor]
    not_compared_at = _levels_by_factor(table.table("not_compared_at"), other_factors)
    return ComparedFactor(name, baseline, not_compared_at)


def _quick_form(table: Table, factors: tuple[Factor, ...]) -> QuickForm:
    settings = table.read_as(_Quick)
    return QuickForm(
        levels=_levels_by_factor(table.table("factors"), factors),
        not_compared_at=_levels_by_factor(table.table("not_compared_at"), factors),
        command=table.command("command"),
        command_place=table.place("command"),
        budget=settings.budget,
        blocks=settings.blocks,
    )


def _check_study(file: Table, study: Study) -> None:
    """Refuse a study without a command, without conditions, or with two kinds of server trials."""
    has_commands = any(
        all(level.command is not None for level in factor.levels) for factor in study.factors
    )
    if not study.workload.command and not has_commands:
        raise file.table("workload").error(
            None, "command is missing", 'add one, such as command = ["sort", "words"]'
        )
    # Whole lives and intervals have different sources of variance, so they cannot be compared.
    if len({server.trial for server in _servers(study.workload, study.factors)}) > 1:
        raise file.table("factors").error(
            None,
            "a trial is the whole life of one server, but an interval of another server's life",
            'give every server the same value of trial, such as trial = "life"',
        )
    if next(iter(kept_combinations(study)), None) is None:
        raise file.tables("exclude")[-1].error(
            None, "this exclusion leaves nothing to run", "remove one of its levels"
        )


def _check_placeholders(file: Table, study: Study) -> None:
    """Refuse unknown placeholders, and every placeholder in a path."""
    known_placeholders = {"study", "python", "helpers", *_names(study.factors)}
    if any(level.build is not None for factor in study.factors for level in factor.levels):
        known_placeholders.add("build")
    if study.workload.data is not None:
        known_placeholders.add("data")
    if study.measure.layouts is not None:
        if "layout" in known_placeholders:
            raise file.table("measure").error(
                "layouts", "there is a factor called layout already", "rename the factor layout"
            )
        known_placeholders.add("layout")
    if _servers(study.workload, study.factors):
        known_placeholders.update(_SERVER_PLACEHOLDERS)
    for table, key, texts in _texts_with_placeholders(file, study):
        for name in (name for text in texts for name in _PLACEHOLDER.findall(text)):
            if key in _PATH_KEYS and name in known_placeholders:
                raise table.error(
                    key,
                    f"a path cannot contain {{{name}}}",
                    "write the path out; a relative path starts from the study's own folder",
                )
            if key not in _PATH_KEYS and name not in known_placeholders:
                raise table.error(
                    key,
                    f"{{{name}}} is not a placeholder",
                    f"{one_of(name, sorted(known_placeholders))}; write {{{{{name}}}}} for the "
                    "braces themselves",
                )
    if study.workload.data is not None and named_data(study) is None:
        raise file.table("workload").error(
            "data", "no text contains {data}", "write {data} in the command, for the file of rows"
        )


_PATH_KEYS = frozenset({"preload", "library_path", "folder"})
"""Keys of a level whose values are paths."""


def _texts_with_placeholders(file: Table, study: Study) -> Iterator[tuple[Table, str, Strings]]:
    """Yield each text of a study that may contain a placeholder, with its table and key."""
    workload = file.table("workload")
    if study.workload.server is None:
        yield workload, "command", study.workload.command
    else:
        server = workload.table("server")
        for key, words in study.workload.server.commands().items():
            yield server, key, words
        yield server, "client", study.workload.command
    if study.quick is not None and study.quick.command is not None:
        yield file.table("quick"), "command", study.quick.command
    factors = file.table("factors")
    for factor in study.factors:
        for level in factor.levels:
            table = (
                factors
                if factor.accepts_other_levels
                else factors.table(factor.name).table(level.name)
            )
            for key, words in level.server.commands().items() if level.server else ():
                yield table.table("server"), key, words
            yield table, "command", level.command or ()
            yield table, "client", level.client_arguments
            yield table, "args", level.arguments
            yield table, "env", tuple(level.environment.values())
            yield table, "build", (level.build or "",)
            yield table, "preload", level.preload
            yield table, "library_path", level.library_path
            yield table, "folder", (level.process.working_folder or "",)


def _names(factors_or_levels: Iterable[Factor | Level]) -> list[str]:
    return [factor_or_level.name for factor_or_level in factors_or_levels]
