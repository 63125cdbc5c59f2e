"""A small part of ``python -m benchmarks.validity.carry_over``, with fixed seeds."""

from __future__ import annotations

from benchmarks.validity.carry_over import Case, Row, piece

CAMPAIGNS = 25


def row(carried: float, effect: float) -> Row:
    case = Case("Gauss 1 %", carried, effect)
    return Row(case, piece(case.name, 0, CAMPAIGNS, 1))


def test_carry_over_alone_is_rarely_called_without_a_warning() -> None:
    carried = row(3.0, 0.0)
    assert carried.called_before.count >= 0.9 * CAMPAIGNS
    assert carried.washed.count >= 0.5 * CAMPAIGNS
    assert list(carried.broken()) == []


def test_a_true_difference_is_still_found_at_hardly_any_cost() -> None:
    true = row(0.0, 3.0)
    assert true.called.count == CAMPAIGNS
    assert list(true.broken()) == []
