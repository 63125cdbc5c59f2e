"""Comparison of two sessions: the same host is unchanged, and a planted change is found."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.reference import (
    compare_with_reference,
    differences_to_host,
    document_differences,
    environment_differences,
)
from equipoise.analysis.result import analyse_campaign
from equipoise.kinds.imported.terms import ImportedDocument, ImportedResult, ImportSource
from equipoise.model.errors import UnusableInput
from equipoise.model.reference import ReferenceComparison, ReferenceRow
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import decode, encode
from equipoise_studies.primitives.rows import BANDWIDTH
from packages.equipoise.tests.documents import document_as
from packages.equipoise.tests.schema import validated
from packages.studies.tests.primitives.campaigns import (
    ROWS,
    ProbeRunner,
    Value,
    plan_of_rows,
    record_of,
)


def result(
    seed: int,
    value: Value = lambda name, block, usual: usual,
    *,
    failures: dict[str, str] | None = None,
    environment: dict[str, object] | None = None,
) -> ResultDocument:
    runner = ProbeRunner(
        plan_of_rows(seed=seed),
        value=value,
        failures=failures or {},
        generator=np.random.default_rng(seed),
    )
    return analyse_campaign(record_of(runner, environment))


def compared(earlier: ResultDocument, later: ResultDocument) -> ReferenceComparison:
    return compare_with_reference(earlier, later, min_effect=5.0, alpha=0.05)


def row(comparison: ReferenceComparison, name: str) -> ReferenceRow:
    return next(row for row in comparison.rows if row.name == name)


def test_a_host_against_itself_has_not_changed() -> None:
    changed = [row.changed for seed in range(10) for row in compared(result(seed), result(99)).rows]
    assert changed == [False] * len(changed)


def test_a_row_that_costs_a_fifth_more_is_found_and_no_other() -> None:
    def slower(name: str, block: int, usual: float) -> float:
        return 1.2 * usual if name == "fork" else usual

    comparison = compared(result(1), result(2, slower, environment={"kernel": "6.2.0"}))
    assert [row.name for row in comparison.rows if row.changed] == ["fork"]
    low, high = row(comparison, "fork").ratio_ci
    assert low is not None and high is not None and low < 1.2 < high
    assert low > 1.05


def test_less_bandwidth_costs_more() -> None:
    def slower(name: str, block: int, usual: float) -> float:
        return usual / 1.5 if name == "memory_read" else usual

    comparison = row(
        compared(result(1), result(2, slower, environment={"kernel": "6.2.0"})), "memory_read"
    )
    assert comparison.changed
    assert comparison.ratio == pytest.approx(1.5, rel=0.03)
    assert (
        comparison.reference_median is not None
        and comparison.median is not None
        and comparison.median < comparison.reference_median
    )


def test_a_row_without_a_number_on_one_side_is_unknown_with_a_reason() -> None:
    comparison = compared(result(1, failures={"fork": "no child for you"}), result(2))
    assert (row(comparison, "fork").ratio, row(comparison, "fork").changed) == (None, None)
    assert row(comparison, "fork").unknown == "there: no child for you"
    assert row(comparison, "fork").median is not None
    assert comparison.geometric_mean_rows == len(ROWS) - 1


def test_a_row_that_the_other_result_does_not_have_is_named() -> None:
    earlier = result(1)
    without = replace(
        earlier,
        conditions=earlier.conditions[1:],
        trials=tuple(trial for trial in earlier.trials if trial.condition != "null_call"),
    )
    assert row(compared(without, result(2)), "null_call").unknown == "there: not measured"


def test_differences_between_the_hosts_are_listed_without_a_new_boot() -> None:
    earlier = {"kernel": "6.1", "boot_id": "a", "governor": None, "mitigations": {"l1tf": "none"}}
    later = {
        "kernel": "6.2",
        "boot_id": "b",
        "governor": "powersave",
        "mitigations": {"l1tf": "on"},
    }
    differences = environment_differences(earlier, later)
    assert [
        (difference.name, difference.reference_value, difference.value)
        for difference in differences
    ] == [
        ("kernel", "6.1", "6.2"),
        ("governor", None, "powersave"),
        ("mitigations.l1tf", "none", "on"),
    ]
    assert environment_differences(later, {**later, "boot_id": "c"}) == ()


def test_the_scope_says_that_the_sessions_were_not_interleaved() -> None:
    assert "not interleaved" in compared(result(1), result(2)).scope
    assert "The two environments have no known difference" in compared(result(1), result(2)).scope
    other = compared(result(1), result(2, environment={"kernel": "6.2.0"}))
    assert "measure each side twice" in other.scope


def test_too_few_rows_for_drift_are_named() -> None:
    earlier, later = (
        replace(
            document, trials=tuple(trial for trial in document.trials if trial.condition == "fork")
        )
        for document in (result(1), result(2))
    )
    comparison = compared(earlier, later)
    assert "there are too few rows to estimate the drift of sessions" in comparison.scope
    assert row(comparison, "fork").changed is False


def test_a_stored_result_is_held_against_as_the_document_itself() -> None:
    earlier, later = result(1), result(2)
    stored = decode(encode(earlier), "there.json")
    assert compared(earlier, later) == compared(stored, later)
    document = validated(replace(later, against=compared(earlier, later)))
    assert len(json.loads(encode(document))["against"]["rows"]) == len(ROWS)
    assert decode(encode(document), "here.json").against == document.against


def test_results_with_nothing_in_common_are_refused() -> None:
    earlier = result(1)
    with pytest.raises(UnusableInput, match="no condition with a number in both"):
        compared(replace(earlier, trials=()), result(2))


def test_trials_of_files_that_know_no_blocks_do_not_move_together() -> None:
    source = ImportSource("hyperfine", None, ("a.json",), "one after the other")
    earlier, later = (
        document_as(
            ImportedDocument,
            document,
            imported=ImportedResult(source, "wall_s", (), ""),
            trials=tuple(replace(trial, block=1) for trial in document.trials),
        )
        for document in (result(1), result(2))
    )
    assert "too few rows to estimate the drift of sessions" in compared(earlier, later).scope


def test_a_reported_metric_that_is_better_when_higher_costs_its_inverse() -> None:
    def halved_bandwidth(name: str, block: int, usual: float) -> float:
        return usual / 2.0 if name == "memory_read" else usual

    earlier, later = result(1), result(2, halved_bandwidth)
    assert earlier.more_is_better == later.more_is_better == (BANDWIDTH,)
    ratio = row(compared(earlier, later), "memory_read").ratio
    assert ratio is not None and 1.8 < ratio < 2.2


def document_with(environment: dict[str, object], *, file: str | None = None) -> ResultDocument:
    """A result of a campaign, or of a file of another tool."""
    made = replace(
        analyse_campaign(record_of(ProbeRunner(plan_of_rows()))), environment=environment
    )
    if file is None:
        return made
    source = ImportSource("hyperfine", None, (file,), "mixed")
    return document_as(ImportedDocument, made, imported=ImportedResult(source, "wall_s", (), ""))


def differing(earlier: ResultDocument, later: ResultDocument) -> list[str]:
    return [difference.name for difference in document_differences(earlier, later)]


def test_a_fact_that_one_campaign_lacks_is_a_difference() -> None:
    assert differing(document_with({"kernel": "6.1"}), document_with({"kernel": "6.1"})) == []
    assert differing(document_with({"kernel": "6.1"}), document_with({})) == ["kernel"]


def test_the_complete_environment_of_a_file_is_unknown() -> None:
    own = document_with({"kernel": "6.1", "cpu_model": "a"})
    (comparison,) = document_differences(document_with({"imported_from": ["a"]}, file="a"), own)
    assert (comparison.name, comparison.reference_value, comparison.value) == (
        "environment",
        None,
        "recorded",
    )


def test_two_files_without_an_environment_are_not_equal() -> None:
    earlier, later = (document_with({"imported_from": [name]}, file=name) for name in "ab")
    assert differing(earlier, later) == ["environment"]


def test_differences_between_the_facts_of_two_files_are_listed_too() -> None:
    earlier, later = (
        document_with({"as_the_file_says": {"cpu": name, "memory": 1}}, file=name) for name in "ab"
    )
    assert differing(earlier, later) == ["environment", "as_the_file_says.cpu"]


def test_differences_of_the_host_are_known_before_anything_runs() -> None:
    """The names and their order are those of a comparison of two results."""
    earlier = document_with({"kernel": "6.1", "boot_id": "a"})
    later: dict[str, object] = {"kernel": "6.2", "boot_id": "b"}
    assert differences_to_host(earlier, later) == document_differences(
        earlier, document_with(later)
    )
    imported = document_with({"kernel": "6.1"}, file="a")
    assert differences_to_host(imported, later) == document_differences(
        imported, document_with(later)
    )
