"""A study before its campaign: its quick form, the chosen levels, and what this host lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from equipoise.design.coin import Addresses
from equipoise.design.commands import parameter_list, split_command
from equipoise.design.grid import Grid, build_lines, grid_of
from equipoise.design.site import Site, remove_missing_levels, setting_place
from equipoise.measure.builds import build_levels
from equipoise.measure.installation import host_site
from equipoise.measure.launcher import COUNTERS
from equipoise.measure.trials import own_environment
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Factor, Level, Place, Strings, Study, is_size
from equipoise.shared.spelling import option
from equipoise.studies.catalogue import find_study
from equipoise.studies.data_sets import with_data
from equipoise.studies.reader.study import read_study

BUILDS_FOLDER = "builds"
"""Folder next to the ledger for the programs of levels that are built."""


class StudyOptions(Struct, frozen=True, kw_only=True):
    """The study that the user wants to run, and changes to it."""

    study: str
    """Path of a TOML file, or the name of a built-in study."""
    quick: bool = False
    command: str | None = None
    """Program that replaces the study's workload."""
    factors: Sequence[str] = ()
    """Levels to run, as ``NAME=LEVEL,LEVEL`` for each factor."""
    layouts: int | None = None
    aslr: Addresses | None = None
    """Address randomisation in layouts; ``None`` keeps the study's value, as for ``layouts``."""


class PreparedStudy(Struct, frozen=True):
    """A study that this host can run, with warnings about the factors and levels left out."""

    study: Study
    site: Site
    warnings: tuple[CampaignWarning, ...]
    build_lines: Mapping[str, str]
    """Shell lines that build levels, by the level's name; empty if nothing is built."""

    def grid(self, builds: Mapping[str, str]) -> Grid:
        """Return the grid of conditions; ``builds`` has the folder of each built level."""
        return grid_of(self.study, self.site, builds)

    def build(self, ledger: Path) -> Mapping[str, str]:
        """Build the levels in a folder next to the ledger; return the folder of each level."""
        return build_levels(
            self.build_lines, ledger.parent / BUILDS_FOLDER, own_environment(), os.getcwd()
        )

    @contextmanager
    def errors_at_settings(self, plan: Plan) -> Iterator[None]:
        """Add the study's file and line to an error about a setting without effect."""
        try:
            yield
        except TookNoEffect as error:
            levels = next(
                condition.levels
                for condition in plan.conditions
                if condition.name == error.condition
            )
            place = setting_place(self.study, levels, error.study_key, error.value)
            raise place.error(error.what, error.hint) from None


def prepare_study(options: StudyOptions, ledger: Path) -> PreparedStudy:
    """Read a study, apply the options, and adapt it to this host.

    Raise `UnusableInput` if the study, a factor or a level does not exist, or if this host can run
    no condition.
    """
    site = host_site()
    study, factor_warnings = without_idle_factors(_read_changed_study(options))
    study, level_warnings = remove_missing_levels(study, site)
    study, data_warnings = with_data(study, ledger)
    warnings = (*factor_warnings, *level_warnings, *data_warnings)
    return PreparedStudy(study, site, warnings, build_lines(study))


def _read_changed_study(options: StudyOptions) -> Study:
    study = read_study(*find_study(options.study), counters=COUNTERS)
    if options.quick:
        study = quick_form(study)
    if options.command is not None:
        command_line = tuple(split_command(options.command))
        if not command_line:
            raise UnusableInput(
                f"{option('command')} is empty",
                hint=f"give the program to run: {option('command', 'COMMAND')}",
            )
        study = with_command(study, command_line)
    changes = {
        key: getattr(options, key)
        for key in ("layouts", "aslr")
        if getattr(options, key) is not None
    }
    study = replace(study, measure=replace(study.measure, **changes))
    return with_levels(study, chosen_levels(study, options.factors))


def quick_form(study: Study) -> Study:
    """Return the quick form of a study; raise `UnusableInput` if it has none."""
    quick = study.quick
    if quick is None:
        raise UnusableInput(
            f"the study {study.name} has no quick form",
            hint=f"shorten the study with {option('budget', 60)}, or add a table [quick] to its "
            "file",
        )
    measure, workload = study.measure, study.workload
    measure = replace(
        measure,
        budget=quick.budget or measure.budget,
        blocks=quick.blocks or measure.blocks,
        extends_to_verdicts=True,
        author_block_s=None,
    )
    if quick.command is not None:
        workload = replace(workload, command=quick.command, command_place=quick.command_place)
    quick_study = with_levels(replace(study, measure=measure, workload=workload), quick.levels)
    compared = quick_study.compared
    if compared is None:
        return quick_study
    not_compared_at = {
        name: (*compared.not_compared_at.get(name, ()), *quick.not_compared_at.get(name, ()))
        for name in {**compared.not_compared_at, **quick.not_compared_at}
    }
    return replace(quick_study, compared=replace(compared, not_compared_at=not_compared_at))


