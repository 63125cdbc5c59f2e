"""A history: what changed over the commits, the curve, its campaigns, and how to go on.

Beside it, or alone, imported series: what another tool measured of each commit, and suspicions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.quantity import extent, metric_name
from equipoise.kinds.history.terms import (
    HistoryCampaign,
    HistoryChange,
    HistoryDocument,
    HistoryPair,
    HistoryResult,
    HistoryRevision,
    history_of_values,
)
from equipoise.model.quantities import counted
from equipoise.model.revisions import short_name
from equipoise.model.series import ImportedSeries, SeriesResult, shown_commit
from equipoise.report.builders.claims import failures_of, strip_of, with_failures
from equipoise.report.builders.origin import minute_of
from equipoise.report.builders.result import (
    CampaignReport,
    campaign_figures,
    how_it_ran,
    whole_document,
)
from equipoise.report.document import (
    ALIKE_SHOWN,
    BRIEF,
    PAGE,
    TEXT,
    UNKNOWN,
    VERBOSE,
    WITH_PICTURES,
    WRITTEN,
    Answer,
    Bullets,
    Cell,
    Claim,
    Column,
    Command,
    Document,
    Facts,
    Figures,
    NumberRow,
    Origin,
    Paragraph,
    Part,
    Row,
    Section,
    Styled,
    Table,
    brief_or_whole,
    fields_of,
    headed,
    ratio_numbers,
    text_of,
)
from equipoise.report.json_document import MAX_MIN_EFFECT, is_step
from equipoise.report.kind import ReportKind
from equipoise.report.units import (
    byte_count,
    duration,
    estimate_and_interval,
    in_one_unit,
    percent_change,
    percentage,
    significant,
    waiting_time,
)
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

MAX_DETAILED_CHANGES = 2
"""Number of changes that are told one by one: more do not fit on the first screen of a phone."""
MAX_ROWS = 20
"""Number of rows that a terminal shows, and commits of the curve that a text does."""
_MAX_BRIEF_ROWS, _MAX_BRIEF_CHANGES = 7, 4
"""Number of commits of the curve, and of changes, that a terminal shows without ``--verbose``."""
_BRIEF_COLUMNS = ("commit", "subject:name", "author", "date", "change:number", "interval")
_WIDTH = 27
"""Letters of the picture of an interval."""
_BAR, _MARK, _ZERO = "─", "●", "│"
_BEYOND = "<>"
"""Ends of an interval that goes on beyond the picture."""
_LABEL = "Commits over the baseline, the oldest first"
_STATUS = {
    "measured": "not beside the baseline",
    "waiting": "not measured yet",
    "not built": "not built",
}


class HistoryReport(ReportKind):
    """How the document of a history is shown."""

    scope = "commits side by side, on this host"
    first_figures = frozenset({"curve"})
    repeats_because = "To add the commits that are new:"

    def question(self, document: HistoryDocument) -> str:
        """Return what a history asks."""
        metric = metric_name(document.primary_metric)
        return f"What changed the {metric} since {document.history.baseline.asked}?"

    def document(self, report: CampaignReport) -> Document:
        """Build the document of a history."""
        document = report.document
        assert isinstance(document, HistoryDocument)
        result = document.history
        of_curve = answer(document, result)
        curve, _ = campaign_figures(report)
        whole: tuple[Part, ...] = (
            *brief_or_whole(of_curve, _brief_answer(of_curve)),
            replace(curve, forms=WITH_PICTURES),
            *parts(document, result),
            *series_parts(result.series),
            *how_it_ran(report),
        )
        # Its other campaigns stand among the parts.
        report = replace(report, earlier=())
        return whole_document(report, of_curve, whole, numbers(document, result))

    def impossible(self, document: HistoryDocument) -> Iterator[str]:
        """Yield what no history computes, of a document that was read."""
        return _impossible(document.history)


def answer(document: HistoryDocument, result: HistoryResult) -> Answer:
    """Build what a reader sees first: the changes, and where the latest commit stands."""
    result = history_of_values(result, document.more_is_better)
    claims = tuple(_claim(document, result, one) for one in result.changes)
    title, lines = result.summary, tuple(_latest(result))
    if len(claims) > MAX_DETAILED_CHANGES:
        lines = (f"The latest change: {claims[-1].text}", *lines)
        claims = ()
    elif len(claims) == 1 and not failures_of(document):
        # The claim is the answer itself.
        claims = (replace(claims[0], text=title, remarks=(*lines, *claims[0].remarks)),)
        title, lines = "", ()
    return with_failures(document, Answer(title=title, lines=lines, claims=claims), "The campaign")


def _brief_answer(answer: Answer) -> Answer:
    """Return the answer without claims: a table has the changes on a brief screen."""
    if not answer.title:
        # One change: the claim is the answer.
        return replace(answer, claims=tuple(replace(one, certainty=()) for one in answer.claims))
    return replace(answer, claims=())


def parts(document: HistoryDocument, result: HistoryResult) -> Iterator[Part]:
    """Build what stands below the answer: changes, curve, campaigns, and how to go on."""
    result = history_of_values(result, document.more_is_better)
    if result.changes:
        yield from _changes(document, result)
    yield from _curve(result)
    yield Section("Campaigns of this history", tuple(_campaigns(result)), forms=WRITTEN)
    facts = tuple(_facts(result))
    yield Facts(facts, forms=VERBOSE)
    yield Section("Cost", (Facts(facts),), forms=WRITTEN)
    if result.blocks_to_go:
        # A budget that is used up is granted again.
        yield Command(shell_line(["equipoise", "resume", document.run.id]), "To go on from here:")
    yield Command(
        document.run.command_line or "", "To add the commits that are new:", forms=VERBOSE
    )


def numbers(document: HistoryDocument, result: HistoryResult) -> Iterator[NumberRow]:
    """Yield a row for each commit of the curve, and for each that ends a change."""
    changes = {one.until: one for one in result.changes}
    revisions = {one.commit: one for one in result.revisions}
    for name in dict.fromkeys((*revisions, *changes)):
        revision, change = revisions.get(name), changes.get(name)
        of_change = ratio_numbers(change)
        yield {
            "run": document.run.id,
            "study": document.run.study,
            "commit": name,
            **fields_of(revision or change, "subject", "author", "date"),
            "metric": result.metric,
            **fields_of(revision, "status"),
            **ratio_numbers(revision),
            **fields_of(revision, "blocks", "era"),
            "change_after": None if change is None else change.after,
            "change_confirmed": None if change is None else str(change.confirmed).lower(),
            "change_ratio": of_change["ratio"],
            "change_low": of_change["ratio_low"],
            "change_high": of_change["ratio_high"],
            "change_e_value": None if change is None else change.e_value,
        }


def _latest(result: HistoryResult) -> Iterator[str]:
    """Yield where the latest measured commit stands against the baseline."""
    measured = [one for one in result.revisions[1:] if one.ratio is not None]
    if not measured:
        return
    last = measured[-1]
    estimate, interval = estimate_and_interval(last.ratio, last.ratio_ci)
    name = result.latest.label if last.commit == result.latest.commit else short_name(last.commit)
    level = "" if last.level is None else f"{percentage(1.0 - last.level)} interval "
    blocks = counted(last.blocks, "block")
    yield f"{name} against {result.baseline.label}: {estimate} ({level}{interval}; {blocks})."


def _tone(document: HistoryDocument, result: HistoryResult, change: HistoryChange) -> str:
    """Return the verdict whose colour a change has, with a ratio of values."""
    if change.ratio is None:
        return "slower"
    is_better = (change.ratio > 1.0) is (result.metric in document.more_is_better)
    return "faster" if is_better else "slower"


def _claim(document: HistoryDocument, result: HistoryResult, change: HistoryChange) -> Claim:
    estimate, ends = estimate_and_interval(change.ratio, change.ratio_ci)
    after, until = short_name(change.after), short_name(change.until)
    when = ", ".join(filter(None, (change.author, change.date[:10])))
    needed = change.threshold
    evidence = f"e-value {significant(change.e_value)}"
    evidence += "" if needed is None else f", where {significant(needed)} was needed"
    facts = [("Evidence", evidence), ("Blocks", str(change.blocks))]
    certainty = [f"{evidence}; {counted(change.blocks, 'block')}"]
    if change.confirmed:
        facts = [("Subject", change.subject), ("Author and date", when), *facts]
        certainty = [f"{change.subject} ({when})", *certainty]
    return Claim(
        badge="change" if change.confirmed else "range",
        tone=_tone(document, result, change),
        text=change.summary,
        subject=f"{metric_name(result.metric)} of {until} against {after}",
        estimate=estimate,
        interval=f"{percentage(1.0 - change.level)} interval {ends}",
        strip=strip_of(change.ratio, change.ratio_ci, result.metric, result.min_effect),
        remarks=tuple(_remarks(change)),
        certainty=tuple(certainty),
        facts=tuple(facts),
    )


def _remarks(change: HistoryChange) -> Iterator[str]:
    if change.not_built:
        names = ", ".join(map(short_name, change.not_built))
        yield f"Not built: {names}. Each of them may have made the change as well."
    if change.is_merge and change.confirmed:
        yield "It is a merge: the change may come from any commit of its branch."


def _changes(document: HistoryDocument, result: HistoryResult) -> Iterator[Part]:
    rows = headed(_change_row(one, _tone(document, result, one)) for one in result.changes)
    table = Table(*rows, label="Changes, the oldest first", max_rows=MAX_ROWS)
    below: list[Part] = [Bullets(tuple(_promises(result)), "dim")]
    ranges = [one for one in result.changes if one.confirm]
    for one in itertools.islice(ranges, ALIKE_SHOWN):
        after, until = short_name(one.after), short_name(one.until)
        below.append(
            Command(one.confirm or "", f"To find the commit after {after}, up to {until}:")
        )
    yield Section("Changes", (table, *below), forms=WRITTEN)
    # On a screen, few changes stand in the answer already.
    few = len(result.changes) <= MAX_DETAILED_CHANGES
    yield Section("" if few else "Changes", (*below,) if few else (table, *below), forms=VERBOSE)
    if len(result.changes) > 1:
        yield replace(_brief_changes(document, result), forms=BRIEF)
    if ranges:
        yield replace(below[1], forms=BRIEF)


def _brief_changes(document: HistoryDocument, result: HistoryResult) -> Table:
    """Build the table of the latest changes for a brief screen."""
    rows = [_change_row(one, _tone(document, result, one)) for one in result.changes]
    shown = [{name: row[name] for name in _BRIEF_COLUMNS} for row in rows[-_MAX_BRIEF_CHANGES:]]
    more = len(rows) - len(shown)
    notes = (f"{counted(more, 'earlier change')}: {option('verbose')}",) if more else ()
    return Table(*headed(shown), notes=notes)


def _change_row(one: HistoryChange, tone: str) -> Mapping[str, Cell]:
    estimate, interval = estimate_and_interval(one.ratio, one.ratio_ci, unknown=UNKNOWN)
    which = "confirmed"
    if not one.confirmed:
        which = f"one or more of {one.commits} commits after {short_name(one.after)}"
    elif one.not_built:
        which = f"confirmed, or one of {len(one.not_built)} before it"
    return {
        "commit": short_name(one.until) if one.confirmed else f"up to {short_name(one.until)}",
        "subject:name": one.subject if one.confirmed else "",
        "author": one.author if one.confirmed else "",
        "date": one.date[:10],
        "change:number": Styled(estimate, tone),
        "interval": interval,
        "e-value:number": significant(one.e_value),
        "blocks:number": str(one.blocks),
        "which": which,
    }


def _promises(result: HistoryResult) -> Iterator[str]:
    yield (
        f"Of all changes that such a history names, at most {percentage(result.alpha)} are false "
        "on average, however long it goes on. A change counts above "
        f"{result.min_effect:g} %; steps that cancel each other stay unseen."
    )
    yield "A change is confirmed where one commit ran side by side with its parent."


def _curve(result: HistoryResult) -> Iterator[Part]:
    """Build the commits over the baseline: the telling ones, and all of them on a page."""
    if len(result.revisions) < 2:
        return
    telling = _telling(result, MAX_ROWS)
    left_out = len(result.revisions) - len(telling)
    more = (f"{counted(left_out, 'commit')} between them left out.",) if left_out else ()
    notes = (*_curve_notes(result), *more)
    yield Section("Curve", (_screen_table(telling, result, notes),), forms=VERBOSE)
    brief = _telling(result, _MAX_BRIEF_ROWS)
    yield replace(_screen_table(brief, result, ()), forms=BRIEF)
    yield Section("Curve", (_table(telling, notes),), forms=TEXT)
    everything = _table(result.revisions, tuple(_curve_notes(result)))
    title = f"Every commit of the curve ({len(result.revisions)})"
    yield Section(title, (everything,), folded=True, forms=PAGE)


def _telling(result: HistoryResult, max_rows: int) -> tuple[HistoryRevision, ...]:
    """Return at most so many commits: first both sides of each change, then evenly."""
    revisions = result.revisions
    beside = {name for one in result.changes for name in (one.after, one.until)}
    last = len(revisions) - 1
    wanted = [place for place, one in enumerate(revisions) if one.commit in beside]
    steps = max(1, max_rows - 1)
    evenly = [round(step * last / steps) for step in range(steps + 1)]
    chosen = list(dict.fromkeys((0, last, *wanted, *evenly)))[:max_rows]
    return tuple(revisions[place] for place in sorted(chosen))


def _table(revisions: Sequence[HistoryRevision], notes: tuple[str, ...]) -> Table:
    return Table(*headed(map(_revision_row, revisions)), label=_LABEL, notes=notes)


def _revision_row(one: HistoryRevision) -> Mapping[str, Cell]:
    estimate, interval = estimate_and_interval(one.ratio, one.ratio_ci, unknown=UNKNOWN)
    status: Cell = ""
    if not one.place:
        estimate, interval, status = "", "", "baseline"
    elif one.ratio is None:
        interval, status = "", Styled(_STATUS[one.status], "dim")
    return {
        "commit": short_name(one.commit),
        "subject:name": one.subject,
        "author": one.author,
        "date": one.date[:10],
        "over the baseline:number": estimate,
        "interval": interval,
        "blocks:number": str(one.blocks) if one.place else "",
        "status": status,
    }


def _curve_notes(result: HistoryResult) -> Iterator[str]:
    yield (
        f"All these intervals hold together with {percentage(1.0 - result.alpha)}, on this host, "
        "as long as each ratio stays the same."
    )


def _screen_table(
    revisions: Sequence[HistoryRevision], result: HistoryResult, notes: tuple[str, ...]
) -> Table:
    """Build the terminal's table: each commit with a picture of its interval."""
    margin = 1.0 + result.min_effect / 100.0
    drawn = extent([(one.ratio, one.ratio_ci) for one in revisions])
    ends = [1.0 / margin, margin, *filter(None, drawn)]
    low, high = math.log(min(ends)), math.log(max(ends))

    def place(ratio: float) -> int:
        share = (math.log(ratio) - low) / (high - low)
        return round((_WIDTH - 1) * min(max(share, 0.0), 1.0))

    def picture(one: HistoryRevision) -> str:
        letters = [" "] * _WIDTH
        if one.ratio and one.place:
            first, last = one.ratio_ci
            begin, end = place(first) if first else 0, place(last) if last else _WIDTH - 1
            letters[begin : end + 1] = _BAR * (end + 1 - begin)
            if not first or math.log(first) < low:
                letters[0] = _BEYOND[0]
            if not last or math.log(last) > high:
                letters[-1] = _BEYOND[1]
        letters[place(1.0)] = _ZERO
        if one.ratio:
            letters[place(one.ratio)] = _MARK
        return "".join(letters)

    heading = " to ".join(in_one_unit(math.exp(low), math.exp(high)))
    columns = (Column("commit"), Column("subject", "name"), Column(heading), Column("change"))
    rows: list[Row] = []
    for one in revisions:
        commit, subject, *_, estimate, interval, _, status = _revision_row(one).values()
        known = f"{text_of(estimate):<8}  {text_of(interval)}" if interval else status
        rows.append((commit, subject, picture(one), known))
    return Table(columns, tuple(rows), label=_LABEL, notes=notes)


