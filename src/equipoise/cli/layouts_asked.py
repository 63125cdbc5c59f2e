"""``--layouts`` and ``--aslr``: a plan over layouts, as far as this host can give them."""

from __future__ import annotations

from equipoise.design.coin import Addresses
from equipoise.design.layouts import with_layouts
from equipoise.measure.environment.host import Host
from equipoise.measure.environment.system import addresses_are_random, addresses_can_be_held
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning

_ALWAYS_RANDOM: tuple[Addresses, str, str] = (
    "on",
    "addresses cannot be held here: every layout has random ones",
    "allow personality(2) in this container, or give --aslr on",
)
_NEVER_RANDOM: tuple[Addresses, str, str] = (
    "off",
    "this host does not draw addresses: no layout has random ones",
    "sysctl kernel.randomize_va_space=2, or give --aslr off",
)


def over_layouts(
    plan: Plan, count: int | None, aslr: Addresses | None
) -> tuple[Plan, tuple[CampaignWarning, ...]]:
    """The plan over so many layouts, and what of them this host cannot vary.

    Raises
    ------
    UnusableInput
        ``aslr`` without layouts, or what this host cannot give; see `with_layouts`.
    """
    if count is None:
        if aslr is not None:
            raise UnusableInput(
                f"--aslr {aslr} says how layouts are drawn, but there are none",
                hint="give --layouts 12 with it",
            )
        return plan, ()
    random = addresses_are_random(Host())
    if random and addresses_can_be_held():
        return with_layouts(plan, count, aslr or "drawn"), ()
    only, what, hint = _ALWAYS_RANDOM if random else _NEVER_RANDOM
    over = with_layouts(plan, count, only)
    if aslr == only:
        return over, ()
    if aslr is not None:
        raise UnusableInput(what, hint=hint)
    return over, (CampaignWarning("layouts_without_addresses", what, hint),)
