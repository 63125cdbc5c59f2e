"""The prose of every kind of result, held by snapshots: `make snapshots` renews them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from equipoise.report.builders.result import ReportInput
from packages.equipoise.tests.report.forms import screen, to_latex, to_markdown
from packages.equipoise.tests.report.kinds import FLEETS, Kind, kinds


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_the_screen_reads_as_before(kind: Kind, snapshot: SnapshotAssertion) -> None:
    assert screen(kind.reported("").result, form="brief") == snapshot


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_markdown_and_latex_read_as_before(kind: Kind, snapshot: SnapshotAssertion) -> None:
    document = kind.reported("").result
    assert to_markdown(document) == snapshot
    assert to_latex(document) == snapshot


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda fleet: fleet.__name__)
def test_a_fleet_reads_as_before_whatever_is_missing(
    fleet: Callable[[str], ReportInput], snapshot: SnapshotAssertion
) -> None:
    assert screen(fleet("").result, form="brief") == snapshot
    assert to_markdown(fleet("").result) == snapshot
