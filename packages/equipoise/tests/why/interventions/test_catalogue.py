"""Which interventions are proposed, in which order, and what is said of those that cannot be."""

from __future__ import annotations

from pathlib import Path

import msgspec.structs
import pytest

from equipoise.design.libraries import ALLOCATORS
from equipoise.design.site import Site
from equipoise.model.plan import Condition, Output
from equipoise.why.causes.ranking import RULES
from equipoise.why.interventions.catalogue import (
    every_intervention,
    proposed_interventions,
    relevant_interventions,
)
from equipoise.why.interventions.intervention import Case, Intervention
from packages.equipoise.tests.why.interventions.cases import (
    BASELINE,
    CANDIDATE,
    case_of,
    cause,
    intervention_named,
    site,
)

EVERY = relevant_interventions(case_of())


def test_names_of_interventions_are_unique() -> None:
    names = [intervention.name for intervention in EVERY]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_each_intervention_has_a_description_of_its_test(one: Intervention) -> None:
    assert one.causes
    assert one.summary
    assert one.advice is None or "{command}" in one.advice


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_altering_twice_equals_altering_once(one: Intervention) -> None:
    for condition in (BASELINE, CANDIDATE):
        once = one.alter(condition)
        assert one.alter(once) == once
        assert (once.name, once.levels) == (condition.name, condition.levels)


def test_interventions_for_the_largest_cause_come_first() -> None:
    causes = (cause("sleeping", 2.0), cause("blocks_returned_at_free", 5.0), cause("sleeping", 0.5))
    names = [
        intervention.name
        for intervention in proposed_interventions(Case((BASELINE, CANDIDATE), site(), causes))
    ]
    assert names[:2] == ["never_mmap", "jemalloc"]
    assert names[-1] == "no_sleep"


@pytest.mark.parametrize(
    ("ratio", "is_proposed"),
    [(None, True), (1.04, True), (1 / 1.04, True), (2.0, True), (37.0, False), (1 / 37.0, False)],
)
def test_layouts_are_not_proposed_for_a_gap_that_no_layout_makes(
    ratio: float | None, is_proposed: bool
) -> None:
    causes = (cause("more_time_in_function"), cause("lock_waits"))
    case = Case((BASELINE, CANDIDATE), site(), causes, ratio=ratio)
    names = {intervention.name for intervention in proposed_interventions(case)}
    assert ({"even_environment", "fixed_addresses"} <= names) is is_proposed
    assert "fixed_addresses" in {intervention.name for intervention in relevant_interventions(case)}
    assert "pinning" in names


def test_without_a_cause_nothing_is_proposed() -> None:
    assert proposed_interventions(Case((BASELINE, CANDIDATE), site())) == ()
    assert (
        proposed_interventions(Case((BASELINE, CANDIDATE), site(), (cause("no_such_cause"),))) == ()
    )


def test_setting_that_both_have_is_not_proposed() -> None:
    never = next(level for level in ALLOCATORS if level.name == "glibc_never")
    pair = tuple(
        msgspec.structs.replace(condition, environment=never.environment)
        for condition in (BASELINE, CANDIDATE)
    )
    causes = (cause("blocks_returned_at_free"),)
    names = [
        intervention.name
        for intervention in proposed_interventions(Case((pair[0], pair[1]), site(), causes))
    ]
    assert "never_mmap" not in names
    # It is proposed even if one condition has it already.
    names = [
        intervention.name
        for intervention in proposed_interventions(Case((pair[0], CANDIDATE), site(), causes))
    ]
    assert "never_mmap" in names


def test_unavailable_intervention_is_proposed_with_its_reason() -> None:
    nowhere = Site(Path("/own"), lambda _: None, frozenset(), {}, (0,))
    causes = (cause("blocks_returned_at_free"), cause("sleeping"), cause("memory_contention"))
    reasons = {
        intervention.name: intervention.impossible_because
        for intervention in proposed_interventions(Case((BASELINE, CANDIDATE), nowhere, causes))
    }
    assert reasons["jemalloc"] == "libjemalloc2 is not installed: apt install libjemalloc2"
    assert "make build" in str(reasons["no_sleep"])
    assert reasons["pinning"] == "only one CPU may be used: allow more with taskset"
    assert reasons["never_mmap"] is None


def test_a_path_that_cannot_be_preloaded_is_the_reason() -> None:
    spaced = msgspec.structs.replace(site(), find_library=lambda name: f"/my home/{name}")
    for name in ("quick_sync", "dlmalloc"):
        reason = intervention_named(name, case_of(at=spaced)).impossible_because
        assert "LD_PRELOAD cannot name /my home/libequipoise_" in str(reason)


def test_only_outputs_that_neither_condition_has_are_proposed() -> None:
    causes = (cause("tiny_writes"),)

    def names(output: Output, pair: tuple[Condition, Condition]) -> set[str]:
        them = proposed_interventions(Case(pair, site(), causes, output))
        return {
            intervention.name for intervention in them if intervention.name.startswith("output_")
        }

    pair = (BASELINE, CANDIDATE)
    assert names(Output(), pair) == {"output_to_file"}
    assert names(Output("file", "/tmp/out"), pair) == {"output_discarded"}
    loud = msgspec.structs.replace(CANDIDATE, output=Output("inherit"))
    assert names(Output(), (BASELINE, loud)) == {"output_to_file", "output_discarded"}


def test_sham_is_the_same_library_without_effect() -> None:
    for intervention in EVERY:
        if intervention.sham is None:
            continue
        sham, real = (
            intervention.sham(CANDIDATE).environment,
            intervention.alter(CANDIDATE).environment,
        )
        assert sham["LD_PRELOAD"] == real["LD_PRELOAD"]
        assert (sham["EQUIPOISE_INTERVENTION"], real["EQUIPOISE_INTERVENTION"]) == (
            "nothing",
            intervention.name,
        )
    assert sum(intervention.sham is not None for intervention in EVERY) == 7


def test_interventions_only_for_tests_have_no_advice() -> None:
    for name in ("quick_sync", "output_discarded", "fixed_addresses", "no_sleep"):
        case = Case((BASELINE, CANDIDATE), site(), output=Output("inherit"))
        assert intervention_named(name, case).advice is None


def test_every_cause_of_an_intervention_has_a_rule() -> None:
    able = frozenset({"avx2", "fma"})
    known = every_intervention(case_of(at=site(instructions=able)))
    rules = RULES.keys()
    assert {cause for intervention in known for cause in intervention.causes} <= rules
