"""Names of commands, labels and files are text: to a shell, to the ledger and on every page."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path

from equipoise.report import html
from tests.cli.conftest import Equipoise
from tests.payloads import PAYLOADS

NAMES = tuple(name for name in PAYLOADS if name.strip() and name.isprintable())
"""That can stand in a line of a CSV; controls and bytes that are no text are another test's."""
TEMPLATE = Path(html.__file__).parent / "templates" / "frame.html.jinja"
COMMANDS = ("$(touch made)", "`touch made`", "; touch made;", "| touch made", "&& touch made", "\n")


class Elements(HTMLParser):
    """How many elements of each name a page has; fails on what acts by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count it."""
        self.counts[tag] = self.counts.get(tag, 0) + 1
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        """Note what is read."""
        self.texts.append(data.strip())


def test_names_come_back_as_they_went_in_and_make_no_element_of_a_page(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    rows = io.StringIO()
    writer = csv.writer(rows)
    writer.writerow(["condition", "value"])
    writer.writerows([name, 1.0 + 0.01 * place] for name in NAMES for place in range(3))
    (tmp_path / "rows.csv").write_text(rows.getvalue(), encoding="utf-8")
    done = equipoise("import", "rows.csv", "--json", "-", "--report", "page.html")
    assert done.status == 0, done.err
    assert [one["name"] for one in json.loads(done.out)["conditions"]] == list(NAMES)
    found = Elements((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert found.counts["h1"] == 1
    assert found.counts["script"] == TEMPLATE.read_text(encoding="utf-8").count("<script")
    assert "img" not in found.counts
    assert {name.strip() for name in NAMES} <= set(found.texts)


def test_words_and_names_reach_no_shell(equipoise: Equipoise, tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(
        "import sys\nopen('said', 'a').write(repr(sys.argv[1]) + '\\n')\n"
    )
    words = [f"python3 -S say.py {quoted(one)}" for one in COMMANDS]
    names = [part for one in COMMANDS for part in ("-n", f"name {one}")]
    done = equipoise("compare", *words, *names, "--blocks", "1", "--warmup", "0", "--budget", "5")
    assert done.status == 0, done.err
    assert not (tmp_path / "made").exists()
    said = (tmp_path / "said").read_text().splitlines()
    assert sorted(said) == sorted(repr(one) for one in COMMANDS)
    assert equipoise("report", "last", "-o", "report.md").status == 0
    assert not (tmp_path / "made").exists()


def quoted(word: str) -> str:
    """A word of a command as a POSIX shell would read it; it has no single quotation mark."""
    return f"'{word}'"
