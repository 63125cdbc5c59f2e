"""From a study to conditions and to what is compared with what."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.design.commands import MOST_CONDITIONS, find_program
from equipoise.design.server_programs import absent_program, search_folders, searched
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Contrast, Process, Server
from equipoise.model.record import Notice
from equipoise.model.study import Factor, Level, ServerWorkload, Study, Words

_BRACES = re.compile(r"\{\{([A-Za-z_][\w-]*)\}\}|\{([A-Za-z_][\w-]*)\}")

PIPELINE = 'check its spelling; a pipeline is written ["sh", "-c", "…"]'

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
"""Neither a path, nor a placeholder, nor something for a shell."""


@dataclass(frozen=True, slots=True)
class Site:
    """What design has to know of the host."""

    native_programs: Path
    find_library: Callable[[str], str | None]
    """The absolute path of a library by its file name or path; ``None`` if it is not there."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What a study runs."""

    conditions: tuple[Condition, ...]
    contrasts: tuple[Contrast, ...]


Levels = dict[str, Level]
"""One level of each factor, by factor."""


def without_missing(study: Study, site: Site) -> tuple[Study, tuple[Notice, ...]]:
    """The study without the levels whose libraries or programs are not installed, and which.

    Raises
    ------
    UnusableInput
        The baseline is one of them, or no two levels of what is compared are left.
    """
    server = study.workload.server
    absent = None if server is None else absent_program(server, site.native_programs)
    if absent is not None:
        raise UnusableInput(
            f"the server of {study.name} cannot run here: there is no program {absent.program}",
            mend=absent.mend,
        )
    notices: list[Notice] = []
    factors: list[Factor] = []
    for factor in study.factors:
        present: list[Level] = []
        for level in factor.levels:
            missing = next(_missing(level, site), None)
            if missing is None:
                present.append(level)
                continue
            what = f"{factor.name} {level.name} cannot run here: there is no {missing.what}"
            mend = missing.mend
            compared = study.compared
            if compared is not None and (compared.factor, compared.baseline) == (
                factor.name,
                level.name,
            ):
                raise UnusableInput(f"the baseline {what}", mend=mend)
            notices.append(Notice("level_missing", f"{what}; it is left out", mend))
        if not present:
            raise UnusableInput(
                f"no level of {factor.name} can run here: {notices[-1].words}",
                mend=notices[-1].mend,
            )
        if len(present) == 1 < len(factor.levels) and _is_compared(factor, study):
            raise UnusableInput(
                f"nothing is left to compare {present[0].name} with: {notices[-1].words}",
                mend=notices[-1].mend,
            )
        factors.append(replace(factor, levels=tuple(present)))
    return replace(study, factors=tuple(factors)), tuple(notices)


def _is_compared(factor: Factor, study: Study) -> bool:
    return study.compared is not None and study.compared.factor == factor.name


def grid_of(study: Study, site: Site, builds: Mapping[str, str]) -> Grid:
    """Make the conditions of a study, and what is compared with what.

    Parameters
    ----------
    builds
        Where each level that is built was built, by the level's name.

    Raises
    ------
    UnusableInput
        Everything is excluded, nothing is left to compare, there are too many conditions, or
        a program does not exist.
    """
    settings = list(kept_settings(study))
    if not settings:
        raise UnusableInput(
            f"the study {study.name} excludes every condition",
            mend="leave out an [[exclude]], or choose other levels",
        )
    if len(settings) > MOST_CONDITIONS:
        raise UnusableInput(
            f"{len(settings)} conditions are more than the {MOST_CONDITIONS} of one block",
            mend="choose fewer levels with --factor, or write an [[exclude]]",
        )
    conditions = tuple(_condition(study, levels, site, builds) for levels in settings)
    contrasts = tuple(_contrasts(study, settings))
    if study.compared is not None and not contrasts:
        raise UnusableInput(
            f"nothing is left to compare {study.compared.baseline} with",
            mend=f"give {study.compared.factor} another level that runs here",
        )
    return Grid(conditions, contrasts)


