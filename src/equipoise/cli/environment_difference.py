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
    """Refuse campaigns that differ in at least one value that was not allowed to.

    Parameters
    ----------
    left
        Names of the values that may not differ.
    instead
        What the user can do instead of allowing the difference.

    Raises
    ------
    UnusableInput
        Always; it lists what differs, with its values.
    """
    differences = "; ".join(f"{name}: {values_text(differing[name])}" for name in left[:_NAMED])
    more = f"; and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    raise UnusableInput(
        f"the campaigns ran in different environments ({differences}{more})",
        hint=f"{instead}; --allow {','.join(left)} lets it differ",
    )


def allowed_only(
    differences: Sequence[EnvironmentDifference], allowed: Sequence[str]
) -> tuple[CampaignWarning, ...]:
    """Refuse two campaigns unless each difference is allowed by name; return it as warnings.

    Raises
    ------
    UnusableInput
        Something else differs.
    """
    differing: Differing = {one.name: (_text(one.there), _text(one.here)) for one in differences}
    left = [name for name in differing if name not in allowed]
    if left:
        refuse(differing, left, "measure both in one campaign")
    return tuple(
        CampaignWarning(
            "environment",
            difference_sentence(name, values),
            "measure both in one campaign: the ratio includes the effect of this difference",
        )
        for name, values in differing.items()
    )


def difference_sentence(name: str, values: Sequence[str]) -> str:
    """Return the warning's sentence on what was allowed to differ."""
    return f"the campaigns differ in {name} ({values_text(values)}), which was allowed"


def values_text(values: Sequence[str]) -> str:
    """Return the first few different values, each shortened."""
    different = [visible(value)[:_LETTERS] for value in dict.fromkeys(values)]
    more = f" and {len(different) - _NAMED} more" if len(different) > _NAMED else ""
    return ", ".join(different[:_NAMED]) + more


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)
