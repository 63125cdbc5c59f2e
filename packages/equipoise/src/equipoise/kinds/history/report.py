"""The report of a history: its changes, its curve, its campaigns, and the line that resumes it.

It also has the report of imported series: values of another tool for each commit, and suspicions.
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
    BRIEF,
    MAX_ALIKE,
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
    columns_and_rows,
    fields_of,
    ratio_numbers,
    text_of,
    whole_and_brief,
)
from equipoise.report.json_document import MAX_MIN_EFFECT, is_possible_ratio
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
"""Number of changes with a claim each; more do not fit on the first screen of a phone."""
MAX_ROWS = 20
"""Number of rows in a terminal, and number of commits of the curve in a text."""
_MAX_BRIEF_ROWS, _MAX_BRIEF_CHANGES = 7, 4
"""Number of commits of the curve, and of changes, in a terminal without ``--verbose``."""
_BRIEF_COLUMNS = ("commit", "subject:name", "author", "date", "change:number", "interval")
_PICTURE_WIDTH = 27
"""Width of the picture of an interval, in letters."""
_BAR, _MARK, _ZERO = "─", "●", "│"
_BEYOND = "<>"
"""Ends of an interval that is longer than the picture."""
_LABEL = "Commits over the baseline, the oldest first"
_STATUS = {
    "measured": "never ran with the baseline",
    "waiting": "not measured yet",
    "not built": "not built",
}


class HistoryReport(ReportKind):
    """The report of a history."""

    scope = "commits side by side, on this host"
    first_figures = frozenset({"curve"})
    repetition_purpose = "To add new commits:"

    def question(self, document: HistoryDocument) -> str:
        """Return the question of a history."""
        metric = metric_name(document.primary_metric)
        return f"What changed the {metric} since {document.history.baseline.asked}?"

    def document(self, report: CampaignReport) -> Document:
        """Build the document of a history."""
        document = report.document
        assert isinstance(document, HistoryDocument)
        result = document.history
        curve_answer = answer(document, result)
        curve, _ = campaign_figures(report)
        all_parts: tuple[Part, ...] = (
            *whole_and_brief(curve_answer, _brief_answer(curve_answer)),
            replace(curve, forms=WITH_PICTURES),
            *parts(document, result),
            *series_parts(result.series),
            *how_it_ran(report),
        )
        # The earlier campaigns are in the parts already.
        report = replace(report, earlier=())
        return whole_document(report, curve_answer, all_parts, numbers(document, result))

    def contradictions(self, document: HistoryDocument) -> Iterator[str]:
        """Yield the values of a document that no history can have computed."""
        return _impossible(document.history)


def answer(document: HistoryDocument, result: HistoryResult) -> Answer:
    """Build the answer: the changes, and the ratio of the latest commit."""
    result = history_of_values(result, document.more_is_better)
    claims = tuple(_claim(document, result, change) for change in result.changes)
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
        claims = tuple(replace(claim, certainty=()) for claim in answer.claims)
        return replace(answer, claims=claims)
    return replace(answer, claims=())


def parts(document: HistoryDocument, result: HistoryResult) -> Iterator[Part]:
    """Build the parts below the answer: changes, curve, campaigns, and lines to go on."""
    result = history_of_values(result, document.more_is_better)
    if result.changes:
        yield from _changes(document, result)
    yield from _curve(result)
    yield Section("Campaigns of this history", tuple(_campaigns(result)), forms=WRITTEN)
    facts = tuple(_facts(result))
    yield Facts(facts, forms=VERBOSE)
    yield Section("Cost", (Facts(facts),), forms=WRITTEN)
    if result.blocks_to_go:
        # A resumed campaign gets its budget again.
        yield Command(shell_line(["equipoise", "resume", document.run.id]), "To go on from here:")
    yield Command(document.run.command_line or "", "To add new commits:", forms=VERBOSE)


def numbers(document: HistoryDocument, result: HistoryResult) -> Iterator[NumberRow]:
    """Yield a row for each commit of the curve, and for each end of a change."""
    changes = {change.until: change for change in result.changes}
    revisions = {revision.commit: revision for revision in result.revisions}
    for name in dict.fromkeys((*revisions, *changes)):
        revision, change = revisions.get(name), changes.get(name)
        change_numbers = ratio_numbers(change)
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
            "change_ratio": change_numbers["ratio"],
            "change_low": change_numbers["ratio_low"],
            "change_high": change_numbers["ratio_high"],
            "change_e_value": None if change is None else change.e_value,
        }


def _latest(result: HistoryResult) -> Iterator[str]:
    """Yield the sentence with the ratio of the latest measured commit."""
    measured = [revision for revision in result.revisions[1:] if revision.ratio is not None]
    if not measured:
        return
    last = measured[-1]
    estimate, interval = estimate_and_interval(last.ratio, last.ratio_ci)
    name = result.latest.label if last.commit == result.latest.commit else short_name(last.commit)
    level = "" if last.level is None else f"{percentage(1.0 - last.level)} interval "
    blocks = counted(last.blocks, "block")
    yield f"{name} against {result.baseline.label}: {estimate} ({level}{interval}; {blocks})."


def _tone(document: HistoryDocument, result: HistoryResult, change: HistoryChange) -> str:
    """Return the verdict that gives a change its colour; its ratio is of values."""
    if change.ratio is None:
        return "slower"
    is_better = (change.ratio > 1.0) is (result.metric in document.more_is_better)
    return "faster" if is_better else "slower"


def _claim(document: HistoryDocument, result: HistoryResult, change: HistoryChange) -> Claim:
    estimate, ends = estimate_and_interval(change.ratio, change.ratio_ci)
    after, until = short_name(change.after), short_name(change.until)
    author_and_date = ", ".join(filter(None, (change.author, change.date[:10])))
    threshold = change.threshold
    evidence = f"e-value {significant(change.e_value)}"
    evidence += "" if threshold is None else f", where {significant(threshold)} was needed"
    facts = [("Evidence", evidence), ("Blocks", str(change.blocks))]
    certainty = [f"{evidence}; {counted(change.blocks, 'block')}"]
    if change.confirmed:
        facts = [("Subject", change.subject), ("Author and date", author_and_date), *facts]
        certainty = [f"{change.subject} ({author_and_date})", *certainty]
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
        yield f"Not built: {names}. Any of them may have made the change instead."
    if change.is_merge and change.confirmed:
        yield "It is a merge: the change may come from any commit of its branch."


def _changes(document: HistoryDocument, result: HistoryResult) -> Iterator[Part]:
    rows = columns_and_rows(
        _change_row(change, _tone(document, result, change)) for change in result.changes
    )
    table = Table(*rows, label="Changes, the oldest first", max_rows=MAX_ROWS)
    below: list[Part] = [Bullets(tuple(_notes(result)), "dim")]
    ranges = [change for change in result.changes if change.confirm]
    for change in itertools.islice(ranges, MAX_ALIKE):
        after, until = short_name(change.after), short_name(change.until)
        below.append(
            Command(change.confirm or "", f"To find the commit after {after}, up to {until}:")
        )
    yield Section("Changes", (table, *below), forms=WRITTEN)
    # On a screen, the answer already has the changes if they are few.
    are_few = len(result.changes) <= MAX_DETAILED_CHANGES
    yield Section(
        "" if are_few else "Changes", (*below,) if are_few else (table, *below), forms=VERBOSE
    )
    if len(result.changes) > 1:
        yield replace(_brief_changes(document, result), forms=BRIEF)
    if ranges:
        yield replace(below[1], forms=BRIEF)


def _brief_changes(document: HistoryDocument, result: HistoryResult) -> Table:
    """Build the table of the latest changes for a brief screen."""
    rows = [_change_row(change, _tone(document, result, change)) for change in result.changes]
    latest = [{name: row[name] for name in _BRIEF_COLUMNS} for row in rows[-_MAX_BRIEF_CHANGES:]]
    earlier = len(rows) - len(latest)
    notes = (f"{counted(earlier, 'earlier change')}: {option('verbose')}",) if earlier else ()
    return Table(*columns_and_rows(latest), notes=notes)


def _change_row(change: HistoryChange, tone: str) -> Mapping[str, Cell]:
    estimate, interval = estimate_and_interval(change.ratio, change.ratio_ci, unknown=UNKNOWN)
    which = "confirmed"
    if not change.confirmed:
        which = f"one or more of {change.commits} commits after {short_name(change.after)}"
    elif change.not_built:
        which = f"confirmed, or one of {len(change.not_built)} before it"
    return {
        "commit": short_name(change.until)
        if change.confirmed
        else f"up to {short_name(change.until)}",
        "subject:name": change.subject if change.confirmed else "",
        "author": change.author if change.confirmed else "",
        "date": change.date[:10],
        "change:number": Styled(estimate, tone),
        "interval": interval,
        "e-value:number": significant(change.e_value),
        "blocks:number": str(change.blocks),
        "which": which,
    }


def _notes(result: HistoryResult) -> Iterator[str]:
    yield (
        f"At most {percentage(result.alpha)} of the changes that such histories name are false on "
        "average, however long they go on. A change counts above "
        f"{result.min_effect:g} %; steps that cancel each other are not seen."
    )
    yield "A change is confirmed if one commit ran side by side with its parent."


def _curve(result: HistoryResult) -> Iterator[Part]:
    """Build the commits over the baseline: a selection, and all of them on a page."""
    if len(result.revisions) < 2:
        return
    selection = _selection(result, MAX_ROWS)
    left_out = len(result.revisions) - len(selection)
    more = (f"{counted(left_out, 'commit')} between them left out.",) if left_out else ()
    notes = (*_curve_notes(result), *more)
    yield Section("Curve", (_screen_table(selection, result, notes),), forms=VERBOSE)
    brief = _selection(result, _MAX_BRIEF_ROWS)
    yield replace(_screen_table(brief, result, ()), forms=BRIEF)
    yield Section("Curve", (_table(selection, notes),), forms=TEXT)
    everything = _table(result.revisions, tuple(_curve_notes(result)))
    title = f"Every commit of the curve ({len(result.revisions)})"
    yield Section(title, (everything,), folded=True, forms=PAGE)


def _selection(result: HistoryResult, max_rows: int) -> tuple[HistoryRevision, ...]:
    """Return at most ``max_rows`` commits: both ends of each change, and others at even steps."""
    revisions = result.revisions
    ends_of_changes = {name for change in result.changes for name in (change.after, change.until)}
    last = len(revisions) - 1
    places_of_changes = [
        place for place, revision in enumerate(revisions) if revision.commit in ends_of_changes
    ]
    steps = max(1, max_rows - 1)
    even_places = [round(step * last / steps) for step in range(steps + 1)]
    places = list(dict.fromkeys((0, last, *places_of_changes, *even_places)))[:max_rows]
    return tuple(revisions[place] for place in sorted(places))


def _table(revisions: Sequence[HistoryRevision], notes: tuple[str, ...]) -> Table:
    return Table(*columns_and_rows(map(_revision_row, revisions)), label=_LABEL, notes=notes)


def _revision_row(revision: HistoryRevision) -> Mapping[str, Cell]:
    estimate, interval = estimate_and_interval(revision.ratio, revision.ratio_ci, unknown=UNKNOWN)
    status: Cell = ""
    if not revision.place:
        estimate, interval, status = "", "", "baseline"
    elif revision.ratio is None:
        interval, status = "", Styled(_STATUS[revision.status], "dim")
    return {
        "commit": short_name(revision.commit),
        "subject:name": revision.subject,
        "author": revision.author,
        "date": revision.date[:10],
        "over the baseline:number": estimate,
        "interval": interval,
        "blocks:number": str(revision.blocks) if revision.place else "",
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
    extremes = extent([(revision.ratio, revision.ratio_ci) for revision in revisions])
    ends = [1.0 / margin, margin, *filter(None, extremes)]
    low, high = math.log(min(ends)), math.log(max(ends))

    def place(ratio: float) -> int:
        share = (math.log(ratio) - low) / (high - low)
        return round((_PICTURE_WIDTH - 1) * min(max(share, 0.0), 1.0))

    def picture(revision: HistoryRevision) -> str:
        letters = [" "] * _PICTURE_WIDTH
        if revision.ratio and revision.place:
            first, last = revision.ratio_ci
            begin, end = place(first) if first else 0, place(last) if last else _PICTURE_WIDTH - 1
            letters[begin : end + 1] = _BAR * (end + 1 - begin)
            if not first or math.log(first) < low:
                letters[0] = _BEYOND[0]
            if not last or math.log(last) > high:
                letters[-1] = _BEYOND[1]
        letters[place(1.0)] = _ZERO
        if revision.ratio:
            letters[place(revision.ratio)] = _MARK
        return "".join(letters)

    heading = " to ".join(in_one_unit(math.exp(low), math.exp(high)))
    columns = (Column("commit"), Column("subject", "name"), Column(heading), Column("change"))
    rows: list[Row] = []
    for revision in revisions:
        commit, subject, *_, estimate, interval, _, status = _revision_row(revision).values()
        description = f"{text_of(estimate):<8}  {text_of(interval)}" if interval else status
        rows.append((commit, subject, picture(revision), description))
    return Table(columns, tuple(rows), label=_LABEL, notes=notes)


def _campaigns(result: HistoryResult) -> Iterator[Part]:
    eras = (
        f"Era {era.era} began {minute_of(era.started)}: {'; '.join(era.differences)}. Commits are "
        "compared within an era only."
        for era in result.eras
        if era.differences
    )
    yield Table(
        *columns_and_rows(map(_campaign_row, result.campaigns)),
        label="Campaigns of this history, the oldest first",
        notes=tuple(eras),
    )


def _campaign_row(campaign: HistoryCampaign) -> Mapping[str, Cell]:
    return {
        "run": campaign.run,
        "started": minute_of(campaign.started),
        "blocks:number": str(campaign.blocks),
        "trials:number": str(campaign.trials),
        "commits built:number": str(campaign.builds),
        "time:number": waiting_time(campaign.seconds),
        "stopped by": campaign.stopped_because or "it did not end",
        "era:number": str(campaign.era),
    }


def _facts(result: HistoryResult) -> Iterator[tuple[str, str]]:
    campaigns = counted(len(result.campaigns), "campaign")
    cost = f"{result.trials} trials of {counted(result.builds, 'build')}"
    yield "Cost", f"{cost} in {waiting_time(result.seconds)}, over {campaigns}"
    remaining = "nothing, until there are new commits"
    if result.blocks_to_go:
        remaining = f"about {counted(result.blocks_to_go, 'more block')}"
    yield "Left to measure", remaining


CAVEAT = (
    "These values were not measured side by side, so a suspicion may be a change of the machine, "
    "of its load or of the compiler. Its line measures both commits in random order."
)
_MAX_LINES = 5
"""Number of suspicions whose lines a terminal shows; every other form has all."""
_MAX_FIGURES = 12
"""Number of series that are drawn; series with suspicions come first."""
_SECONDS = {
    **dict.fromkeys(("s", "seconds"), 1.0),
    **dict.fromkeys(("ns", "nanoseconds", "nanoseconds (ns)"), 1e-9),
}
_BYTES = frozenset({"B", "bytes"})


def series_document(result: SeriesResult) -> Document:
    """Build the document of imported series alone."""
    sources = ", ".join(dict.fromkeys(f"{each.tool}: {each.source}" for each in result.series))
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
    """Build the suspicions with their lines, the figures and a table; nothing without series."""
    if not series:
        return
    with_suspicions = [each for each in series if each.suspicions]
    if with_suspicions:
        rows = (
            {
                "benchmark:name": each.benchmark,
                "change:number": percent_change(suspicion.ratio),
                "level before:number": _with_unit(suspicion.before, each.unit),
                "about at": shown_commit(each.points[suspicion.place].commit),
                "after": shown_commit(suspicion.after),
                "until": shown_commit(suspicion.until),
            }
            for each in with_suspicions
            for suspicion in each.suspicions
        )
        table = Table(*columns_and_rows(rows), label="Suspicions", max_rows=MAX_ROWS)
        yield Section("Suspicions, not measured side by side", (table, *_lines(with_suspicions)))
    yield Figures(lambda: _figures(series[:_MAX_FIGURES]), title="Imported series")
    rows_of_series = (
        {
            "benchmark:name": each.benchmark,
            "metric": f"{each.metric} ({each.unit})" if each.unit else each.metric,
            "measured where:words": each.setting,
            "commits:number": str(len(each.points)),
            "from": shown_commit(each.points[0].commit),
            "to": shown_commit(each.points[-1].commit),
            "suspicions:number": str(len(each.suspicions)),
        }
        for each in series
    )
    yield Table(*columns_and_rows(rows_of_series), title="Imported series", max_rows=MAX_ROWS)
    notes = tuple(dict.fromkeys(note for each in series for note in each.notes))
    if notes:
        yield Bullets(notes)


def series_numbers(series: Iterable[ImportedSeries]) -> Iterator[NumberRow]:
    """Yield a row for each value of each series; ``suspicion`` is the ratio at its place."""
    for each in series:
        ratios = {suspicion.place: suspicion.ratio for suspicion in each.suspicions}
        for place, at in enumerate(each.points):
            yield {
                **fields_of(each, "benchmark", "setting", "metric", "unit"),
                **fields_of(at, "commit", "date", "value"),
                "suspicion": ratios.get(place),
            }


def _lines(with_suspicions: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the confirming line of each suspicion; a terminal shows the first ones."""
    lines = [
        Command(suspicion.confirm or "", f"To confirm {suspicion.summary.removesuffix('.')}:")
        for each in with_suspicions
        for suspicion in each.suspicions
    ]
    yield from lines[:_MAX_LINES]
    other_lines = lines[_MAX_LINES:]
    if other_lines:
        yield Paragraph(
            f"{len(other_lines)} more lines are in {option('json')} and {option('report')}.", "dim"
        )
        yield Section("More lines", tuple(other_lines), folded=True, forms=PAGE)


