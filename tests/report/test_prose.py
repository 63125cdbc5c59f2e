"""The prose of every kind of result, held by snapshots: `make snapshots` renews them."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.report.forms import print_result, to_latex, to_markdown
from tests.report.kinds import Kind, kinds


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_the_screen_reads_as_before(
    kind: Kind, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    print_result(kind.reported("").document, [], Path("ledger.db"), color=False)
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_markdown_and_latex_read_as_before(kind: Kind, snapshot: SnapshotAssertion) -> None:
    document = kind.reported("").document
    assert to_markdown(document) == snapshot
    assert to_latex(document) == snapshot
