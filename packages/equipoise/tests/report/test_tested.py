"""Fractions of a gap that interventions closed, on the screen and on the page."""

from __future__ import annotations

import io

import msgspec.structs
from rich.console import Console

from equipoise.model import why
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput
from equipoise.report.builders.why import (
    NOTHING_CLOSES_GAP,
    NOTHING_DECIDED,
    NOTHING_REACHES_CAUSE,
    interventions_section,
)
from equipoise.report.document import parts_in
from equipoise.report.renderers.terminal import print_to
from packages.equipoise.tests import documents
from packages.equipoise.tests.documents import HOSTILE, document_of, explanation_of
from packages.equipoise.tests.report.forms import page

CLOSED = msgspec.structs.replace(
    documents.CLOSED, advice="GLIBC_TUNABLES=glibc.malloc.mmap_max=0 work"
)
UNKNOWN = msgspec.structs.replace(
    CLOSED,
    intervention="jemalloc",
    summary="jemalloc",
    outcome="open",
    share=None,
    share_ci=(None, None),
    share_of_seconds=None,
    share_of_seconds_ci=(None, None),
    blocks=0,
    unknown_because="not tried: libjemalloc2 is not installed",
    advice=None,
)


def changed(*each: why.InterventionOutcome) -> ResultDocument:
    """A document in which two causes have the same interventions."""
    causes = tuple(
        msgspec.structs.replace(explanation_of("a cause"), tested=each, status="confirmed")
        for _ in range(2)
    )
    return msgspec.structs.replace(document_of("usual", "policy"), why=causes)


def printed(document: ResultDocument) -> str:
    console = Console(file=io.StringIO(), width=400)
    with console.capture() as capture:
        section = interventions_section(document)
        print_to(console, parts_in([section] if section else [], "verbose"))
    return capture.get()


def test_a_result_without_interventions_says_nothing() -> None:
    assert printed(document_of()) == ""
    assert interventions_section(document_of()) is None


def test_each_intervention_stands_once_with_both_shares_and_its_outcome() -> None:
    lines = printed(changed(CLOSED, UNKNOWN)).splitlines()
    assert "times as long as usual. What was changed on both:" in lines[0]
    assert lines[2].split("  ")[0] == "keeping freed memory"
    assert "97 % [94, 99]" in lines[2]
    assert "97 % + 0 %" in lines[2]
    assert "98 % [95, 100]" in lines[2]
    assert lines[2].split()[-2:] == ["20", "confirmed"]
    assert lines[3].split() == ["jemalloc", *["unknown"] * 3, "0", "open"]
    assert "jemalloc: not tried: libjemalloc2 is not installed" in lines[5]
    assert NOTHING_CLOSES_GAP not in "\n".join(lines)


def test_fractions_beyond_0_and_100_percent_are_explained_in_words() -> None:
    over = msgspec.structs.replace(CLOSED, share=1.07, share_ci=(1.01, 1.2))
    worse = msgspec.structs.replace(
        UNKNOWN, share=-0.82, share_ci=(-2.4, -0.1), blocks=17, unknown_because=None
    )
    text = printed(changed(over, worse))
    assert "More than 100 %: with the change the order of the two is reversed." in text
    assert "Below 0 %: the change makes the gap larger." in text
    assert "add up to more than 100 %" not in text
    over = msgspec.structs.replace(over, share_ci=(0.95, 1.2))
    worse = msgspec.structs.replace(worse, share=-0.05, share_ci=(-0.2, 0.1))
    text = printed(changed(over, worse))
    assert "all of the gap may be gone" in text
    assert "the change may do nothing" in text
    assert "reversed" not in text
    assert "larger" not in text


def test_several_changes_that_close_the_same_gap_are_said_to_overlap() -> None:
    jemalloc = msgspec.structs.replace(CLOSED, intervention="jemalloc", summary="jemalloc")
    assert "several changes remove the same cause" in printed(changed(CLOSED, jemalloc))
    text = printed(changed(CLOSED))
    assert "100 %:" not in text
    assert "add up" not in text


def test_where_nothing_is_confirmed_the_gap_is_called_open() -> None:
    assert NOTHING_CLOSES_GAP in printed(changed(UNKNOWN))


def test_an_intervention_undecided_after_a_few_blocks_may_yet_be_decided() -> None:
    begun = msgspec.structs.replace(CLOSED, outcome="open", share_ci=(None, None), blocks=3)
    text = printed(changed(begun, UNKNOWN))
    assert NOTHING_DECIDED.split(":")[0] in text
    assert NOTHING_CLOSES_GAP not in text


def test_a_narrow_fraction_that_is_neither_confirmed_nor_refuted_leaves_the_gap_open() -> None:
    half = msgspec.structs.replace(CLOSED, outcome="open", share=0.4, share_ci=(0.3, 0.5))
    assert NOTHING_CLOSES_GAP in printed(changed(half))


def test_the_page_has_the_same_and_untrusted_text_stays_text() -> None:
    hostile = msgspec.structs.replace(CLOSED, summary=HOSTILE, advice=HOSTILE)
    made = page([ReportInput(changed(hostile, UNKNOWN))])
    assert "97 % [94, 99]" in made
    assert "not tried: libjemalloc2 is not installed" in made
    assert HOSTILE not in made


MISSED = msgspec.structs.replace(
    UNKNOWN,
    intervention="large_buffers",
    summary="giving stdio buffers of 256 KiB",
    outcome="not reachable",
    unknown_because=None,
    unchanged_sentence="read(2) was called as often as before: 20,013 times",
)


def test_an_intervention_that_reached_nothing_names_the_unchanged_evidence() -> None:
    text = printed(changed(MISSED))
    assert "not reachable" in text
    assert NOTHING_REACHES_CAUSE in text
    assert (
        "giving stdio buffers of 256 KiB cannot reach it: read(2) was called as often as before: "
        "20,013 times" in text
    )


def test_an_intervention_that_reached_one_of_two_causes_is_shown_with_its_fraction() -> None:
    reached = msgspec.structs.replace(MISSED, outcome="refuted", share=0.0, unchanged_sentence=None)
    causes = tuple(
        msgspec.structs.replace(explanation_of("a cause"), tested=(outcome,))
        for outcome in (reached, MISSED)
    )
    text = printed(msgspec.structs.replace(document_of("usual", "policy"), why=causes))
    assert "refuted" in text
    assert "not reachable" not in text