def _figures(series: Sequence[ImportedSeries]) -> Iterator[Figure]:
    from equipoise.figures.gallery import Figure
    from equipoise.kinds.history import figures as chart

    for each in series:
        yield Figure("series", chart.HOW_TO_READ_SERIES, chart.series(each))


def _with_unit(value: float, unit: str | None) -> str:
    """Return a level with its unit; times and bytes get a unit that fits."""
    if unit in _SECONDS:
        return duration(value * _SECONDS[unit])
    if unit in _BYTES:
        return byte_count(value)
    return significant(value) if unit is None else f"{significant(value)} {unit}"


def _impossible(result: HistoryResult) -> Iterator[str]:
    if not (0.0 < result.alpha < 1.0 and 0.0 < result.min_effect <= MAX_MIN_EFFECT):
        yield "a history has no alpha between 0 and 1, or no smallest effect"
    places = [revision.place for revision in result.revisions]
    if places and (places[0] != 0 or places != sorted(set(places))):
        yield "the commits of a history do not begin with the baseline, or are not in order"
    points = (revision for revision in result.revisions if revision.level is not None)
    parts: list[HistoryChange | HistoryPair | HistoryRevision]
    parts = [*result.changes, *result.pairs, *points]
    if not all(map(is_possible_ratio, parts)):
        yield "a commit, a pair or a change of a history has no ratio with an interval"
    if any(change.commits < 1 or change.blocks < 0 for change in result.changes):
        yield "a change of a history has no commit, or a negative number of blocks"
    for series in result.series:
        values = [point.value for point in series.points]
        if not all(map(math.isfinite, values)):
            yield "a series has a value that is not finite"
        if any(not 0 <= suspicion.place < len(values) for suspicion in series.suspicions):
            yield "a suspicion is at no value of its series"
