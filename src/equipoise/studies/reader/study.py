"""From a study's TOML file (design.md §4) to a Study, or an error with file, line and key."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Literal, Protocol

from equipoise.design.choice import named_data
from equipoise.design.grid import kept_settings
from equipoise.model.plan import PRIMARY_METRIC
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
    is_size,
)
from equipoise.model.trial import Accounting
from equipoise.studies.data_sets import DATA_SETS
from equipoise.studies.reader.factors import read_factors
from equipoise.studies.reader.placeholders import check_placeholders
from equipoise.studies.reader.server_table import (
    check_that_trials_are_of_one_kind,
    read_server,
    server_metrics,
    servers_of,
)
from equipoise.studies.reader.table import Table, one_of

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
    return Compared(name, baseline, not_at)


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
