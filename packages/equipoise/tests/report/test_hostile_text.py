"""Whatever a name holds: a page has the elements of its template, and a screen obeys nothing."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from equipoise.analysis.display import document_for_display
from equipoise.cli.doctor import examination_document
from equipoise.figures.distributions import distributions
from equipoise.figures.save import save
from equipoise.model.host import Disturbance, Examination
from equipoise.model.record import CampaignWarning
from equipoise.model.result import ResultDocument
from equipoise.report.builders.matching import observation_document
from equipoise.report.builders.result import ReportInput
from equipoise.report.document import Command
from equipoise.report.renderers import html, terminal
from equipoise.shared.safe_text import MAX_NAME_LETTERS, shortened, visible_lines
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.result import ObservationResult
from packages.equipoise.tests.documents import document_of, explanation_of
from packages.equipoise.tests.payloads import LONG, PAYLOADS
from packages.equipoise.tests.report.forms import page, screen
from packages.matching.tests.observation.logs import loaded_log, question

HOSTILE = (*PAYLOADS, LONG)
PLAIN = tuple(f"name {place}" for place in range(len(HOSTILE)))
CONDITIONS = 10
"""So many of them are conditions: a chart takes time for each."""
DRAWN = tuple(name for name in PAYLOADS if set(name) & set("<&\"'\x1b\udcff"))


class Skeleton(HTMLParser):
    """The elements of a page with the names of their attributes, in order, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.texts: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        """Note what is read."""
        self.texts.add(data.strip())


def document_named(names: Sequence[str]) -> ResultDocument:
    """A campaign in which these are wherever a user or a host chooses a text."""
    document = document_of(*names[: CONDITIONS - 1], names[-1], blocks=3)
    one = names[1]
    measured = document.conditions[0]
    named = replace(
        measured, metrics={**measured.metrics, **dict.fromkeys(names, measured.metrics["wall_s"])}
    )
    return replace(
        document,
        run=replace(document.run, id=one, study=one, stopped_because=one),
        environment={**dict(zip(names, names, strict=True)), one: {one: [one, one]}},
        conditions=tuple(
            replace(condition, command=("run", name), levels={name: "1", one: name})
            for condition, name in zip((named, *document.conditions[1:]), names, strict=False)
        ),
        comparisons=tuple(
            replace(comparison, summary=name, scope=name, disagreement=name)
            for comparison, name in zip(document.comparisons, names[1:], strict=False)
        ),
        why=tuple(map(explanation_of, names)),
        warnings=tuple(CampaignWarning(name, name, name) for name in names),
    )


def obeyed(screen: str) -> list[str]:
    """The lines in which there is more than what a screen shows."""
    return [line for line in screen.split("\n") if not line.isprintable()]


def test_a_page_has_no_element_and_no_attribute_beyond_those_of_plain_names() -> None:
    reported = document_for_display(document_named(HOSTILE), show_env=True)
    hostile = page([ReportInput(reported)])
    skeleton = Skeleton(hostile)
    assert skeleton.found == Skeleton(page([ReportInput(document_named(PLAIN))])).found
    assert {visible_lines(shortened(name)).strip() for name in HOSTILE} <= set(skeleton.texts)
    assert LONG[:MAX_NAME_LETTERS] not in hostile
    data = re.search(r'id="figures">(.*?)</script>', hostile, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["charts"]
    assert "<" not in data[1]
    steering = {unicodedata.category(letter) for letter in hostile if letter not in "\n\t"}
    assert not steering & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def test_a_screen_shows_names_and_sends_none() -> None:
    ledger = Path("\x1b]0;title\x07")
    printed = screen(document_named(HOSTILE), ledger=ledger)
    for names in (HOSTILE[:2], ("\x1b[31mred", "\u202eturned")):
        printed += screen(document_named(names))
    assert obeyed(printed) == []
    for expected in ("[bold red]bold[/bold red]", "<svg/onload=alert(1)>", r"\x1b]0;title\x07"):
        assert expected in printed


def test_names_of_other_processes_reach_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    disturbances = tuple(Disturbance("busy_process", "disturbs", name, name) for name in PAYLOADS)
    examination = Examination(disturbances, ("a",), {"b": "\x1b[2J"})
    terminal.print_document(examination_document(examination), color=False, form="verbose")
    printed = capsys.readouterr()
    assert obeyed(printed.out + printed.err) == []
    assert "[bold red]bold[/bold red]" in printed.out


def observed_of(names: Sequence[str]) -> ObservationResult:
    """A log whose columns and versions have these names."""
    version, baseline, candidate, *others = names
    log = dict(loaded_log(300))
    request = question()
    renamed = dict(zip((name for name in log if name != request.treatment), others, strict=False))
    columns = {renamed.get(name, version): column for name, column in log.items()}
    old, new = "1.0", "2.0"
    columns[version] = columns[version].astype(object)
    columns[version][columns[version] == old] = baseline
    columns[version][columns[version] == new] = candidate
    return observe(
        columns,
        replace(
            request,
            treatment=version,
            values=f"{candidate}:{baseline}",
            outcome=renamed[request.outcome],
            covariates=tuple(renamed[name] for name in request.covariates or ()),
        ),
        source=names[0],
    )


def test_an_observed_page_and_its_screen_take_columns_and_versions_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = observed_of([name for name in HOSTILE if ":" not in name and name.strip()])
    plain = observed_of(PLAIN)
    pages = [
        html.page([observation_document(one, again)])
        for one, again in ((hostile, " ".join(HOSTILE)), (plain, "again"))
    ]
    assert Skeleton(pages[0]).found == Skeleton(pages[1]).found
    capsys.readouterr()
    terminal.print_document(observation_document(hostile, "again"), color=False)
    assert obeyed(capsys.readouterr().out) == []


def test_a_picture_has_no_element_and_no_attribute_beyond_those_of_plain_names(
    tmp_path: Path,
) -> None:
    kinds = []
    for number, names in enumerate((DRAWN, PLAIN[: len(DRAWN)])):
        path = tmp_path / f"{number}.svg"
        save(distributions(document_of(*names, blocks=2)), path)
        elements = list(ElementTree.parse(path).iter())
        kinds.append({(element.tag, tuple(sorted(element.attrib))) for element in elements})
        assert not [
            element for element in elements if element.tag.endswith(("script", "image", "a"))
        ]
    assert kinds[0] <= kinds[1]


@pytest.mark.parametrize("ending", [".html", ".png"])
def test_letters_that_xml_cannot_hold_are_drawn_as_escapes(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"figure{ending}"
    save(distributions(document_of("red \x1b[31m \x07", "no text \udcff", blocks=2)), path)
    assert path.stat().st_size


def test_the_purpose_of_a_line_to_type_is_shown_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    host = "\x1b[31mred\u202eturned"
    part = Command("equipoise show last", f"The campaign of {host} alone:")
    terminal.print_parts([part], color=False)
    printed = capsys.readouterr().out
    assert obeyed(printed) == []
    assert r"\x1b[31mred\u202eturned alone: equipoise show last" in printed
