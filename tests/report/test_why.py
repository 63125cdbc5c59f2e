"""Where the extra time is, on the screen and on the page."""

from __future__ import annotations

import io

import msgspec.structs
import pytest
from rich.console import Console

from equipoise.analysis.sequences import sequences_of_document
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ExtraTime, TimePart
from equipoise.report.builders.result import CampaignReport
from equipoise.report.builders.why import why_parts
from equipoise.report.document import parts_in
from equipoise.report.renderers.terminal import print_to
from tests.documents import HOSTILE, document_of
from tests.report.forms import page
from tests.schema import validated


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
        observed={"profile": (3, 3)},
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
    print_to(console, parts_in(why_parts(document), "screen"))
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


def test_an_explanation_without_a_cause_says_that_there_is_none() -> None:
    assert "No rule finds a cause" in printed(msgspec.structs.replace(explained(), why=()))


def test_what_was_not_observed_is_not_mentioned() -> None:
    assert printed(document_of()) == ""
    assert list(why_parts(document_of())) == []


@pytest.mark.parametrize("width", [60, 80, 200])
def test_it_fits_the_terminal(width: int) -> None:
    lines = printed(explained("a name that is longer than all others " * 3), width).splitlines()
    assert max(map(len, lines)) <= width


def test_the_page_has_it_as_text() -> None:
    document = explained(HOSTILE)
    text = page([CampaignReport(document, sequences_of_document(document), None)])
    assert "98 % of the extra time is system time" in text
    assert "returned to the kernel at every free" in text
    assert HOSTILE not in text
