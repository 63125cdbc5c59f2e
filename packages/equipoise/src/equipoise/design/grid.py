"""Makes the grid of a study: the conditions and contrasts of all combinations of levels."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from equipoise.design.commands import MAX_CONDITIONS, layout_program, refuse_in_shell_line
from equipoise.design.site import Site, search_folders, search_path
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Contrast, Process, Server
from equipoise.model.study import Factor, Keys, Level, Place, ServerWorkload, Strings, Study
from equipoise.shared.spelling import option

_NAME_IN_BRACES = re.compile(r"\{\{([A-Za-z_][\w-]*)\}\}|\{([A-Za-z_][\w-]*)\}")
"""A name in double braces, or in single braces."""
HELPERS = Path(__file__).resolve().parents[1] / "helpers"
"""Folder of the programs with which a workload reports its own metrics."""
PIPELINE_HINT = 'check its spelling; write a pipeline as ["sh", "-c", "…"]'
"""Hint for a program that does not exist."""


class Grid(Struct, frozen=True):
    """Conditions and contrasts of a study."""

    conditions: tuple[Condition, ...]
    contrasts: tuple[Contrast, ...]


LevelByFactor = dict[str, Level]
"""A combination of levels: one level of each factor, by the name of the factor."""


def grid_of(study: Study, site: Site, builds: Mapping[str, str]) -> Grid:
    """Return the conditions and contrasts of a study.

    ``builds`` has the folder of each program that was built for a level, by the level's name.

    Raise `UnusableInput` if no condition or no level to compare is left, if there are too many
    conditions, if two levels of a condition contradict, or if a program is missing.
    """
    combinations = list(kept_combinations(study))
    if not combinations:
        raise study.places.table("exclude").error(
            f"the study {study.name} excludes every condition",
            "remove an [[exclude]], or choose other levels",
        )
    if len(combinations) > MAX_CONDITIONS:
        raise study.places.table("factors").error(
            f"there are {len(combinations)} conditions, but a block has at most {MAX_CONDITIONS}",
            f"choose fewer levels with {option('factor')}, or add an [[exclude]]",
        )
    for levels in combinations:
        _refuse_contradictions(study, levels)
    conditions = tuple(
        _condition(study, name, levels, site, builds)
        for name, levels in zip(_condition_names(study, combinations), combinations, strict=True)
    )
    contrasts = tuple(_contrasts(study, combinations))
    compared = study.compared
    if compared is not None and not contrasts:
        raise study.places.table("factors", compared.factor).error(
            f"nothing is left to compare {compared.baseline} with",
            f"add a level to {compared.factor} that can run on this host",
        )
    return Grid(conditions, contrasts)


def kept_combinations(study: Study) -> Iterator[LevelByFactor]:
    """Yield every combination of levels that is not excluded."""
    names = [factor.name for factor in study.factors]
    for combination in itertools.product(*(factor.levels for factor in study.factors)):
        levels = dict(zip(names, combination, strict=True))
        if not any(
            all(levels[factor].name in excluded for factor, excluded in exclusion.items())
            for exclusion in study.exclusions
        ):
            yield levels


def build_lines(study: Study) -> dict[str, str]:
    """Return the shell line that builds the program of each level, by name of the level.

    The lines contain ``{build}`` in place of a folder.

    Raise `UnusableInput` if a path in a line has characters that a shell would interpret.
    """
    paths = _placeholder_values(study)
    lines: dict[str, str] = {}
    for factor in study.factors:
        for level in factor.levels:
            if level.build is not None:
                hint = "move the folder to a path of letters, digits and hyphens"
                refuse_in_shell_line(level.build, paths, hint)
                replacements = {factor.name: level.name, "build": "{build}", **paths}
                lines[level.name] = _fill_in(level.build, replacements)
    return lines


def _placeholder_values(study: Study) -> dict[str, str]:
    replacements = {"study": study.folder, "python": sys.executable, "helpers": str(HELPERS)}
    if study.workload.data is not None:
        replacements["data"] = study.workload.data_argument
    return replacements


def _contrasts(study: Study, combinations: list[LevelByFactor]) -> Iterator[Contrast]:
    """Yield the contrasts of levels of the compared factor, with equal levels of other factors."""
    if study.compared is None:
        return
    factor, baseline = study.compared.factor, study.compared.baseline
    other_names = [other.name for other in _varied_factors(study) if other.name != factor]
    indices = {_level_names(levels): index for index, levels in enumerate(combinations)}
    exclusions = study.compared.not_compared_at
    for index, levels in enumerate(combinations):
        if levels[factor].name == baseline or any(
            levels[name].name in excluded for name, excluded in exclusions.items() if name in levels
        ):
            continue
        baseline_index = indices.get(_level_names({**levels, factor: Level(baseline)}))
        if baseline_index is not None:
            stratum = {name: levels[name].name for name in other_names}
            yield Contrast(baseline_index, index, factor, stratum)


def _level_names(levels: LevelByFactor) -> tuple[str, ...]:
    return tuple(level.name for level in levels.values())


def _varied_factors(study: Study) -> list[Factor]:
    return [factor for factor in study.factors if len(factor.levels) > 1]


def _condition_names(study: Study, combinations: list[LevelByFactor]) -> list[str]:
    """Return a name for each condition: its levels, and the factors if names were ambiguous."""
    varied_factors = _varied_factors(study)

    def condition_name(levels: LevelByFactor, *, with_factors: bool) -> str:
        level_texts = (
            f"{factor.name}={levels[factor.name].name}"
            if factor.accepts_other_levels or with_factors
            else levels[factor.name].name
            for factor in varied_factors
        )
        return " ".join(level_texts) or study.name

    names = [condition_name(levels, with_factors=False) for levels in combinations]
    if len(set(names)) == len(names):
        return names
    # The levels "a b" and "c" would have the same name as "a" and "b c".
    return [condition_name(levels, with_factors=True) for levels in combinations]


def _condition(
    study: Study, name: str, level_by_factor: LevelByFactor, site: Site, builds: Mapping[str, str]
) -> Condition:
    """Return the condition with these levels; with a server, the command is that of the client."""
    levels = list(level_by_factor.values())
    level_names = {factor: level.name for factor, level in level_by_factor.items()}
    replacements = {**level_names, **_placeholder_values(study)}
    for level in levels:
        if level.build is not None:
            replacements["build"] = builds[level.name]
    command, place = _chosen_command(study, level_by_factor)
    arguments = tuple(argument for level in levels for argument in level.arguments)
    environment = _environment(levels, replacements, site)
    process = _process(levels, study)
    condition = Condition(
        name,
        command,
        levels=level_names,
        environment=environment,
        process=process,
        mapped_from=tuple(folder for level in levels for folder in level.library_path),
        reports=study.workload.reports,
        tuned_for=tuple(core for level in levels for core in level.tuned_for),
    )
    server, keys = _chosen_server(study, level_by_factor)
    if server is None:
        layouts = study.measure.layouts or 0
        template = (*command, *arguments)
        return replace(
            condition,
            command=_command(template, replacements, site, environment, place, layouts),
        )
    client_arguments = (argument for level in levels for argument in level.client_arguments)
    client_template = (*command, *client_arguments)
    path_variable = {"PATH": search_path(server)}
    cpus = [level.client_cpus for level in levels if level.client_cpus is not None]
    return replace(
        condition,
        command=_command(client_template, replacements, site, path_variable, place),
        environment=path_variable if server.path else {},
        process=Process(cpus=cpus[-1] if cpus else None),
        server=_server(study, server, keys, arguments, replacements, site, environment, process),
    )


def _chosen_command(study: Study, levels: LevelByFactor) -> tuple[Strings, Place]:
    """Return the command of a level, or else of the workload, and its place in the study file."""
    for factor, level in levels.items():
        if level.command is not None:
            if level.server is not None:
                return level.command, study.places.key(*_server_keys(factor, level), "client")
            return level.command, study.places.key("factors", factor, level.name, "command")
    return study.workload.command, study.workload.command_place


def _chosen_server(study: Study, levels: LevelByFactor) -> tuple[ServerWorkload | None, Keys]:
    """Return the server of a level or of the workload, and the keys of the server's table."""
    for factor, level in reversed(levels.items()):
        if level.server is not None:
            return level.server, _server_keys(factor, level)
    return study.workload.server, ("workload", "server")


