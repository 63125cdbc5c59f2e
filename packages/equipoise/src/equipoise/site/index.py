"""The index with its lists, the feed and the badges of a site, from the manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b

from msgspec import Struct

from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import counted
from equipoise.report.news import Badge
from equipoise.report.renderers.site import (
    LISTED_LINES,
    IndexSection,
    Line,
    ListPage,
    index_page,
    list_page,
    listed_lines,
)
from equipoise.site.badges import badge_path, badge_svg
from equipoise.site.feed import DatedChange, atom_feed
from equipoise.site.manifest import FEED, INDEX, LISTS, Manifest, PageRecord

_MAX_CHANGES = 50
"""Number of changes on the index, the latest first."""
LINES_OF_LIST = 200
"""Number of lines of a list."""
_DIGEST_BYTES = 16
_WAITING, _MISSING = "no page yet", "no page could be made"


class IndexFiles(Struct, frozen=True):
    """The index, its lists, the feed and the badges."""

    contents: Mapping[str, bytes]
    """Contents by path; a list that is up to date has no content."""
    list_digests: Mapping[str, str]
    """Digest of the lines of each list, and of the script with all of these lines, by path."""


def index_files(title: str, manifest: Manifest, current: Mapping[str, str]) -> IndexFiles:
    """Return the files that a manifest determines; ``current`` has the digests of present lists.

    A section of the index with many lines continues on lists. Lists are filled from the last line,
    the oldest campaign. So a new campaign changes no list, until there are enough for a new list.
    """
    latest_first = manifest.pages[::-1]
    changes = _changes(manifest.pages)
    badges = _latest_badges(latest_first)
    all_sections = (
        ("Latest gates", "gates", list(_badge_lines(badges))),
        ("Changes", "changes", list(map(_change_line, changes[:_MAX_CHANGES]))),
        ("Histories", "histories", list(_history_lines(latest_first))),
        ("Campaigns", "campaigns", list(map(_campaign_line, latest_first))),
    )
    sections: list[IndexSection] = []
    lists: dict[str, ListPage] = {}
    for heading, anchor, lines in all_sections:
        if lines or anchor == "campaigns":
            lists |= _lists_of(heading, anchor, lines)
            first_list = _list_path(anchor, _list_count(lines))
            sections.append(
                IndexSection(
                    title=heading,
                    anchor=anchor,
                    lines=lines[: len(lines) - LINES_OF_LIST * _list_count(lines)],
                    total=len(lines),
                    rest=first_list if first_list in lists else None,
                )
            )
    latest = max((record.started_at for record in latest_first), default=0.0)
    contents = {
        INDEX: index_page(title, sections, feed=FEED),
        FEED: atom_feed(title, manifest.feed_id, changes, latest),
        **{
            badge_path(badge): badge_svg(badge, _day(record.started_at)) for badge, record in badges
        },
    }
    digests = {path: _digest(title, page) for path, page in lists.items()}
    if lists:
        digests[LISTED_LINES] = _digest(title, *digests.values())
    for path, digest in digests.items():
        if current.get(path) != digest:
            contents[path] = (
                listed_lines(line for page in lists.values() for line in page.lines)
                if path == LISTED_LINES
                else list_page(title, lists[path])
            )
    return IndexFiles(contents, digests)


def _list_count(lines: Sequence[Line]) -> int:
    """Return the number of lists; the index has more lines than a list, but not twice as many."""
    return max(0, len(lines) // LINES_OF_LIST - 1)


def _list_path(anchor: str, number: int) -> str:
    return f"{LISTS}/{anchor}-{number}.html"


def _lists_of(heading: str, anchor: str, lines: Sequence[Line]) -> dict[str, ListPage]:
    """Return the lists of a section, in the order of their lines; the last list has number 1."""
    count = _list_count(lines)
    return {
        _list_path(anchor, number): ListPage(
            title=f"{heading}: list {number}",
            lines=lines[len(lines) - LINES_OF_LIST * number :][:LINES_OF_LIST],
            before=f"{INDEX}#{anchor}" if number == count else _list_path(anchor, number + 1),
            after=_list_path(anchor, number - 1) if number > 1 else None,
        )
        for number in range(count, 0, -1)
    }


def _digest(*content: str | ListPage) -> str:
    text = repr(content).encode("utf-8", "backslashreplace")
    return blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def _changes(pages: Sequence[PageRecord]) -> list[DatedChange]:
    """Return every change once, with the campaign that reported it first, the latest first."""
    by_key: dict[str, DatedChange] = {}
    for record in pages:
        for change in record.changes:
            dated = DatedChange(change, record.started_at, record.page, record.noun)
            by_key.setdefault(change.key, dated)
    return sorted(by_key.values(), key=lambda dated: dated.at, reverse=True)


def _latest_badges(latest_first: Sequence[PageRecord]) -> list[tuple[Badge, PageRecord]]:
    by_label: dict[str, tuple[Badge, PageRecord]] = {}
    for record in latest_first:
        for badge in record.badges:
            by_label.setdefault(badge.label, (badge, record))
    return [by_label[label] for label in sorted(by_label)]


def _badge_lines(badges: Sequence[tuple[Badge, PageRecord]]) -> Iterator[Line]:
    for badge, record in badges:
        facts = badge.message, _day(record.started_at)
        yield Line(badge.label, record.page, facts, badge.tone, badge_path(badge))


def _change_line(dated: DatedChange) -> Line:
    change = dated.change
    return Line(change.summary, dated.page, (dated.noun, _day(dated.at)), change.tone)


def _history_lines(latest_first: Sequence[PageRecord]) -> Iterator[Line]:
    """Yield the latest campaign of each series, with its changes."""
    seen: set[str] = set()
    for record in latest_first:
        if record.series is None or record.series in seen:
            continue
        seen.add(record.series)
        summaries = (change.summary for change in record.changes)
        count = counted(len(record.changes), "confirmed change")
        yield Line(record.title, record.page, (count, _day(record.started_at), *summaries))


def _campaign_line(record: PageRecord) -> Line:
    facts = (
        record.noun if record.study in (COMPARE_STUDY, record.noun) else record.study,
        f"{datetime.fromtimestamp(record.started_at, UTC):%Y-%m-%d %H:%M} UTC",
        record.name,
        counted(record.trials, "trial"),
        *([] if record.host is None else [record.host]),
        *([] if record.page is not None else [_MISSING if record.digest else _WAITING]),
    )
    return Line(record.title, record.page, facts)


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
