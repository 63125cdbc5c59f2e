"""A study before its campaign: its quick form, its levels, what this host lacks, its builds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from equipoise.design.choice import (
    chosen_levels,
    quick_form,
    with_command,
    with_levels,
    without_idle_factors,
)
from equipoise.design.coin import Addresses
from equipoise.design.commands import split_command
from equipoise.design.grid import Grid, build_lines, grid_of
from equipoise.design.site import Site, setting_place, without_missing
from equipoise.measure.builds import build_levels
from equipoise.measure.installation import host_site
from equipoise.measure.launcher import COUNTERS
from equipoise.measure.trials import own_environment
from equipoise.model.errors import TookNoEffect, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Study
from equipoise.studies.catalogue import find_study
from equipoise.studies.data_sets import with_data
from equipoise.studies.reader.study import read_study

BUILDS = "builds"
"""Folder beside the ledger for the programs that levels build."""


class StudyOptions(Struct, frozen=True, kw_only=True):
    """A study, and what to change of it.

    Parameters
    ----------
    study
        Path of a TOML file, or the name of a built-in study.
    quick
        Whether to run the study's quick form.
    command
        Program to ask it of instead.
    factors
        ``NAME=LEVEL,LEVEL``: the levels of a factor to run.
    layouts, aslr
        As for a comparison; ``None`` for the study's own.
    """

    study: str
    quick: bool = False
    command: str | None = None
    factors: Sequence[str] = ()
    layouts: int | None = None
    aslr: Addresses | None = None


class PreparedStudy(Struct, frozen=True):
    """A study as this host can run it, and warnings of what is left out."""

    study: Study
    site: Site
    warnings: tuple[CampaignWarning, ...]
    build_lines: Mapping[str, str]
    """Command line that builds each level, by the level's name; empty if nothing is built."""

    def grid(self, builds: Mapping[str, str]) -> Grid:
        """Return the conditions, given the folder of each level that was built."""
        return grid_of(self.study, self.site, builds)

    def built(self, ledger: Path) -> Mapping[str, str]:
        """Build the levels beside the ledger, and return the folder of each."""
        return build_levels(
            self.build_lines, ledger.parent / BUILDS, own_environment(), os.getcwd()
        )

    @contextmanager
    def errors_at_settings(self, plan: Plan) -> Iterator[None]:
        """Name the place in the study's file of a setting that took no effect."""
        try:
            yield
        except TookNoEffect as error:
            levels = next(each.levels for each in plan.conditions if each.name == error.condition)
            place = setting_place(self.study, levels, error.key, error.value)
            raise place.fail(error.what, error.hint) from None


def prepare_study(options: StudyOptions, ledger: Path) -> PreparedStudy:
    """Read a study, change it as the options say, and fit it to this host.

    Raise `UnusableInput` if there is no such study, factor or level, or nothing of it can run here.
    """
    site = host_site()
    study, idle = without_idle_factors(_chosen_study(options))
    study, missing = without_missing(study, site)
    study, stand_in = with_data(study, ledger)
    return PreparedStudy(study, site, (*idle, *missing, *stand_in), build_lines(study))


def _chosen_study(options: StudyOptions) -> Study:
    """Return the study that is named, with what the options change of it."""
    study = read_study(*find_study(options.study), counters=COUNTERS)
    if options.quick:
        study = quick_form(study)
    if options.command is not None:
        command_line = tuple(split_command(options.command))
        if not command_line:
            raise UnusableInput("--command is empty", hint="write the program that is to be run")
        study = with_command(study, command_line)
    changes = {
        key: getattr(options, key)
        for key in ("layouts", "aslr")
        if getattr(options, key) is not None
    }
    study = replace(study, measure=replace(study.measure, **changes))
    return with_levels(study, chosen_levels(study, options.factors))
