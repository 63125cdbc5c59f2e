"""Functions with data of the caller: fresh processes get copies, which may differ."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.kinds.functions.conducting import Original, refuse_copies_that_differ
from equipoise.kinds.functions.functions import function_benchmarks
from equipoise.kinds.functions.trial_runs import TrialRunResult
from equipoise.model.errors import UnusableInput

FEW: dict[str, Any] = {"blocks": 6, "min_seconds": 0, "budget": 20}
ROWS = 50_000

WIDE = np.zeros((ROWS, 16))
"""Table whose columns have gaps in memory; a pickled column has no gaps."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def of_a_script(function: Any, **data: object) -> Callable[[], object]:
    """The function as a script would define it, with the data at the level of its module."""
    return types.FunctionType(
        function.__code__, {"__name__": "__main__", "__builtins__": __builtins__, **data}
    )


def sum_of_column() -> Any:
    return column.sum()  # type: ignore[name-defined]  # noqa: F821


def sum_of_packed() -> Any:
    return packed.sum()  # type: ignore[name-defined]  # noqa: F821


def column_and_packed() -> tuple[Callable[[], object], Callable[[], object]]:
    data = {"column": WIDE[:, 3], "packed": np.ones(ROWS)}
    return of_a_script(sum_of_column, **data), of_a_script(sum_of_packed, **data)


def test_functions_whose_copies_have_a_different_layout_are_refused(ledger: Path) -> None:
    with pytest.raises(UnusableInput, match="copies of your data") as refusal:
        eq.compare(*column_and_packed(), ledger=ledger, **FEW)
    assert "sum_of_packed takes 0." in refusal.value.what
    assert "setup=make" in str(refusal.value.hint)
    assert not ledger.exists()


def test_data_that_the_setup_makes_are_compared_as_they_are(ledger: Path) -> None:
    def make() -> Any:
        data = np.zeros((ROWS, 16))
        return data[:, 3], np.ones(ROWS)

    result = eq.compare(
        lambda both: both[0].sum(), lambda both: both[1].sum(), setup=make, ledger=ledger, **FEW
    )
    assert result.ratio is None or result.ratio < 0.9


def test_code_with_data_of_the_notebook_is_refused_as_well(ledger: Path) -> None:
    data = {"column": WIDE[:, 3], "packed": np.ones(ROWS)}
    with pytest.raises(UnusableInput, match="copies of your data") as refusal:
        eq.compare_code("column.sum()", "packed.sum()", globals=data, ledger=ledger, **FEW)
    assert "setup=" in str(refusal.value.hint)


def test_equal_functions_on_equal_data_are_compared(ledger: Path) -> None:
    packed = np.ones(ROWS)
    f, g = (of_a_script(sum_of_packed, packed=packed) for _ in range(2))
    result = eq.compare(f, g, ledger=ledger, **FEW)
    assert result.document.run.blocks == 6


@pytest.mark.parametrize(
    "examined",
    [
        TrialRunResult(1e-6, 1e-6, changes_data=True),
        TrialRunResult(1e-6, 1e-6, changes_data=False, sees_every_change=False),
        TrialRunResult(2.0, 2.0, changes_data=False),
    ],
)
def test_functions_that_change_data_or_take_long_are_never_called_in_this_process(
    examined: TrialRunResult,
) -> None:
    calls = []
    data = np.ones(ROWS)

    def called() -> None:
        calls.append(len(data))

    benchmarks = function_benchmarks([called, called], None)
    refuse_copies_that_differ(benchmarks, [Original(called)] * 2, [examined] * 2, 60.0)
    assert calls == []


def test_a_helper_that_changes_the_data_is_seen(ledger: Path) -> None:
    seen = [0] * ROWS

    def helper() -> None:
        seen[0] += 1

    def changing() -> int:
        helper()
        return len(seen)

    result = eq.compare(lambda: len(seen), changing, ledger=ledger, **FEW)
    assert "changes_its_input" in [warning.code for warning in result.document.warnings]
    assert seen[0] == 0


def test_the_output_of_a_function_in_this_process_is_not_shown(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = list(range(ROWS))

    def speaks() -> None:
        print(len(data))

    eq.compare(speaks, speaks, ledger=ledger, **FEW)
    assert capsys.readouterr().out == ""
