"""Campaigns of different environments: refused with what differs, or allowed with warnings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.model.result import EnvironmentDifference
from equipoise.model.safe_text import visible

_NAMED = 4
_LETTERS = 40

Differing = dict[str, tuple[str, ...]]
"""What differs, by name: the value of each campaign."""


def allowed_only(
    differences: Sequence[EnvironmentDifference], allowed: Collection[str]
) -> tuple[CampaignWarning, ...]:
    """Refuse two campaigns unless each difference is allowed by name; return it as warnings.

    Raises
    ------
    UnusableInput
        Something else differs.
    """
    differing: Differing = {
        difference.name: (_text(difference.there), _text(difference.here))
        for difference in differences
    }
    check_allowed(differing, allowed, "measure both in one campaign")
    return tuple(
        difference_warning(
            name,
            values,
            "measure both in one campaign: the ratio includes the effect of this difference",
        )
        for name, values in differing.items()
    )


def check_allowed(differing: Differing, allowed: Collection[str], instead: str) -> None:
    """Check that campaigns differ only in what is allowed by name.

    Parameters
    ----------
    instead
        What the user can do instead of allowing a difference; ``{name}`` stands for its name.

    Raises
    ------
    UnusableInput
        Something else differs; the error lists it with its values.
    """
    names = [name for name in differing if name not in allowed]
    if not names:
        return
    differences = "; ".join(f"{name}: {_values_text(differing[name])}" for name in names[:_NAMED])
    more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    raise UnusableInput(
        f"the campaigns ran in different environments ({differences}{more})",
        hint=f"{instead.format(name=names[0])}; --allow {','.join(names)} lets it differ",
    )


def difference_warning(name: str, values: Sequence[str], hint: str) -> CampaignWarning:
    """Return the warning of what was allowed to differ."""
    summary = f"the campaigns differ in {name} ({_values_text(values)}), which was allowed"
    return CampaignWarning("environment", summary, hint)


def _values_text(values: Sequence[str]) -> str:
    """Return the first few different values, each shortened."""
    different = [visible(value)[:_LETTERS] for value in dict.fromkeys(values)]
    more = f" and {len(different) - _NAMED} more" if len(different) > _NAMED else ""
    return ", ".join(different[:_NAMED]) + more


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)
