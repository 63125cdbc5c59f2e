"""The index, the feed and the badges of a site, from the manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import counted
from equipoise.report.news import Badge
from equipoise.report.renderers.site import IndexSection, Line, index_page
from equipoise.site.badges import badge_path, badge_svg
from equipoise.site.feed import DatedChange, atom_feed
from equipoise.site.manifest import FEED, INDEX, Manifest, PageRecord

_MAX_CHANGES = 50
"""Number of changes on the index, the latest first."""
_WAITING, _MISSING = "no page yet", "no page could be made"


def index_files(title: str, manifest: Manifest) -> Mapping[str, bytes]:
    """Return the index, the feed and the badges, by their path in the site."""
    latest_first = manifest.pages[::-1]
    changes = _changes(manifest.pages)
    badges = _latest_badges(latest_first)
    sections = (
        IndexSection("Latest gates", "gates", tuple(_badge_lines(badges))),
        IndexSection("Changes", "changes", tuple(map(_change_line, changes[:_MAX_CHANGES]))),
        IndexSection("Histories", "histories", tuple(_history_lines(latest_first))),
        IndexSection("Campaigns", "campaigns", tuple(map(_campaign_line, latest_first))),
    )
    shown = tuple(section for section in sections if section.lines or section.anchor == "campaigns")
    latest = max((record.started_at for record in latest_first), default=0.0)
    return {
        INDEX: index_page(title, shown, feed=FEED).encode(),
        FEED: atom_feed(title, manifest.feed_id, changes, latest),
        **{
            badge_path(badge): badge_svg(badge, _day(record.started_at)) for badge, record in badges
        },
    }


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