def _server_keys(factor: str, level: Level) -> Keys:
    return ("factors", factor, level.name, "server")


def _server(
    study: Study,
    server: ServerWorkload,
    keys: Keys,
    arguments: Strings,
    replacements: Mapping[str, str],
    site: Site,
    environment: dict[str, str],
    process: Process,
) -> Server:
    """Return the server, with values for the names in braces in its commands."""
    path_variable = {"PATH": search_path(server)}

    def command(
        key: str, template: Strings, environment: Mapping[str, str] = path_variable
    ) -> Strings:
        return _command(template, replacements, site, environment, study.places.key(*keys, key))

    start = command("start", (*server.start, *arguments), {**path_variable, **environment})
    other_commands = {
        key: command(key, template) for key, template in server.commands().items() if key != "start"
    }
    return replace(
        msgspec.convert(server, Server, from_attributes=True),
        start=start,
        environment=environment,
        process=process,
        search_path=search_folders(server),
        **other_commands,
    )


def _environment(
    levels: Sequence[Level], replacements: Mapping[str, str], site: Site
) -> dict[str, str]:
    environment = {
        key: _fill_in(value, replacements)
        for level in levels
        for key, value in level.environment.items()
    }
    preload: list[str] = []
    for library in itertools.chain.from_iterable(level.preload for level in levels):
        path = site.find_library(library)
        assert path is not None, "levels with missing libraries were removed before"
        preload.append(path)
    library_path = [folder for level in levels for folder in level.library_path]
    if preload:
        environment["LD_PRELOAD"] = " ".join(preload)
    if library_path:
        environment["LD_LIBRARY_PATH"] = ":".join(library_path)
    return environment


