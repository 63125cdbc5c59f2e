"""The page has all of the document, escapes everything, and makes no request."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign as result_of
from equipoise.figures.values import MAX_DOTS
from equipoise.model.record import CampaignWarning
from equipoise.model.result import (
    CarryOver,
    ControlResult,
    Drift,
    Mode,
    ModeAssociation,
    ResultDocument,
    State,
    StatisticAnswer,
)
from equipoise.report.builders.result import ReportInput
from equipoise.report.builders.statements import strip_of
from equipoise.report.renderers.html import columns_of_rows, separated_chart
from packages.equipoise.tests.documents import (
    HOSTILE,
    comparison_of,
    document_of,
    explanation_of,
    layered_document,
    points_of,
)
from packages.equipoise.tests.iterated import record_of, restless, steady
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.kinds import strata, varied

LARGEST = 3_000_000


class Outline(HTMLParser):
    """The headings, the texts and the attributes of a page, as a browser would have them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._within: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag in self._within:
            del self._within[len(self._within) - 1 - self._within[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        """Note a text that a reader sees."""
        if not {"script", "style"} & set(self._within) and data.strip():
            self.texts.append(data.strip())

    def tags(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.elements if name == tag]


def reported(document: ResultDocument) -> ReportInput:
    """A document with a sequence for each candidate."""
    return ReportInput(
        document,
        {
            comparison.candidate: points_of(comparison.ratio or 1.0)
            for comparison in document.comparisons
        },
    )


def page_of(document: ResultDocument) -> str:
    """The page of one document."""
    return page([reported(document)])


def test_the_verdict_comes_first_then_interval_conditions_figures_warnings_and_environment() -> (
    None
):
    document = document_of()
    texts = Outline(page_of(document)).texts
    visible = texts[texts.index("slower") :]
    places = [
        visible.index(part)
        for part in (
            "slower",
            document.comparisons[0].summary,
            "At a glance",
            "How to read it.",
            "Conditions",
            "Figures",
            "Warnings",
            "Run it again",
            "Environment",
        )
    ]
    assert places == sorted(places)
    assert places[1] == 1
    assert any(text.startswith("95 % interval +") for text in visible[:6])


def test_every_number_of_the_conditions_table_is_there() -> None:
    texts = Outline(page_of(document_of())).texts
    for expected in ("50.3 ms", "52.9 ms", "2.10 MB", "60", "sort --parallel=2 words"):
        assert expected in texts


def test_the_page_has_the_command_and_the_seed() -> None:
    texts = Outline(page_of(document_of(seed=4711))).texts
    assert any("equipoise compare --seed 4711" in text for text in texts)


def test_each_warning_has_its_hint_and_no_warnings_read_as_none() -> None:
    document = document_of()
    assert "Hint: close what else runs" in page_of(document)
    assert "None." in Outline(page_of(replace(document, warnings=()))).texts


def test_a_null_in_the_environment_reads_as_unknown() -> None:
    texts = Outline(page_of(document_of())).texts
    assert texts[texts.index("governor") + 1] == "unknown"
    assert texts[texts.index("memory") + 1] == "8.00 GB"
    assert texts[texts.index("libraries, libc.so.6") + 1] == "2.36"


def test_a_statement_has_the_other_facts_of_its_comparison() -> None:
    comparison = replace(
        comparison_of("sort words", "sort --parallel=2 words", None),
        minimum_misleads=True,
        blocks_to_go=120,
        carry_over=CarryOver(1.03, (1.02, 1.04), 40),
    )
    other = comparison_of("sort words", "sort --parallel=2 words", 1.2, metric="minor_faults")
    texts = Outline(page_of(replace(document_of(), comparisons=(comparison, other)))).texts
    joined = "\n".join(texts)
    for expected in (
        "about 120 more would probably decide it",
        "do not rank by the minimum",
        "+3.00 % (+2.00 % to +4.00 %)",
        "still unlimited",
        "minor_faults",
    ):
        assert expected in joined


def test_the_page_shows_and_draws_both_scopes_the_levels_and_the_advice() -> None:
    content = page_of(layered_document("a", "b"))
    texts = Outline(content).texts
    assert texts[texts.index("Across layouts") + 1] == "-0.96 % to +5.16 %"
    assert texts[texts.index("These 12 layouts") + 1] == "+1.59 % to +2.61 %"
    assert texts[texts.index("Variance: layout") + 1] == "90 % (±3.0 %; 2.0 to 5.0)"
    assert "one more minute on new layouts narrows the interval by 40 %" in content
    assert "Which level the spread comes from" in texts


def test_the_page_has_the_shape_of_each_condition_and_each_statistic() -> None:
    document = document_of()
    first = document.conditions[0]
    wall = replace(
        first.metrics["wall_s"],
        modes=(Mode(0.049, 0.7), Mode(0.052, 0.3)),
        mode_associations=(ModeAssociation(1, "cpu", 1.0, 0.9, 0.001),),
        states=(State(0, 0.049), State(30, 0.052)),
        tail_ratio=3.1,
        drift=Drift(1.023, (1.01, 1.04)),
        autocorrelation=0.45,
    )
    answers = (StatisticAnswer("minimum", 0.9, "faster"), StatisticAnswer("p90", None, "slower"))
    comparison = replace(
        document.comparisons[0], answers=answers, disagreement="b is both, by the minimum"
    )
    changed = replace(first, metrics={**first.metrics, "wall_s": wall})
    texts = Outline(
        page_of(
            replace(
                document,
                conditions=(changed, *document.conditions[1:]),
                comparisons=(comparison,),
            )
        )
    ).texts
    place = texts.index("Shape")
    assert texts[place + 2 : place + 7] == [
        "2 modes: 49.0 ms (70 %) and 52.0 ms (30 %); the slow one goes with CPU 1",
        "change of state: 49.0 ms at first, 52.0 ms (+6.12 %) from trial 31 on",
        "drift: became 2.30 % slower from the first to the last third of the campaign",
        "the upper tail is 3.1 times as long as the lower one",
        "neighbouring trials are alike: correlation 0.45",
    ]
    assert texts[place + 8].startswith("1 mode: ")
    assert "b is both, by the minimum." in texts
    place = texts.index("Would have said")
    assert texts[place + 1 : place + 7] == ["Minimum", "-10.0 %", "faster", "90 %", "–", "slower"]


def test_iterations_and_their_steady_states_stand_on_the_page() -> None:
    texts = Outline(page_of(result_of(record_of(steady(0.01), restless)))).texts
    joined = "\n".join(texts)
    assert "iterations of request_s: warm-up in all 20 trials" in joined
    assert "b against a: no comparison of request_s in the steady state: b: it has no" in joined
    assert "Iterations of a" in texts


def test_control_and_causes_are_shown_where_there_are_some() -> None:
    document = replace(
        document_of(),
        control=control_of(document_of()),
        why=(explanation_of("Page faults close 80 % of the gap."),),
    )
    joined = "\n".join(Outline(page_of(document)).texts)
    assert "Control: the baseline against itself" in joined
    assert "The control agrees with the baseline." in joined
    assert "+0.04 %" in joined
    assert "Page faults close 80 % of the gap." in joined


def control_of(document: ResultDocument) -> ControlResult:
    """A control that agrees with the baseline of the document."""
    baseline = document.conditions[0]
    repeated = replace(baseline, name=f"{baseline.name} (control)")
    return ControlResult(
        condition=repeated,
        comparison=comparison_of(baseline.name, repeated.name, 1.0004),
        excludes_one=False,
        summary="The control agrees with the baseline.",
    )


def everywhere_hostile() -> ResultDocument:
    """Every text that a user or a machine can choose is hostile."""
    document = document_of(HOSTILE, "b " + HOSTILE, blocks=12)
    return replace(
        document,
        run=replace(document.run, id=HOSTILE, study=HOSTILE, stopped_because=HOSTILE),
        environment={HOSTILE: {HOSTILE: HOSTILE}},
        conditions=tuple(
            replace(one, command=(HOSTILE,), levels={HOSTILE: str(place)})
            for place, one in enumerate(document.conditions, start=1)
        ),
        comparisons=tuple(
            replace(comparison, summary=HOSTILE, scope=HOSTILE)
            for comparison in document.comparisons
        ),
        control=control_of(document),
        why=(explanation_of(HOSTILE),),
        warnings=(CampaignWarning(HOSTILE, HOSTILE, HOSTILE),),
    )


def test_hostile_texts_make_no_element_and_no_attribute() -> None:
    text = page_of(everywhere_hostile())
    outline = Outline(text)
    assert len(outline.tags("script")) == 3
    assert not outline.tags("img")
    for tag, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
    assert sum(HOSTILE in text for text in outline.texts) >= 10
    assert "<script>document.title" not in text


def test_a_hostile_text_stands_unchanged_in_the_data() -> None:
    script = re.search(
        r'<script type="application/json" id="figures">(.*?)</script>',
        page_of(everywhere_hostile()),
        re.DOTALL,
    )
    assert script is not None
    tables = json.loads(script[1])["tables"].values()
    texts = [
        level
        for table in tables
        for column in table["columns"].values()
        if isinstance(column, dict)
        for level in column["levels"]
    ]
    assert HOSTILE in texts


def test_the_policy_forbids_every_request_and_every_foreign_script() -> None:
    outline = Outline(page_of(document_of()))
    policy = next(
        tag["content"]
        for tag in outline.tags("meta")
        if tag.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    script = next(part for part in policy.split(";") if "script-src" in part)
    assert "unsafe" not in script
    assert script.count("'sha256-") == 2
    for _, attributes in outline.elements:
        assert not (attributes.get("src") or "")
        link = attributes.get("href") or "#"
        assert link.startswith(("#", "data:,"))


def test_headings_descend_one_level_at_a_time_and_figures_have_names() -> None:
    outline = Outline(page_of(document_of("a", "b", "c")))
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    identities = {one.get("id") for _, one in outline.elements}
    for figure in outline.tags("figure"):
        assert figure["aria-labelledby"] in identities
    charts = [tag for tag in outline.tags("div") if tag.get("class") == "chart"]
    assert charts
    assert all(chart["aria-label"] and chart["role"] == "img" for chart in charts)
    assert next(iter(outline.tags("html")))["lang"] == "en"


def test_the_same_campaign_gives_the_same_bytes() -> None:
    assert page_of(document_of()) == page_of(document_of())


def test_a_page_of_five_thousand_trials_is_small_enough_to_send() -> None:
    document = document_of(blocks=(MAX_DOTS - 2) // 2)
    assert len(document.trials) == MAX_DOTS
    text = page_of(document)
    assert len(text.encode()) < LARGEST
    assert "too many" not in text


@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_a_campaign_of_few_blocks_has_a_page(blocks: int) -> None:
    assert "Distribution of the time" in page_of(document_of(blocks=blocks))


def test_a_campaign_without_any_trial_has_a_page() -> None:
    document = replace(
        document_of(), trials=(), comparisons=(), environment={}, warnings=(), conditions=()
    )
    assert "nothing was compared" in page_of(document)


def test_bytes_that_are_no_text_are_shown_as_escapes() -> None:
    assert "a\\udcff" in page_of(document_of("a\udcff", "b", blocks=2))


def test_rows_come_back_from_their_columns() -> None:
    rows: list[dict[str, Any]] = [
        {"x": 1, "name": "a"},
        {"x": None, "name": "b"},
        {"x": 3, "name": "a", "more": True},
    ]
    table = columns_of_rows(rows)
    assert table["columns"]["name"] == {"levels": ["a", "b"], "codes": [0, 1, 0]}
    assert table["columns"]["x"] == [1, None, 3]
    assert table["columns"]["more"] == {"levels": [None, True], "codes": [0, 0, 1]}


def test_a_chart_is_packed_without_its_tables() -> None:
    chart = separated_chart("here", {"datasets": {"data-1": [{"x": 1}, {"x": 2}]}, "width": 720})
    assert chart.specification == {"width": "container", "datasets": ["data-1"]}
    assert chart.row_count == 2


def test_the_strip_shows_the_interval_and_no_difference() -> None:
    strip = strip_of(1.05, (1.05 * 0.98, 1.05 * 1.02), "wall_s", 1.0)
    assert strip is not None
    begin, width = strip.interval
    assert strip.ratio_one < begin < begin + width < 100
    assert strip.estimate is not None
    assert begin < strip.estimate < begin + width


def test_an_open_side_of_the_strip_reaches_the_edge() -> None:
    strip = strip_of(1.05, (1.02, None), "wall_s", 1.0)
    assert strip is not None
    assert strip.is_open_right
    assert sum(strip.interval) == pytest.approx(100.0)
    assert strip_of(None, (None, None), "wall_s", 1.0) is None


def test_a_table_with_styled_row_headings_has_a_page() -> None:
    stratified = page([strata()])
    assert '<th scope="row">n 1</th>' in stratified
    assert "Which of 3 is the fastest, at each n?" in stratified
    assert '<th scope="row">CPU</th>' in page([varied()])
