"""What is said to differ between the environments of two results."""

from __future__ import annotations

from dataclasses import replace

from equipoise.analysis.reference import differences_to_host, document_differences
from equipoise.analysis.result import analyse_campaign
from equipoise.model.plan import ImportSource
from equipoise.model.result import ImportedResult, ResultDocument
from tests.primitives import ProbeRunner, plan_of_rows, record_of


def result(environment: dict[str, object], *, file: str | None = None) -> ResultDocument:
    """A result of an own campaign, or of a file of another tool."""
    made = replace(
        analyse_campaign(record_of(ProbeRunner(plan_of_rows()))), environment=environment
    )
    if file is None:
        return made
    source = ImportSource("hyperfine", None, (file,), "mixed")
    return replace(made, imported=ImportedResult(source, "wall_s", (), ""))


def names(there: ResultDocument, here: ResultDocument) -> list[str]:
    return [one.name for one in document_differences(there, here)]


def test_what_one_of_two_own_campaigns_does_not_know_differs() -> None:
    assert names(result({"kernel": "6.1"}), result({"kernel": "6.1"})) == []
    assert names(result({"kernel": "6.1"}), result({})) == ["kernel"]


def test_the_environment_of_a_file_is_unknown_as_a_whole() -> None:
    own = result({"kernel": "6.1", "cpu_model": "a"})
    (found,) = document_differences(result({"imported_from": ["a"]}, file="a"), own)
    assert (found.name, found.there, found.here) == ("environment", None, "recorded")


def test_two_files_that_say_nothing_are_not_alike_for_that() -> None:
    there, here = (result({"imported_from": [one]}, file=one) for one in "ab")
    assert names(there, here) == ["environment"]


def test_what_two_files_say_differently_is_told_beside() -> None:
    there, here = (
        result({"as_the_file_says": {"cpu": one, "memory": 1}}, file=one) for one in "ab"
    )
    assert names(there, here) == ["environment", "as_the_file_says.cpu"]


def test_what_will_differ_is_known_of_the_host_before_anything_runs_on_it() -> None:
    """As of two results: the same names, in the same order."""
    there = result({"kernel": "6.1", "boot_id": "a"})
    here: dict[str, object] = {"kernel": "6.2", "boot_id": "b"}
    assert differences_to_host(there, here) == document_differences(there, result(here))
    imported = result({"kernel": "6.1"}, file="a")
    assert differences_to_host(imported, here) == document_differences(imported, result(here))
