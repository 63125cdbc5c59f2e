"""``--ranking`` on the command line."""

from __future__ import annotations

from packages.equipoise.tests.cli.conftest import Equipoise

COMMANDS = ("true", "sleep 0.01", "sleep 0.02")
LIMITS = ("--blocks", "8", "--allow-concurrent")


def test_a_ranking_is_told_unless_it_is_off(equipoise: Equipoise) -> None:
    on = equipoise("compare", *COMMANDS, *LIMITS, "--ranking", "on")
    assert on.status == 0
    assert "the fastest" in on.out
    off = equipoise("compare", *COMMANDS, *LIMITS, "--ranking", "off")
    assert off.status == 0
    assert "the fastest" not in off.out


def test_a_ranking_over_layouts_is_refused_with_a_hint(equipoise: Equipoise) -> None:
    refused = equipoise("compare", *COMMANDS, "--layouts", "2", "--ranking", "on")
    assert refused.status == 2
    assert "with --layouts it cannot be asked which of 3 conditions is the fastest" in refused.err
    assert "hint: --ranking off" in refused.err
