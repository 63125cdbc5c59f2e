"""``--layouts`` and ``--aslr``: a plan over layouts, as far as this host can give them."""

from __future__ import annotations

from equipoise.design.coin import Addresses
from equipoise.design.layouts import with_layouts
from equipoise.measure.surroundings.host import Host
from equipoise.measure.surroundings.kernel import addresses_are_random, addresses_can_be_held
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import Notice


def over_layouts(
    plan: Plan, count: int | None, aslr: Addresses | None
) -> tuple[Plan, tuple[Notice, ...]]:
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
                mend="give --layouts 12 with it",
            )
        return plan, ()
    if not addresses_are_random(Host()):
        return with_layouts(plan, count, "off"), _unless_asked(
            aslr in (None, "off"),
            "this host does not draw addresses: no layout has random ones",
            "sysctl kernel.randomize_va_space=2",
        )
    if aslr == "on" or addresses_can_be_held():
        return with_layouts(plan, count, aslr or "drawn"), ()
    return with_layouts(plan, count, "on"), _unless_asked(
        aslr is None,
        "addresses cannot be held here: every layout has random ones",
        "allow personality(2) in this container, or give --aslr on",
    )


def _unless_asked(fits: bool, what: str, mend: str) -> tuple[Notice, ...]:
    """A notice; an error if something else was asked for."""
    if not fits:
        raise UnusableInput(what, mend=mend)
    return (Notice("layouts_without_addresses", what, mend),)
