"""Campaigns of unlike environments in one log: matched on, allowed by name, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.analysis.reference import environment_differences
from equipoise.cli.unlike import Differing, differ_in_words, refuse
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning, RunRecord

PREFIX = "environment_"


def differing_environments(records: Sequence[RunRecord]) -> Differing:
    """What is not the same in the environments of all campaigns."""
    environments = [one.segments[0].environment if one.segments else {} for one in records]
    names = dict.fromkeys(
        difference.name
        for environment in environments[1:]
        for difference in environment_differences(environments[0], environment)
    )
    return {name: tuple(_told(one, name) for one in environments) for name in names}


def refuse_unlike(
    differing: Differing, matched_on: Sequence[str] | None, allowed: Sequence[str]
) -> None:
    """Refuse campaigns that differ in what is neither matched on nor allowed by name.

    Parameters
    ----------
    matched_on
        The columns that were named to be matched on; ``None`` if all that can serve are.

    Raises
    ------
    UnusableInput
        Listing what differs, with its values.
    """
    unknown = [name for name in allowed if name not in differing]
    if unknown:
        there = ", ".join(differing) or "none"
        raise UnusableInput(
            f"--allow: {', '.join(unknown)} does not differ between the campaigns",
            hint=f"what differs: {there}",
        )
    if matched_on is None:
        return
    left = [name for name in differing if name not in allowed and PREFIX + name not in matched_on]
    if left:
        refuse(differing, left, f"--exact {PREFIX}{left[0]} compares within each")


def cautions_of(differing: Differing, allowed: Sequence[str]) -> tuple[CampaignWarning, ...]:
    """What was allowed to differ, as warnings."""
    return tuple(
        CampaignWarning(
            "environment",
            differ_in_words(name, differing[name]),
            f"--exact {PREFIX}{name} compares within each",
        )
        for name in allowed
    )


def _told(environment: Mapping[str, Any], name: str) -> str:
    """The value of a name, before which stand those of the tables that it is in."""
    if name in environment:
        return str(environment[name])
    table, dot, rest = name.partition(".")
    within = environment.get(table)
    return _told(within, rest) if dot and isinstance(within, Mapping) else "unknown"