def kept_settings(study: Study) -> Iterator[Levels]:
    """Every combination of levels that is not excluded."""
    return (levels for levels in _product(study.factors) if not _is_excluded(levels, study))


def build_lines(study: Study) -> dict[str, str]:
    """What has to be built, by the name of the level; ``{build}`` is still in it."""
    return {
        level.name: _fill(
            level.build,
            {factor.name: level.name, "build": "{build}", **_meanings(study)},
        )
        for factor in study.factors
        for level in factor.levels
        if level.build is not None
    }


def _meanings(study: Study) -> dict[str, str]:
    """What stands in braces in every study."""
    meanings = {"study": study.folder, "python": sys.executable}
    if study.workload.data is not None:
        meanings["data"] = study.workload.data_word
    return meanings


@dataclass(frozen=True, slots=True)
class _Missing:
    what: str
    mend: str


def _missing(level: Level, site: Site) -> Iterator[_Missing]:
    mend = f"apt install {level.package}" if level.package else "install it"
    for library in level.preload:
        if site.find_library(library) is None:
            yield _Missing(library, mend)
    folder = level.working_folder
    for needed in (*level.library_path, *(() if folder is None else (folder,))):
        if not os.path.isdir(needed):
            yield _Missing(f"folder {needed}", mend)
    ours = os.sched_getaffinity(0)
    for cpu in (*(level.cpus or ()), *(level.client_cpus or ())):
        if cpu not in ours:
            yield _Missing(f"CPU {cpu} for us", f"name CPUs of {', '.join(map(str, sorted(ours)))}")
    search = None
    if level.server is not None:
        absent = absent_program(level.server, site.native_programs)
        if absent is not None:
            yield _Missing(f"program {absent.program}", absent.mend)
        search = searched(level.server)
    program = None if level.command is None else level.command[0]
    own = program is not None and (site.native_programs / program).is_file()
    plain = program is not None and not own and "{" not in program
    if program is not None and plain and not shutil.which(program, path=search):
        yield _Missing(f"program {program}", mend)
    builder = (level.build or "").partition(" ")[0]
    if _PLAIN_NAME.fullmatch(builder) and shutil.which(builder) is None:
        yield _Missing(f"program {builder}", mend)


def _product(factors: tuple[Factor, ...]) -> Iterator[Levels]:
    names = [factor.name for factor in factors]
    for levels in itertools.product(*(factor.levels for factor in factors)):
        yield dict(zip(names, levels, strict=True))


def _is_excluded(levels: Levels, study: Study) -> bool:
    return any(
        all(levels[factor].name in excluded for factor, excluded in exclusion.items())
        for exclusion in study.exclusions
    )


def _contrasts(study: Study, settings: list[Levels]) -> Iterator[Contrast]:
    if study.compared is None:
        return
    factor, baseline = study.compared.factor, study.compared.baseline
    varied = [one.name for one in study.factors if len(one.levels) > 1 and one.name != factor]
    places = {_key(levels): index for index, levels in enumerate(settings)}
    for index, levels in enumerate(settings):
        if levels[factor].name == baseline:
            continue
        other = places.get(_key({**levels, factor: Level(baseline)}))
        if other is not None:
            stratum = {name: levels[name].name for name in varied}
            yield Contrast(other, index, factor, stratum)


def _key(levels: Levels) -> tuple[str, ...]:
    return tuple(level.name for level in levels.values())