def _campaigns(result: HistoryResult) -> Iterator[Part]:
    eras = (
        f"Era {one.era} began {minute_of(one.started)}: {'; '.join(one.differences)}. Commits are "
        "compared within an era only."
        for one in result.eras
        if one.differences
    )
    yield Table(
        *headed(map(_campaign_row, result.campaigns)),
        label="Campaigns of this history, the oldest first",
        notes=tuple(eras),
    )


def _campaign_row(one: HistoryCampaign) -> Mapping[str, Cell]:
    return {
        "run": one.run,
        "started": minute_of(one.started),
        "blocks:number": str(one.blocks),
        "trials:number": str(one.trials),
        "commits built:number": str(one.builds),
        "time:number": waiting_time(one.seconds),
        "stopped by": one.stopped_because or "it did not end",
        "era:number": str(one.era),
    }


def _facts(result: HistoryResult) -> Iterator[tuple[str, str]]:
    nights = counted(len(result.campaigns), "campaign")
    cost = f"{result.trials} trials of {counted(result.builds, 'build')}"
    yield "Cost", f"{cost} in {waiting_time(result.seconds)}, over {nights}"
    rest = "nothing, until there are new commits"
    if result.blocks_to_go:
        rest = f"about {counted(result.blocks_to_go, 'more block')}"
    yield "Left to ask", rest


