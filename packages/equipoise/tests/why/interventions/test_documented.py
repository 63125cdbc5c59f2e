"""Every intervention stands in the docs, with its causes and whether it has a sham and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equipoise.design.libraries import BLAS_LIBRARIES, Blas
from equipoise.model.plan import Output
from equipoise.why.interventions import blas
from equipoise.why.interventions.catalogue import every_intervention
from equipoise.why.interventions.intervention import Case, Intervention
from packages.equipoise.tests.why.interventions.cases import BASELINE, CANDIDATE, site

DOCS = Path(__file__).parents[5] / "docs" / "reference" / "causes.md"
CASE = Case((BASELINE, CANDIDATE), site(), output=Output("inherit"))
KNOWN = every_intervention(CASE)
SECTION = DOCS.read_text().partition("## Interventions")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SECTION.splitlines()
    if line.startswith("| `")
]


def row_of(one: Intervention) -> list[str]:
    return next(row for row in ROWS if f"`{one.name}`" in row[0])


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: one.name)
def test_each_intervention_has_a_row(one: Intervention) -> None:
    _, _, _, proof, advice = row_of(one)
    assert proof
    assert (one.sham is not None) == ("sham" in proof)
    assert (one.advice is None) == advice.startswith("none")


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: one.name)
def test_row_has_the_causes_of_the_intervention(one: Intervention) -> None:
    until = ROWS[: ROWS.index(row_of(one)) + 1]
    # "The same" is what the nearest row above says.
    cell = next(row[2] for row in reversed(until) if row[2] != "the same")
    assert set(re.findall(r"`(\w+)`", cell)) == one.causes


def test_core_types_have_a_row_for_their_library() -> None:
    able = frozenset(
        instruction for library in BLAS_LIBRARIES for instruction in library_asks(library)
    )
    interventions = blas.blas_interventions(Case((BASELINE, CANDIDATE), site(instructions=able)))
    prefixes = {name for row in ROWS for name in re.findall(r"`([a-z_]+_)…`", row[0])}
    assert {
        intervention.name.partition("_")[0] + "_"
        for intervention in interventions
        if "_" in intervention.name
    } == prefixes


def library_asks(library: Blas) -> set[str]:
    return {
        instruction for core in library.core_types.values() for instruction in core.instructions
    }


def test_every_row_belongs_to_an_intervention() -> None:
    names = {name for row in ROWS for name in re.findall(r"`([a-z_]+)`", row[0])}
    assert names == {intervention.name for intervention in KNOWN}