def _condition(study: Study, levels: Levels, site: Site, builds: Mapping[str, str]) -> Condition:
    names = {factor: level.name for factor, level in levels.items()}
    meanings = {**names, **_meanings(study)}
    for level in levels.values():
        if level.build is not None:
            meanings["build"] = builds[level.name]
    chosen = [level.command for level in levels.values() if level.command is not None]
    command = chosen[-1] if chosen else study.workload.command
    arguments = tuple(one for level in levels.values() for one in level.arguments)
    environment = _environment(levels.values(), meanings, site)
    process = _process(levels.values(), study)
    mapped_from = tuple(folder for level in levels.values() for folder in level.library_path)
    varied = {
        factor.name: f"{factor.name}={names[factor.name]}" if factor.plain else names[factor.name]
        for factor in study.factors
        if len(factor.levels) > 1
    }
    name = " ".join(varied.values()) or study.name
    servers = [level.server for level in levels.values() if level.server is not None]
    asked = servers[-1] if servers else study.workload.server
    if asked is None:
        return Condition(
            name,
            _command((*command, *arguments), meanings, site, environment),
            levels=names,
            environment=environment,
            process=process,
            mapped_from=mapped_from,
            reports=study.workload.reports,
        )
    client = (*command, *(one for level in levels.values() for one in level.client_arguments))
    cpus = [level.client_cpus for level in levels.values() if level.client_cpus is not None]
    return Condition(
        name,
        _command(client, meanings, site, {"PATH": searched(asked)}),
        levels=names,
        environment={"PATH": searched(asked)} if asked.path else {},
        process=Process(cpus=cpus[-1] if cpus else None),
        server=_server(asked, arguments, meanings, site, environment, process),
        mapped_from=mapped_from,
        reports=study.workload.reports,
    )


def _server(
    asked: ServerWorkload,
    arguments: Words,
    meanings: Mapping[str, str],
    site: Site,
    environment: dict[str, str],
    process: Process,
) -> Server:
    path = {"PATH": searched(asked)}

    def own(words: Words | None) -> Words | None:
        return None if words is None else _command(words, meanings, site, path)

    return Server(
        start=_command((*asked.start, *arguments), meanings, site, {**path, **environment}),
        environment=environment,
        process=process,
        install=own(asked.install),
        fill=own(asked.fill),
        prepare=own(asked.prepare),
        ready=own(asked.ready),
        stop=own(asked.stop),
        stop_signal=asked.stop_signal,
        ready_s=asked.ready_s,
        search_path=search_folders(asked),
        unprivileged=asked.unprivileged,
        trial=asked.trial,
    )


def _environment(
    levels: Iterable[Level], meanings: Mapping[str, str], site: Site
) -> dict[str, str]:
    environment: dict[str, str] = {}
    preload: list[str] = []
    library_path: list[str] = []
    for level in levels:
        for key, value in level.environment.items():
            environment[key] = _fill(value, meanings)
        for library in level.preload:
            found = site.find_library(library)
            assert found is not None, "levels whose libraries are missing are left out before"
            preload.append(found)
        library_path.extend(level.library_path)
    if preload:
        environment["LD_PRELOAD"] = " ".join(preload)
    if library_path:
        environment["LD_LIBRARY_PATH"] = ":".join(library_path)
    return environment


def _process(levels: Iterable[Level], study: Study) -> Process:
    process = Process(working_folder=study.workload.working_folder)
    for level in levels:
        # What a later factor sets counts.
        process = Process(
            working_folder=level.working_folder or process.working_folder,
            cpus=level.cpus or process.cpus,
            random_addresses=_given(level.random_addresses, process.random_addresses),
            huge_pages=_given(level.huge_pages, process.huge_pages),
        )
    return process


def _given(asked: bool | None, otherwise: bool | None) -> bool | None:
    return otherwise if asked is None else asked


def _command(
    words: Words, meanings: Mapping[str, str], site: Site, environment: Mapping[str, str]
) -> Words:
    front, *rest = (_fill(word, meanings) for word in words)
    return (find_program(front, site.native_programs, environment, PIPELINE), *rest)


def _fill(text: str, meanings: Mapping[str, str]) -> str:
    """Put what names in braces stand for; ``{{name}}`` is ``{name}``, other braces stay."""

    def meaning(found: re.Match[str]) -> str:
        if found[1] is not None:
            return "{" + found[1] + "}"
        return meanings.get(found[2], found[0])

    return _BRACES.sub(meaning, text)