CAVEAT = (
    "These values were not measured side by side: a suspicion may be a change of the machine, of "
    "its load or of the compiler. Its line measures both commits in random order."
)
_MAX_LINES = 5
"""Number of suspicions whose lines a terminal shows; every other form has all."""
_MAX_FIGURES = 12
"""Number of series that are drawn: those with suspicions first."""
_SECONDS = {
    **dict.fromkeys(("s", "seconds"), 1.0),
    **dict.fromkeys(("ns", "nanoseconds", "nanoseconds (ns)"), 1e-9),
}
_BYTES = frozenset({"B", "bytes"})


def series_document(result: SeriesResult) -> Document:
    """Build the document of imported series alone."""
    sources = ", ".join(dict.fromkeys(f"{one.tool}: {one.source}" for one in result.series))
    return Document(
        name="series",
        title="Imported series",
        parts=(
            Answer(result.summary, lines=(CAVEAT,)),
            *series_parts(result.series),
            Section("Do it again", (Command(result.again, "Again:"),), forms=WRITTEN),
        ),
        numbers=tuple(series_numbers(result.series)),
        origin=Origin(f"Where may the level have changed? From {sources}", result.again),
    )


def series_parts(series: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the suspicions with their lines, the figures, and a table; nothing without series."""
    if not series:
        return
    suspected = [one for one in series if one.suspicions]
    if suspected:
        rows = (
            {
                "benchmark:name": one.benchmark,
                "change:number": percent_change(suspicion.ratio),
                "level before:number": _with_unit(suspicion.before, one.unit),
                "about at": shown_commit(one.points[suspicion.place].commit),
                "after": shown_commit(suspicion.after),
                "until": shown_commit(suspicion.until),
            }
            for one in suspected
            for suspicion in one.suspicions
        )
        table = Table(*headed(rows), label="Suspicions", max_rows=MAX_ROWS)
        yield Section("Suspicions, not measured side by side", (table, *_lines(suspected)))
    yield Figures(lambda: _figures(series[:_MAX_FIGURES]), title="Imported series")
    every = (
        {
            "benchmark:name": one.benchmark,
            "metric": f"{one.metric} ({one.unit})" if one.unit else one.metric,
            "measured where:words": one.setting,
            "commits:number": str(len(one.points)),
            "from": shown_commit(one.points[0].commit),
            "to": shown_commit(one.points[-1].commit),
            "suspicions:number": str(len(one.suspicions)),
        }
        for one in series
    )
    yield Table(*headed(every), title="Imported series", max_rows=MAX_ROWS)
    notes = tuple(dict.fromkeys(note for one in series for note in one.notes))
    if notes:
        yield Bullets(notes)


def series_numbers(series: Iterable[ImportedSeries]) -> Iterator[NumberRow]:
    """Yield a row for each value of each series; ``suspicion`` is the ratio at its place."""
    for one in series:
        ratios = {suspicion.place: suspicion.ratio for suspicion in one.suspicions}
        for place, at in enumerate(one.points):
            yield {
                **fields_of(one, "benchmark", "setting", "metric", "unit"),
                **fields_of(at, "commit", "date", "value"),
                "suspicion": ratios.get(place),
            }


def _lines(suspected: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the line of each suspicion; a terminal shows the first ones."""
    lines = [
        Command(suspicion.confirm or "", f"To confirm {suspicion.summary.removesuffix('.')}:")
        for one in suspected
        for suspicion in one.suspicions
    ]
    yield from lines[:_MAX_LINES]
    rest = lines[_MAX_LINES:]
    if rest:
        yield Paragraph(
            f"{len(rest)} more lines are in {option('json')} and {option('report')}.", "dim"
        )
        yield Section("More lines", tuple(rest), folded=True, forms=PAGE)


def _figures(series: Sequence[ImportedSeries]) -> Iterator[Figure]:
    from equipoise.figures.gallery import Figure
    from equipoise.kinds.history import figures as chart

    for one in series:
        yield Figure("series", chart.HOW_TO_READ_SERIES, chart.series(one))


def _with_unit(value: float, unit: str | None) -> str:
    """Return a level with its unit: times and bytes in one that fits."""
    if unit in _SECONDS:
        return duration(value * _SECONDS[unit])
    if unit in _BYTES:
        return byte_count(value)
    return significant(value) if unit is None else f"{significant(value)} {unit}"


def _impossible(one: HistoryResult) -> Iterator[str]:
    if not (0.0 < one.alpha < 1.0 and 0.0 < one.min_effect <= MAX_MIN_EFFECT):
        yield "a history has no alpha between 0 and 1, or no smallest effect"
    places = [revision.place for revision in one.revisions]
    if places and (places[0] != 0 or places != sorted(set(places))):
        yield "the commits of a history do not begin with the baseline, or are not in order"
    points = (revision for revision in one.revisions if revision.level is not None)
    parts: list[HistoryChange | HistoryPair | HistoryRevision]
    parts = [*one.changes, *one.pairs, *points]
    if not all(map(is_step, parts)):
        yield "a commit, a pair or a change of a history has no ratio with an interval"
    if any(change.commits < 1 or change.blocks < 0 for change in one.changes):
        yield "a change of a history has no commit, or fewer than no blocks"
    for series in one.series:
        values = [point.value for point in series.points]
        if not all(map(math.isfinite, values)):
            yield "a series has a value that is not finite"
        if any(not 0 <= suspicion.place < len(values) for suspicion in series.suspicions):
            yield "a suspicion is at no value of its series"