def with_command(study: Study, command: Strings) -> Study:
    """Return the study with another program as its workload; raise `UnusableInput` for a server."""
    if study.workload.server is not None:
        raise UnusableInput(
            f"the workload of {study.name} is a server: {option('command')} cannot replace it",
            hint="change start in [workload.server] of a copy of the study's file",
        )
    workload = replace(study.workload, command=command, command_place=Place("--command"))
    return replace(study, workload=workload, measure=replace(study.measure, author_block_s=None))


def chosen_levels(study: Study, assignments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the levels of ``--factor NAME=LEVEL,LEVEL``; raise `UnusableInput` for other texts."""
    levels_by_factor: dict[str, tuple[str, ...]] = {}
    factor_names = ", ".join(factor.name for factor in study.factors)
    for assignment in assignments:
        name, equals, levels = assignment.partition("=")
        if not equals or not levels:
            raise UnusableInput(
                f"{option('factor')} {assignment!r} is not of the form NAME=LEVEL,LEVEL",
                hint=f"name a factor ({factor_names}) and its levels, such as "
                f"{study.factors[0].name}={study.factors[0].levels[0].name}",
            )
        if study.factor(name) is None:
            raise UnusableInput(
                f"{option('factor')} {assignment!r}: the study {study.name} has no factor {name!r}",
                hint=f"use one of {factor_names}",
            )
        if name in levels_by_factor:
            raise UnusableInput(
                f"{option('factor', name)} is given twice",
                hint=f"name all levels in one option, separated by commas: {name}=LEVEL,LEVEL",
            )
        levels_by_factor[name] = tuple(dict.fromkeys(parameter_list(levels)))
    return levels_by_factor


def with_levels(study: Study, chosen: Mapping[str, tuple[str, ...]]) -> Study:
    """Return the study with only the chosen levels of some factors; ``chosen`` is by factor.

    If the baseline is not a chosen level, the first chosen level is the baseline. All chosen levels
    are compared: the study's ``not_compared_at`` no longer applies to their factors. Raise
    `UnusableInput` if a factor lacks a chosen level.
    """
    factors = tuple(
        _factor_with_levels(factor, chosen[factor.name]) if factor.name in chosen else factor
        for factor in study.factors
    )
    compared = study.compared
    if compared is not None:
        not_compared_at = {
            name: levels for name, levels in compared.not_compared_at.items() if name not in chosen
        }
        compared = replace(compared, not_compared_at=not_compared_at)
        levels = next(factor.levels for factor in factors if factor.name == compared.factor)
        if compared.baseline not in [level.name for level in levels]:
            compared = replace(compared, baseline=levels[0].name)
    # The time of a block is known only for the whole study.
    measure = replace(study.measure, author_block_s=None) if chosen else study.measure
    return replace(study, factors=factors, compared=compared, measure=measure)


def _factor_with_levels(factor: Factor, level_names: tuple[str, ...]) -> Factor:
    known_levels = {level.name: level for level in (*factor.levels, *factor.optional_levels)}
    for level_name in level_names:
        if factor.role == "size" and not is_size(level_name):
            raise UnusableInput(
                f"the factor {factor.name} is a size, and {level_name!r} is not a number above 0",
                hint=f"give numbers above 0, such as {factor.name}=1000",
            )
        if level_name not in known_levels and not factor.accepts_other_levels:
            raise UnusableInput(
                f"the factor {factor.name} has no level {level_name!r}",
                hint=f"use one of {', '.join(known_levels)}",
            )
    # A level that the quick form leaves out can still be chosen later.
    optional_levels = tuple(known_levels.values())
    if factor.accepts_other_levels:
        optional_levels = factor.optional_levels
    levels = tuple(known_levels.get(level_name) or Level(level_name) for level_name in level_names)
    return replace(factor, levels=levels, optional_levels=optional_levels)


def without_idle_factors(study: Study) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study without idle factors, and a warning about each of them.

    A factor is idle if its levels are only values and no text of the study contains its name in
    braces. This happens if ``--command`` replaces the workload and ignores the sizes. Raise
    `UnusableInput` if the compared factor is idle.
    """
    factors: list[Factor] = []
    warnings: list[CampaignWarning] = []
    for factor in study.factors:
        if not factor.accepts_other_levels or any(
            f"{{{factor.name}}}" in text for text in study.texts()
        ):
            factors.append(factor)
            continue
        problem = f"the factor {factor.name} changes nothing: no text contains {{{factor.name}}}"
        hint = f"write {{{factor.name}}} in the command, where its level belongs"
        if study.compared is not None and study.compared.factor == factor.name:
            raise study.places.table("factors", factor.name).error(problem, hint)
        warnings.append(CampaignWarning("factor_idle", f"{problem}; it is left out", hint))
    remaining_names = {factor.name for factor in factors}
    exclusions = tuple(
        exclusion for exclusion in study.exclusions if exclusion.keys() <= remaining_names
    )
    return replace(study, factors=tuple(factors), exclusions=exclusions), tuple(warnings)
