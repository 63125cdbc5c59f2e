"""The index, the feed and the badges: valid, with the latest of everything, and inert."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from equipoise.report.news import Badge, Change
from equipoise.site.index import LINES_OF_LIST, IndexFiles, index_files
from equipoise.site.manifest import Manifest, PageRecord
from packages.equipoise.tests.documents import HOSTILE

ATOM = "{http://www.w3.org/2005/Atom}"
DAY_S = 86_400.0
FIRST = PageRecord(
    identity="1" * 32,
    digest="d",
    page="campaigns/20260301-101500-ab12-11111111.html",
    is_full=True,
    title="b is slower than a",
    noun="comparison",
    name="20260301-101500-ab12",
    study="compare",
    started_at=1_772_360_100.0,
    host="ci",
    trials=60,
    earlier=(),
    mentioned=(),
)
SLOWER = Change("20260301 abc", "abc (Sort) made it 5 % slower.", "slower")


def later(days: int, **fields: object) -> PageRecord:
    """A campaign that began so many days after the first."""
    return replace(
        FIRST,
        identity=f"{days:032x}",
        page=f"campaigns/202603{1 + days:02d}-101500-ab12-{days:08x}.html",
        started_at=FIRST.started_at + days * DAY_S,
        **fields,
    )


def files_of(*pages: PageRecord) -> dict[str, bytes]:
    """The files of a site with these campaigns."""
    return dict(index_of(*pages).contents)


def index_of(*pages: PageRecord, current: Mapping[str, str] | None = None) -> IndexFiles:
    """The index of a site with these campaigns, and which files are new."""
    return index_files("Team", Manifest(feed_id="urn:uuid:1", pages=pages), current or {})


def entries(files: dict[str, bytes]) -> list[ElementTree.Element]:
    """The entries of the feed."""
    return ElementTree.fromstring(files["feed.xml"]).findall(f"{ATOM}entry")


def test_the_feed_has_what_atom_requires() -> None:
    changes = (SLOWER, Change("20260301 def", "def made it faster.", "faster"))
    feed = ElementTree.fromstring(files_of(later(1, changes=changes))["feed.xml"])
    for name in ("id", "title", "updated", f"author/{ATOM}name"):
        assert feed.findtext(f"{ATOM}{name}")
    found = feed.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}title") for entry in found] == [
        change.summary for change in changes
    ]
    for entry in found:
        assert entry.findtext(f"{ATOM}updated") == "2026-03-02T10:15:00.000+00:00"
        assert entry.findtext(f"{ATOM}summary")
        link = entry.find(f"{ATOM}link")
        assert link is not None
        assert link.get("href") == "campaigns/20260302-101500-ab12-00000001.html"
    assert len({entry.findtext(f"{ATOM}id") for entry in found}) == 2


def test_a_change_that_two_campaigns_report_is_one_entry_of_the_first() -> None:
    once = entries(files_of(later(1, changes=(SLOWER,))))
    twice = entries(files_of(later(1, changes=(SLOWER,)), later(5, changes=(SLOWER,))))
    assert list(map(ElementTree.tostring, twice)) == list(map(ElementTree.tostring, once))


def test_a_benchmark_has_the_badge_of_its_latest_gate() -> None:
    old = Badge("parse", "v1.3 to v1.4: slower, +6.1 % ±1.2 %", "slower")
    new = Badge("parse", "v1.4 to main: no slower, ±1.2 %", "equivalent")
    files = files_of(later(1, badges=(old,)), later(2, badges=(new,)))
    (path,) = (path for path in files if path.startswith("badges/"))
    badge = ElementTree.fromstring(files[path])
    assert badge.get("aria-label") == "parse: v1.4 to main: no slower, ±1.2 % · 2026-03-03"
    index = files["index.html"].decode()
    assert path in index
    assert "v1.3" not in index


def test_a_history_is_listed_once_with_its_confirmed_changes() -> None:
    first = later(1, series="s", title="One change", changes=(SLOWER,))
    more = (SLOWER, Change("20260301 def", "def made it faster.", "faster"))
    files = files_of(first, later(2, series="s", title="Two changes", changes=more))
    index = files["index.html"].decode()
    histories = index[index.index('id="histories"') : index.index('id="campaigns"')]
    histories = histories.replace("\N{NO-BREAK SPACE}", " ")
    assert "One change" not in histories
    for text in ("Two changes", "2 confirmed changes", SLOWER.summary, "def made it faster."):
        assert text in histories


def campaigns(count: int) -> list[PageRecord]:
    """So many campaigns, in the order of their start."""
    return [
        replace(
            FIRST,
            identity=f"{number:032x}",
            title=f"answer={number}",
            page=f"campaigns/20260301-101500-ab12-{number:08x}.html",
            started_at=FIRST.started_at + number,
        )
        for number in range(count)
    ]


def answers(page: bytes) -> list[int]:
    """The numbers of the campaigns on a page, in order."""
    return [int(number) for number in re.findall(rb">answer=(\d+)<", page)]


def test_the_links_from_the_index_through_its_lists_show_every_campaign_once() -> None:
    files = files_of(*campaigns(3 * LINES_OF_LIST + 7))
    found, path, address = [], "index.html", "index.html"
    while address:
        path = address
        found.append(answers(files[path]))
        # From the index the link leads to the first list, and from a list to the next.
        links = re.findall(rb'<a href="(?:\.\./)?(lists/[^"]+)">(?:More|Lines after)', files[path])
        address = links[0].decode() if links else ""
    assert [number for page in found for number in page] == [*reversed(range(sum(map(len, found))))]
    assert list(map(len, found)) == [LINES_OF_LIST + 7, LINES_OF_LIST, LINES_OF_LIST]
    listed = files["assets/lines.js"].decode()
    assert re.findall(r'"answer=(\d+)"', listed) == [str(n) for page in found[1:] for n in page]


def test_a_new_campaign_changes_no_list_until_a_new_list_is_full() -> None:
    *old, new, last = campaigns(4 * LINES_OF_LIST)
    before = index_of(*old)
    assert len(before.list_digests) == 3
    after = index_of(*old, new, current=before.list_digests)
    assert set(after.contents) == {"index.html", "feed.xml"}
    full = index_of(*old, new, last, current=after.list_digests)
    # The list that was the first now has a list before it.
    new_files = {"lists/campaigns-3.html", "lists/campaigns-2.html", "assets/lines.js"}
    assert set(full.contents) == {"index.html", "feed.xml"} | new_files


class Tags(HTMLParser):
    """The start tags of a page, with the address of each link."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag and its addresses."""
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


