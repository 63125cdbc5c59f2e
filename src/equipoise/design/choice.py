"""The part of a study that runs: its quick form, the chosen levels, another command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from equipoise.design.commands import parameter_list
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Factor, Level, Place, Study, Words, is_size


def quick_form(study: Study) -> Study:
    """Return the study as ``--quick`` runs it; raise `UnusableInput` if it has no quick form."""
    quick = study.quick
    if quick is None:
        raise UnusableInput(
            f"the study {study.name} has no quick form",
            hint="give it a table [quick], or use --budget and --factor",
        )
    measure, workload = study.measure, study.workload
    measure = replace(
        measure,
        budget=quick.budget or measure.budget,
        blocks=quick.blocks or measure.blocks,
        reaches_verdicts=True,
        about=None,
    )
    if quick.command is not None:
        workload = replace(workload, command=quick.command, command_place=quick.command_place)
    shorter = with_levels(replace(study, measure=measure, workload=workload), quick.levels)
    compared = shorter.compared
    if compared is None:
        return shorter
    not_at = {
        name: (*compared.not_at.get(name, ()), *quick.not_at.get(name, ()))
        for name in {**compared.not_at, **quick.not_at}
    }
    return replace(shorter, compared=replace(compared, not_at=not_at))


def with_command(study: Study, command: Words) -> Study:
    """Return the study with another program as its workload.

    Raise `UnusableInput` if the workload is a server.
    """
    if study.workload.server is not None:
        raise UnusableInput(
            f"the workload of {study.name} is a server: --command cannot replace it",
            hint="change [workload.server] in its file",
        )
    workload = replace(study.workload, command=command, command_place=Place("--command"))
    return replace(study, workload=workload, measure=replace(study.measure, about=None))


def chosen_levels(study: Study, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the levels that ``--factor NAME=LEVEL,LEVEL`` chooses, by factor.

    Raise `UnusableInput` if a text is not of that form, or names no factor.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    known = ", ".join(factor.name for factor in study.factors)
    for text in texts:
        name, equals, levels = text.partition("=")
        if not equals or not levels:
            raise UnusableInput(
                f"--factor {text!r} is not of the form NAME=LEVEL,LEVEL",
                hint=f"the factors are {known}",
            )
        if study.factor(name) is None:
            raise UnusableInput(
                f"--factor {text!r}: the study {study.name} has no factor {name!r}",
                hint=f"there are {known}",
            )
        if name in chosen:
            raise UnusableInput(
                f"--factor {name} is given twice", hint="separate its levels by commas"
            )
        chosen[name] = tuple(dict.fromkeys(parameter_list(levels)))
    return chosen


def with_levels(study: Study, chosen: Mapping[str, tuple[str, ...]]) -> Study:
    """Return the study with these levels of these factors.

    If the baseline is not among them, the first chosen level is the baseline. Chosen levels are all
    compared: the study's ``not_at`` no longer applies to their factors. Raise `UnusableInput` if a
    factor has no such level.
    """
    factors = tuple(
        _with_levels(factor, chosen[factor.name]) if factor.name in chosen else factor
        for factor in study.factors
    )
    compared = study.compared
    if compared is not None:
        not_at = {name: names for name, names in compared.not_at.items() if name not in chosen}
        compared = replace(compared, not_at=not_at)
        levels = next(factor.levels for factor in factors if factor.name == compared.factor)
        if compared.baseline not in [level.name for level in levels]:
            compared = replace(compared, baseline=levels[0].name)
    # The time of a block is known of the whole study only.
    measure = replace(study.measure, about=None) if chosen else study.measure
    return replace(study, factors=factors, compared=compared, measure=measure)


def named_data(study: Study) -> str | None:
    """Return the name of the data set that ``{data}`` in the study stands for, if it is there."""
    return study.workload.data if any("{data}" in text for text in _texts(study)) else None


def with_data_word(study: Study, word: str) -> Study:
    """Return the study with the word that replaces ``{data}``."""
    return replace(study, workload=replace(study.workload, data_word=word))


def without_idle_factors(study: Study) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study without the factors that change nothing: plain ones that no text names.

    So another program can replace the workload of a study whose sizes it does not have. Raise
    `UnusableInput` if the compared factor is one of them.
    """
    factors: list[Factor] = []
    warnings: list[CampaignWarning] = []
    for factor in study.factors:
        if not factor.plain or any(f"{{{factor.name}}}" in text for text in _texts(study)):
            factors.append(factor)
            continue
        what = f"the factor {factor.name} changes nothing: no text names {{{factor.name}}}"
        hint = f"write {{{factor.name}}} where its level belongs, as in the command"
        if study.compared is not None and study.compared.factor == factor.name:
            raise study.places.table("factors", factor.name).fail(what, hint)
        warnings.append(CampaignWarning("factor_idle", f"{what}; it is left out", hint))
    names = {factor.name for factor in factors}
    exclusions = tuple(each for each in study.exclusions if each.keys() <= names)
    return replace(study, factors=tuple(factors), exclusions=exclusions), tuple(warnings)


def _texts(study: Study) -> Iterator[str]:
    """Yield every text of a study that may hold names in braces."""
    yield from study.workload.command
    servers = [study.workload.server]
    for level in (level for factor in study.factors for level in factor.levels):
        yield from (*level.arguments, *(level.command or ()), level.build or "")
        yield from (*level.client_arguments, *level.environment.values())
        servers.append(level.server)
    for server in filter(None, servers):
        yield from chain.from_iterable(server.commands().values())


def _with_levels(factor: Factor, names: tuple[str, ...]) -> Factor:
    known = {level.name: level for level in (*factor.levels, *factor.choices)}
    for name in names:
        if factor.role == "size" and not is_size(name):
            raise UnusableInput(
                f"the factor {factor.name} is a size, and {name!r} is not a number",
                hint="give numbers above 0",
            )
        if name not in known and not factor.plain:
            raise UnusableInput(
                f"the factor {factor.name} has no level {name!r}",
                hint=f"there are {', '.join(known)}",
            )
    # Levels that the quick form leaves out can still be chosen.
    choices = factor.choices if factor.plain else tuple(known.values())
    levels = tuple(known.get(name) or Level(name) for name in names)
    return replace(factor, levels=levels, choices=choices)