def _process(levels: Sequence[Level], study: Study) -> Process:
    process = Process(working_folder=study.workload.working_folder)
    for level in levels:
        known_values = {
            name: value for name, value in asdict(level.process).items() if value is not None
        }
        process = replace(process, **known_values)
    return process


_JOINED_VARIABLES = {"preload": "LD_PRELOAD", "library_path": "LD_LIBRARY_PATH"}
"""Keys that several levels of a condition may have, and the variable that each key sets."""


def _refuse_contradictions(study: Study, levels: Mapping[str, Level]) -> None:
    """Raise `UnusableInput` if one level of a condition overrides a setting of another level."""
    first_values: dict[tuple[str, ...], tuple[str, object]] = {}
    for factor, level in levels.items():
        for keys, value in _exclusive_settings(level):
            level_text = f"{level.name} of {factor}"
            first_level, first_value = first_values.setdefault(keys, (level_text, value))
            if first_value != value:
                raise _contradiction(study, factor, level.name, keys, first_level)
    for factor, level in levels.items():
        for key, variable in _JOINED_VARIABLES.items():
            if variable in level.environment and any(
                getattr(other_level, key) for other_level in levels.values()
            ):
                raise _contradiction(study, factor, level.name, ("env", variable), key)


def _contradiction(
    study: Study, factor: str, level: str, keys: tuple[str, ...], other: str
) -> UnusableInput:
    return study.places.key("factors", factor, level, *keys).error(
        f"{other} also sets this key, so one of the two values would have no effect",
        "set the key in one of the two levels, or add an [[exclude]] with both levels",
    )


def _exclusive_settings(level: Level) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the key and the value of each setting that only one level of a condition may have."""
    for variable, value in level.environment.items():
        yield ("env", variable), value
    settings = {
        ("command",): level.command if level.server is None else None,
        ("server",): level.server,
        ("folder",): level.process.working_folder,
        ("cpu",): level.process.cpus,
        ("aslr",): level.process.random_addresses,
        ("huge_pages",): level.process.huge_pages,
        ("client", "cpu"): level.client_cpus,
    }
    yield from ((keys, setting) for keys, setting in settings.items() if setting is not None)


def _command(
    template: Strings,
    replacements: Mapping[str, str],
    site: Site,
    environment: Mapping[str, str],
    place: Place,
    layouts: int = 0,
) -> Strings:
    """Return a template with the path of its program and with values for names in braces."""
    program_name, *arguments = (_fill_in(word, replacements) for word in template)
    try:
        program = layout_program(
            program_name, site.native_programs, environment, PIPELINE_HINT, layouts=layouts
        )
    except UnusableInput as error:
        raise place.error(error.what, error.hint) from None
    return (program, *arguments)


def _fill_in(text: str, replacements: Mapping[str, str]) -> str:
    """Replace names in braces by their values; ``{{name}}`` becomes ``{name}``."""

    def replacement(braces: re.Match[str]) -> str:
        if braces[1] is not None:
            return "{" + braces[1] + "}"
        return replacements.get(braces[2], braces[0])

    return _NAME_IN_BRACES.sub(replacement, text)