NAMES = (
    HOSTILE,
    "]]></title><script>alert(1)</script>",
    "--><svg onload=alert(1)>",
    "\x00\x1b[31m\u202ered",
    "javascript:alert(1)",
    "\udce9 {{ 7 * 7 }} \ufffe\uffff",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>&x;",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_only_text(name: str) -> None:
    record = later(
        1,
        title=name,
        noun=name,
        host=name,
        study=name,
        series=name,
        changes=(Change(name, name, "slower"),),
        badges=(Badge(name, name, "slower"),),
    )
    tame = later(
        1,
        title="t",
        noun="n",
        host="h",
        study="s",
        series="s",
        changes=(replace(SLOWER),),
        badges=(Badge("b", "b", "slower"),),
    )
    files, tame_files = files_of(record), files_of(tame)
    index, tame_index = (Tags(every["index.html"].decode()) for every in (files, tame_files))
    assert index.tags == tame_index.tags
    assert not [address for address in index.addresses if "alert" in address]
    for path, content in files.items():
        if path != "index.html":
            tags = [element.tag for element in ElementTree.fromstring(content).iter()]
            (tame_path,) = (other for other in tame_files if other[:5] == path[:5])
            assert tags == [e.tag for e in ElementTree.fromstring(tame_files[tame_path]).iter()]


def test_every_address_is_relative() -> None:
    badge = Badge("parse", "v1.4 to main: no slower", "equivalent")
    files = files_of(later(1, changes=(SLOWER,), badges=(badge,), series="s"))
    addresses = Tags(files["index.html"].decode()).addresses
    assert len(addresses) > 8
    for address in addresses:
        assert ":" not in address or address == "data:,"
        assert not address.startswith("/")
