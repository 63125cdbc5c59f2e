"""From a study's TOML file (design.md §4) to a Study, or an error with file, line and key."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Protocol

from equipoise.design.grid import kept_settings
from equipoise.model.study import (
    Compared,
    Exclusion,
    Factor,
    Quick,
    ServerWorkload,
    Study,
    StudyMeasure,
    Words,
    Workload,
)
from equipoise.model.trial import Accounting
from equipoise.studies.data_sets import DATA_SETS
from equipoise.studies.factors import read_factors
from equipoise.studies.server_table import OF_A_LIFE, PLACEHOLDERS, SERVER_METRICS, read_server
from equipoise.studies.table import Table, one_of

METRICS = tuple(
    field.name for field in fields(Accounting) if field.name not in ("counters", "unknown")
)
"""What every trial has."""

MOST_WARMUP = 1000
"""As ``--warmup``."""

_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")
_FILE_PLACEHOLDERS = ("study", "python")
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
        It cannot be read, or is no study: file, line, key and the mend.
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
    )
    file.finish()
    _check_that_everything_has_a_command(file, study)
    _check_that_trials_are_of_one_kind(file, study)
    _check_that_something_is_left(file, study)
    _check_placeholders(file, study)
    return study


def _workload(table: Table, folder: str) -> Workload:
    server_table = table.table("server") if table.has("server") else None
    server: ServerWorkload | None = None
    command: Words = ()
    if server_table is None:
        command = table.words("command") or ()
    else:
        if table.has("command"):
            raise table.fail(
                "command", "a workload with a server has a client", "move it to [workload.server]"
            )
        server, command = read_server(server_table)
    own_folder = table.text("folder")
    if own_folder is not None and not os.path.isdir(os.path.join(folder, own_folder)):
        raise table.fail(
            "folder",
            f"there is no folder {os.path.join(folder, own_folder)}",
            "make it; a relative one starts from the study's own folder",
        )
    reports = table.texts("reports") or ()
    for metric in reports:
        if metric in METRICS:
            raise table.fail("reports", f"{metric} is measured of every trial", "leave it out")
    data = table.text("data")
    if data is not None and data not in DATA_SETS:
        raise table.fail("data", f"there is no data set {data!r}", one_of(data, list(DATA_SETS)))
    found = Workload(
        command=command,
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
    metrics = table.texts("metrics") or ("wall_s",)
    of_server = _server_metrics(servers_of(workload, factors))
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
    )
    blocks, min_blocks = found.blocks, found.min_blocks
    if blocks is not None and min_blocks is not None and min_blocks > blocks:
        raise table.fail(
            "min_blocks", f"it is {min_blocks}, more than blocks = {blocks}", "lower it"
        )
    table.finish()
    return found


def _compared(table: Table, factors: tuple[Factor, ...]) -> Compared | None:
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
        return Compared(treatments[0].name, treatments[0].levels[0].name) if treatments else None
    factor = next((factor for factor in factors if factor.name == name), None)
    if factor is None:
        raise table.fail("factor", f"there is no factor {name!r}", one_of(name, _names(factors)))
    if factor.role == "size":
        raise table.fail(
            "factor", f"{name} is a size, not a treatment", "compare another factor at each size"
        )
    baseline = table.text("baseline") or factor.levels[0].name
    levels = _names(factor.levels)
    if baseline not in levels:
        raise table.fail("baseline", f"{name} has no level {baseline!r}", one_of(baseline, levels))
    table.finish()
    return Compared(name, baseline)


def _exclusion(table: Table, factors: tuple[Factor, ...]) -> Exclusion:
    found: Exclusion = {}
    for factor in factors:
        if table.has(factor.name):
            one = table.values[factor.name]
            levels = table.values_of(factor.name) if isinstance(one, list) else (str(one),)
            found[factor.name] = levels or ()
            _check_levels(table, factor, found[factor.name])
    table.finish()
    if not found:
        raise table.fail(None, "it excludes everything", "name at least one factor and its level")
    return found


def servers_of(workload: Workload, factors: Iterable[Factor]) -> tuple[ServerWorkload, ...]:
    """Every server of a study: the workload's own and those of levels."""
    levels = (level.server for factor in factors for level in factor.levels)
    return tuple(one for one in (workload.server, *levels) if one is not None)


def _server_metrics(servers: tuple[ServerWorkload, ...]) -> tuple[str, ...]:
    if not servers:
        return ()
    lives = all(server.trial == "life" for server in servers)
    return tuple(metric for metric in SERVER_METRICS if lives or metric not in OF_A_LIFE)


def _check_that_everything_has_a_command(file: Table, study: Study) -> None:
    brings_its_own = any(
        all(level.command is not None for level in factor.levels) for factor in study.factors
    )
    if not study.workload.command and not brings_its_own:
        raise file.table("workload").fail(
            None, "command is missing", 'as in command = ["sort", "words"]'
        )


def _check_that_trials_are_of_one_kind(file: Table, study: Study) -> None:
    """A life and an interval are different units: what they vary over is not the same."""
    kinds = {server.trial for server in servers_of(study.workload, study.factors)}
    if len(kinds) > 1:
        raise file.table("factors").fail(
            None,
            "a trial is a whole life of one server and an interval of another",
            "give every server the same trial",
        )


def _check_that_something_is_left(file: Table, study: Study) -> None:
    for _ in kept_settings(study):
        return
    raise file.tables("exclude")[-1].fail(
        None, "with it, nothing is left to run", "leave out one level from it"
    )


def _quick(table: Table, factors: tuple[Factor, ...]) -> Quick:
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
    found = Quick(
        levels=levels,
        command=table.words("command"),
        budget_s=table.number("budget", above=0),
        blocks=table.whole("blocks", least=1),
    )
    table.finish()
    return found


def _check_levels(table: Table, factor: Factor, levels: Iterable[str]) -> None:
    known = list(dict.fromkeys(_names((*factor.levels, *factor.choices))))
    for level in levels:
        if level not in known and not factor.plain:
            raise table.fail(
                factor.name, f"{factor.name} has no level {level!r}", one_of(level, known)
            )


def _check_placeholders(file: Table, study: Study) -> None:
    """Refuse a name in braces that stands for nothing."""
    known = {*_FILE_PLACEHOLDERS, *_names(study.factors)}
    if any(level.build is not None for factor in study.factors for level in factor.levels):
        known.add("build")
    if study.workload.data is not None:
        known.add("data")
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


def _check_words(table: Table, key: str, words: Words, known: set[str]) -> None:
    for name in (found for word in words for found in _PLACEHOLDER.findall(word)):
        if name not in known:
            raise table.fail(
                key,
                f"{{{name}}} stands for nothing",
                f"{one_of(name, sorted(known))}; write {{{{{name}}}}} for the braces themselves",
            )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _names(named: Iterable[_Named]) -> list[str]:
    return [one.name for one in named]
