"""Where the extra time is, on the screen and on the page."""

from __future__ import annotations

import io

import msgspec.structs
import pytest
from rich.console import Console

from equipoise.analysis.sequences import sequences_of_document
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ExtraTime, Status, TimePart
from equipoise.report.builders.result import ReportInput
from equipoise.report.builders.why import why_parts
from equipoise.report.document import parts_in
from equipoise.report.renderers.terminal import print_to
from packages.equipoise.tests.documents import CLOSED, HOSTILE, document_of
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.schema import validated


def explained(name: str = "new") -> ResultDocument:
    """A document of which evidence says where the extra time is."""
    document = document_of("old", name)
    extra = ExtraTime(
        baseline="old",
        candidate=name,
        slower=name,
        gap_s=0.5,
        gap_s_ci=(0.4, 0.6),
        parts=(
            TimePart("user", 1.0, 0.98, -0.02, (-0.03, -0.01), -0.04),
            TimePart("system", 0.01, 0.5, 0.49, (None, None), 0.98),
        ),
        run_counts={"profile": (3, 3)},
        unseen={"waits": ("perf_event_open: not permitted", "more", "and more")},
        summary="98 % of the extra time is system time",
    )
    cause = Explanation(
        cause="returned_memory",
        kind="allocation",
        evidence={"syscall": "munmap"},
        status="open",
        share_of_gap=0.97,
        share_ci=(0.9, 1.0),
        summary=f"large blocks of {name} are returned to the kernel at every free",
        seconds=0.48,
        seconds_ci=(0.4, 0.5),
    )
    return validated(msgspec.structs.replace(document, extra_time=extra, why=(cause,)))


def printed(document: ResultDocument, width: int = 120) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False, markup=False)
    print_to(console, parts_in(why_parts(document), "verbose"))
    return text.getvalue()


def test_the_screen_says_where_the_extra_time_is_and_why() -> None:
    text = printed(explained())
    assert "Where the extra 500 ms of `new` go" in text
    assert "98 % of the extra time is system time." in text
    assert "-20.0 ms" in text
    assert "–" in text
    assert "480 ms   97 %  open" in text
    assert "large blocks of new are returned to the kernel at every free" in text
    assert "not seen by waits: perf_event_open: not permitted; more; and 1 more" in text


ADVICE = "GLIBC_TUNABLES=glibc.malloc.mmap_max=0 new"


def with_remedy(status: Status) -> ResultDocument:
    """The same with a remedy, and a change that closes the gap where the cause is confirmed."""
    document = explained()
    outcome = msgspec.structs.replace(CLOSED, outcome=status, advice=ADVICE)
    cause = msgspec.structs.replace(
        document.why[0],
        status=status,
        tested=(outcome,) if status == "confirmed" else (),
        remedy="Keep large blocks and use them again.",
    )
    return msgspec.structs.replace(document, why=(cause,))


def test_the_remedy_comes_before_the_evidence() -> None:
    text = printed(with_remedy("confirmed"))
    advice = f"Keeping freed memory closes 97 % [94, 99] of the gap. To keep it: {ADVICE}"
    places = [
        text.index(phrase) for phrase in ("What to do", advice, "Keep large", "Where the extra")
    ]
    assert places == sorted(places)
    assert "No test has confirmed" not in text


def test_a_remedy_that_no_test_has_confirmed_says_so() -> None:
    text = printed(with_remedy("open"))
    assert "Keep large blocks and use them again. (No test has confirmed this cause.)" in text
    assert "What to do" not in printed(with_remedy("refuted"))


def test_the_page_begins_with_the_remedy() -> None:
    document = with_remedy("open")
    text = page([ReportInput(document, sequences_of_document(document))])
    assert text.index("What to do: Keep large blocks") < text.index("Where the extra 500 ms")


def test_shares_above_100_percent_are_explained_in_words() -> None:
    document, usual = explained(), explained().extra_time
    assert usual is not None

    def with_parts(*parts: TimePart) -> str:
        extra = msgspec.structs.replace(usual, parts=parts)
        return " ".join(printed(msgspec.structs.replace(document, extra_time=extra)).split())

    system = TimePart("system", 0.1, 0.85, 0.75, (0.6, 0.8), 1.5)
    at_once = with_parts(TimePart("user", 0.5, 0.9, 0.4, (0.3, 0.5), 0.8), system)
    assert "The shares add up to 230 %: processor time adds up over all threads" in at_once
    shrank = with_parts(TimePart("user", 0.9, 0.65, -0.25, (-0.3, -0.2), -0.5), system)
    assert "A share is above 100 % because another part became smaller." in shrank
    assert "above 100 %" not in with_parts(*usual.parts)


def test_causes_that_overlap_are_said_to() -> None:
    document = explained()
    twice = msgspec.structs.replace(document, why=document.why * 2)
    assert "causes overlap, or one hides another" in printed(twice)
    assert "overlap" not in printed(document)


def test_an_explanation_without_a_cause_says_that_there_is_none() -> None:
    assert "No rule finds a cause" in printed(msgspec.structs.replace(explained(), why=()))


def test_sources_that_were_not_observed_are_not_mentioned() -> None:
    assert printed(document_of()) == ""
    assert list(why_parts(document_of())) == []


@pytest.mark.parametrize("width", [60, 80, 200])
def test_it_fits_the_terminal(width: int) -> None:
    lines = printed(explained("a name that is longer than all others " * 3), width).splitlines()
    assert max(map(len, lines)) <= width


def test_the_page_has_it_as_text() -> None:
    document = explained(HOSTILE)
    text = page([ReportInput(document, sequences_of_document(document))])
    assert "98 % of the extra time is system time" in text
    assert "returned to the kernel at every free" in text
    assert HOSTILE not in text
