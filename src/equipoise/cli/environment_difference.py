"""Campaigns of different environments: refused with what differs, or allowed with warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.model.result import EnvironmentDifference
from equipoise.model.safe_text import visible

_NAMED = 4
_LETTERS = 40

Differing = dict[str, tuple[str, ...]]
"""What differs, by name: the value of each campaign."""


def refuse(differing: Differing, left: Sequence[str], instead: str) -> NoReturn:
    """Refuse campaigns that differ in what is left, at least one name.

    Parameters
    ----------
    instead
        What may be done but for letting it differ.

    Raises
    ------
    UnusableInput
        Listing what differs, with its values.
    """
    told = "; ".join(f"{name}: {values_in_words(differing[name])}" for name in left[:_NAMED])
    more = f"; and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    raise UnusableInput(
        f"the campaigns ran in unlike environments ({told}{more})",
        hint=f"{instead}; --allow {','.join(left)} lets it differ",
    )


def allowed_only(
    differences: Sequence[EnvironmentDifference], allowed: Sequence[str]
) -> tuple[CampaignWarning, ...]:
    """Refuse two campaigns unless all that differs is allowed by name; that, as warnings.

    Raises
    ------
    UnusableInput
        Something else differs.
    """
    differing: Differing = {one.name: (_told(one.there), _told(one.here)) for one in differences}
    left = [name for name in differing if name not in allowed]
    if left:
        refuse(differing, left, "measure both in one campaign")
    return tuple(
        CampaignWarning(
            "environment",
            differ_in_words(name, values),
            "measure both in one campaign: what this does stands in the ratio",
        )
        for name, values in differing.items()
    )


def differ_in_words(name: str, values: Sequence[str]) -> str:
    """Return the warning's sentence on what was allowed to differ."""
    return f"the campaigns differ in {name} ({values_in_words(values)}), which was allowed"


def values_in_words(values: Sequence[str]) -> str:
    """Return the first few different values, each shortened."""
    different = [visible(value)[:_LETTERS] for value in dict.fromkeys(values)]
    more = f" and {len(different) - _NAMED} more" if len(different) > _NAMED else ""
    return ", ".join(different[:_NAMED]) + more


def _told(value: Any) -> str:
    return "unknown" if value is None else str(value)
