"""Rows are chosen by row, probe or table, and become conditions that are named as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from equipoise_studies.primitives.probes import chosen_rows, conditions_of_rows
from equipoise_studies.primitives.rows import FULL, LATENCY_METRIC, QUICK
from packages.studies.tests.primitives.campaigns import ROWS


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ([], [row.name for row in ROWS]),
        (["pipe_same_cpu"], ["pipe_same_cpu"]),
        (["pipe"], ["pipe_same_cpu", "pipe_across_cpus"]),
        (["memory", "null_call"], ["null_call", "memory_read"]),
    ],
)
def test_rows_are_chosen_by_row_probe_or_table_in_their_own_order(
    asked: list[str], names: list[str]
) -> None:
    assert [row.name for row in chosen_rows(ROWS, asked)] == names


def test_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnusableInput, match="nul_call") as refused:
        chosen_rows(ROWS, ["nul_call"])
    assert refused.value.hint is not None and "did you mean null_call?" in refused.value.hint


def test_a_condition_runs_its_probe_with_its_options_and_batches() -> None:
    (condition,) = conditions_of_rows([ROWS[3]], Path("/bin/equipoise-probe"), QUICK)
    assert condition.name == "pipe_across_cpus"
    assert condition.command[:4] == ("/bin/equipoise-probe", "pipe", "--placement", "across_cpus")
    assert condition.command[4:] == QUICK.options
    assert condition.reports == (LATENCY_METRIC,)


def test_the_quick_form_is_smaller_and_each_has_an_exact_interval() -> None:
    # With six processes the extremes are an interval at 95 % (docs/methods/distribution.md).
    assert 6 <= QUICK.blocks < FULL.blocks
    assert QUICK.budget_s < 60 and FULL.budget_s < 300
