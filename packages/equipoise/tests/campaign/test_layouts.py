"""Parts of a layout that a host cannot vary give a warning, or an error if the user chose them."""

from __future__ import annotations

import pytest

from equipoise.campaign import plans
from equipoise.campaign.plans import plan_with_layouts
from equipoise.design.coin import Addresses
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.plans import plan_of


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A host that randomizes addresses and lets a process turn this off."""
    monkeypatch.setattr(plans, "addresses_are_random", lambda host: True)
    monkeypatch.setattr(plans, "addresses_can_be_held", lambda: True)
    return monkeypatch


def addresses(aslr: Addresses | None) -> tuple[set[bool], list[str]]:
    """Whether the layouts have random addresses, and the warnings about it."""
    plan, warnings = plan_with_layouts(plan_of(), 40, aslr)
    return {layout.random_addresses for layout in plan.layouts}, [
        warning.summary for warning in warnings
    ]


@pytest.mark.parametrize(
    ("aslr", "expected"), [(None, {True, False}), ("on", {True}), ("off", {False})]
)
def test_layouts_have_the_chosen_addresses_if_the_host_can_vary_them(
    host: pytest.MonkeyPatch, aslr: Addresses | None, expected: set[bool]
) -> None:
    assert addresses(aslr) == (expected, [])


def test_if_addresses_cannot_be_held_all_layouts_have_random_ones_and_a_notice_says_so(
    host: pytest.MonkeyPatch,
) -> None:
    host.setattr(plans, "addresses_can_be_held", lambda: False)
    found, (words,) = addresses(None)
    assert (found, "cannot switch off random memory addresses" in words) == ({True}, True)
    assert addresses("on") == ({True}, [])
    with pytest.raises(UnusableInput, match="cannot switch off random memory addresses"):
        addresses("off")


def test_without_random_addresses_on_the_host_no_layout_has_them_and_a_notice_says_so(
    host: pytest.MonkeyPatch,
) -> None:
    host.setattr(plans, "addresses_are_random", lambda host: False)
    found, (words,) = addresses(None)
    assert (found, "are switched off on this host" in words) == ({False}, True)
    with pytest.raises(UnusableInput, match="are switched off on this host"):
        addresses("on")


def test_without_layouts_the_plan_is_unchanged() -> None:
    plan = plan_of()
    assert plan_with_layouts(plan, None, None) == (plan, ())
