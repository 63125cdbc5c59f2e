"""Build the report of a history: its changes, its curve, and its campaigns.

This module also reports imported series: values that another tool measured, and suspicions. A
suspicion is a possible change of values that were not measured side by side. In a heading such as
``blocks:number``, ``number`` is the kind of the column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.quantity import metric_name, values_on_axis
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
from equipoise.report.builders.origin import minute_of
from equipoise.report.builders.result import (
    ReportInput,
    campaign_figures,
    how_it_ran,
    whole_document,
)
from equipoise.report.builders.statements import failures_of, strip_of, with_failures
from equipoise.report.document import (
    BRIEF_TERMINAL,
    MAX_SIMILAR_LINES,
    NOT_TERMINAL,
    PAGE,
    PAGE_AND_TEXT,
    TEXT_AND_NOTEBOOK,
    UNKNOWN,
    VERBOSE_TERMINAL,
    Answer,
    Bullets,
    Cell,
    Column,
    Command,
    CsvRow,
    Document,
    Facts,
    Figures,
    Origin,
    Paragraph,
    Part,
    Row,
    Section,
    Statement,
    StyledText,
    Table,
    columns_and_rows,
    field_cells,
    full_and_brief,
    ratio_cells,
    text_of,
)
from equipoise.report.json_document import MAX_MIN_EFFECT, is_possible_ratio
from equipoise.report.kind import KindReport
from equipoise.report.news import Change
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
"""Maximum number of changes for which the answer has statements."""
MAX_ROWS = 20
"""Maximum number of rows in a terminal, and of commits in a text."""
_MAX_BRIEF_COMMITS, _MAX_BRIEF_CHANGES = 7, 4
"""Maximum number of commits and of changes in a terminal without ``--verbose``."""
_BRIEF_COLUMNS = ("commit", "subject:name", "author", "date", "change:number", "interval")
_PICTURE_WIDTH = 27
"""Width of the picture of an interval, in letters."""
_BAR, _ESTIMATE_MARK, _BASELINE_MARK = "─", "●", "│"
"""Letters of the picture of an interval."""
_LEFT_ARROW, _RIGHT_ARROW = "<>"
"""Letters at the ends of an interval that is longer than the picture."""
_CURVE_LABEL = "Commits over the baseline, the oldest first"
_STATUS_TEXTS = {
    "measured": "never ran with the baseline",
    "waiting": "not measured yet",
    "not built": "not built",
}
"""Text for a commit without a ratio, by its status."""


class HistoryReport(KindReport):
    """The report of a history."""

    scope = "commits side by side, on this host"
    top_figures = frozenset({"curve"})
    repetition_purpose = "To add new commits:"

    def question(self, document: HistoryDocument) -> str:
        """Return the question of a history."""
        metric = metric_name(document.primary_metric)
        return f"What changed the {metric} since {document.history.baseline.typed_name}?"

    def document(self, report: ReportInput) -> Document:
        """Build the document of a history."""
        document = report.result
        assert isinstance(document, HistoryDocument)
        result = document.history
        curve_answer = build_answer(document, result)
        curve, _ = campaign_figures(report)
        all_parts: tuple[Part, ...] = (
            *full_and_brief(curve_answer, _brief_answer(curve_answer)),
            replace(curve, forms=PAGE_AND_TEXT),
            *parts_below_answer(document, result),
            *series_parts(result.imported_series),
            *how_it_ran(report),
        )
        # `parts_below_answer` already shows the earlier campaigns.
        report = replace(report, other_campaigns=())
        return whole_document(report, curve_answer, all_parts, number_rows(document, result))

    def series(self, document: HistoryDocument) -> str | None:
        """Return the id of the first campaign of the history."""
        return next((campaign.run for campaign in document.history.campaigns), None)

    def changes(self, document: HistoryDocument) -> Iterator[Change]:
        """Yield the confirmed changes."""
        result = history_of_values(document.history, document.more_is_better)
        for change in result.changes:
            if change.confirmed:
                tone = _color_verdict(document, result, change)
                key = f"{self.series(document)} {change.later_hash}"
                yield Change(key, change.summary, tone)

    def contradictions(self, document: HistoryDocument) -> Iterator[str]:
        """Yield sentences about impossible values in a document from a file."""
        return _contradictions(document.history)


def build_answer(document: HistoryDocument, result: HistoryResult) -> Answer:
    """Build the answer: the changes, and the ratio of the latest commit."""
    result = history_of_values(result, document.more_is_better)
    statements = tuple(_change_statement(document, result, change) for change in result.changes)
    title, lines = result.summary, tuple(_sentence_on_latest(result))
    if len(statements) > MAX_DETAILED_CHANGES:
        lines = (f"The latest change: {statements[-1].text}", *lines)
        statements = ()
    elif len(statements) == 1 and not failures_of(document):
        # The statement is the answer itself.
        statements = (replace(statements[0], text=title, remarks=(*lines, *statements[0].remarks)),)
        title, lines = "", ()
    return with_failures(
        document, Answer(title=title, lines=lines, statements=statements), "The campaign"
    )


def _brief_answer(full_answer: Answer) -> Answer:
    """Return the answer without statements, because a table on a brief terminal has the changes."""
    if not full_answer.title:
        # With only one change, the statement is the answer.
        statements = tuple(
            replace(statement, certainty_lines=()) for statement in full_answer.statements
        )
        return replace(full_answer, statements=statements)
    return replace(full_answer, statements=())


def parts_below_answer(document: HistoryDocument, result: HistoryResult) -> Iterator[Part]:
    """Build the parts below the answer: changes, curve, campaigns, and commands to continue."""
    result = history_of_values(result, document.more_is_better)
    if result.changes:
        yield from _change_parts(document, result)
    yield from _curve_parts(result)
    yield Section("Campaigns of this history", tuple(_campaign_table(result)), forms=NOT_TERMINAL)
    facts = tuple(_cost_facts(result))
    yield Facts(facts, forms=VERBOSE_TERMINAL)
    yield Section("Cost", (Facts(facts),), forms=NOT_TERMINAL)
    if result.blocks_to_go:
        # A resumed campaign has the whole budget again.
        yield Command(shell_line(["equipoise", "resume", document.run.id]), "To go on from here:")
    yield Command(document.run.command_line or "", "To add new commits:", forms=VERBOSE_TERMINAL)


def number_rows(document: HistoryDocument, result: HistoryResult) -> Iterator[CsvRow]:
    """Yield a row of numbers for each commit of the curve, and each commit with a change."""
    changes = {change.later_hash: change for change in result.changes}
    revisions = {revision.commit: revision for revision in result.revisions}
    for commit in dict.fromkeys((*revisions, *changes)):
        revision, change = revisions.get(commit), changes.get(commit)
        change_numbers = ratio_cells(change)
        yield {
            "run": document.run.id,
            "study": document.run.study,
            "commit": commit,
            **field_cells(revision or change, "subject", "author", "date"),
            "metric": result.metric,
            **field_cells(revision, "status"),
            **ratio_cells(revision),
            **field_cells(revision, "blocks", "era"),
            "change_after": None if change is None else change.earlier_hash,
            "change_confirmed": None if change is None else str(change.confirmed).lower(),
            "change_ratio": change_numbers["ratio"],
            "change_low": change_numbers["ratio_low"],
            "change_high": change_numbers["ratio_high"],
            "change_e_value": None if change is None else change.e_value,
        }


def _sentence_on_latest(result: HistoryResult) -> Iterator[str]:
    measured = [revision for revision in result.revisions[1:] if revision.ratio is not None]
    if not measured:
        return
    latest = measured[-1]
    estimate, interval = estimate_and_interval(latest.ratio, latest.ratio_ci)
    is_last = latest.commit == result.latest.commit
    name = result.latest.label if is_last else short_name(latest.commit)
    coverage = (
        ""
        if latest.significance_level is None
        else f"{percentage(1.0 - latest.significance_level)} interval "
    )
    blocks = counted(latest.blocks, "block")
    yield f"{name} against {result.baseline.label}: {estimate} ({coverage}{interval}; {blocks})."


def _color_verdict(
    document: HistoryDocument, result: HistoryResult, change: HistoryChange
) -> Literal["slower", "faster"]:
    """Return the verdict that gives a change its colour; ``change`` has a ratio of values."""
    if change.ratio is None:
        return "slower"
    is_better = (change.ratio > 1.0) is (result.metric in document.more_is_better)
    return "faster" if is_better else "slower"


def _change_statement(
    document: HistoryDocument, result: HistoryResult, change: HistoryChange
) -> Statement:
    estimate, interval_text = estimate_and_interval(change.ratio, change.ratio_ci)
    earlier_commit, later_commit = short_name(change.earlier_hash), short_name(change.later_hash)
    author_and_date = ", ".join(filter(None, (change.author, change.date[:10])))
    threshold = change.threshold
    evidence = f"e-value {significant(change.e_value)}"
    evidence += "" if threshold is None else f", where {significant(threshold)} was needed"
    facts = [("Evidence", evidence), ("Blocks", str(change.blocks))]
    certainty = [f"{evidence}; {counted(change.blocks, 'block')}"]
    if change.confirmed:
        facts = [("Subject", change.subject), ("Author and date", author_and_date), *facts]
        certainty = [f"{change.subject} ({author_and_date})", *certainty]
    return Statement(
        badge="change" if change.confirmed else "range",
        color_verdict=_color_verdict(document, result, change),
        text=change.summary,
        subject=f"{metric_name(result.metric)} of {later_commit} against {earlier_commit}",
        estimate=estimate,
        interval=f"{percentage(1.0 - change.significance_level)} interval {interval_text}",
        strip=strip_of(change.ratio, change.ratio_ci, result.metric, result.min_effect),
        remarks=tuple(_change_remarks(change)),
        certainty_lines=tuple(certainty),
        certainty_facts=tuple(facts),
    )


def _change_remarks(change: HistoryChange) -> Iterator[str]:
    if change.not_built:
        names = ", ".join(map(short_name, change.not_built))
        yield f"Not built: {names}. Any of them may have made the change instead."
    if change.is_merge and change.confirmed:
        yield "It is a merge: the change may come from any commit of its branch."


def _change_parts(document: HistoryDocument, result: HistoryResult) -> Iterator[Part]:
    table_content = columns_and_rows(
        _change_row(change, _color_verdict(document, result, change)) for change in result.changes
    )
    table = Table(*table_content, label="Changes, the oldest first", max_rows=MAX_ROWS)
    notes = Bullets(tuple(_change_notes(result)), "dim")
    commands: list[Part] = []
    ranges = [change for change in result.changes if change.confirm]
    for change in itertools.islice(ranges, MAX_SIMILAR_LINES):
        after, until = short_name(change.earlier_hash), short_name(change.later_hash)
        purpose = f"To find the commit after {after}, up to {until}:"
        commands.append(Command(change.confirm or "", purpose))
    yield Section("Changes", (table, notes, *commands), forms=NOT_TERMINAL)
    # On a terminal, the answer already shows a small number of changes.
    if len(result.changes) <= MAX_DETAILED_CHANGES:
        yield Section("", (notes, *commands), forms=VERBOSE_TERMINAL)
    else:
        yield Section("Changes", (table, notes, *commands), forms=VERBOSE_TERMINAL)
    if len(result.changes) > 1:
        yield replace(_brief_change_table(document, result), forms=BRIEF_TERMINAL)
    if commands:
        yield replace(commands[0], forms=BRIEF_TERMINAL)


def _brief_change_table(document: HistoryDocument, result: HistoryResult) -> Table:
    rows = [
        _change_row(change, _color_verdict(document, result, change)) for change in result.changes
    ]
    latest = [{name: row[name] for name in _BRIEF_COLUMNS} for row in rows[-_MAX_BRIEF_CHANGES:]]
    hidden_count = len(rows) - len(latest)
    note = f"{counted(hidden_count, 'earlier change')}: {option('verbose')}"
    return Table(*columns_and_rows(latest), notes=(note,) if hidden_count else ())


def _change_row(change: HistoryChange, color_verdict: str) -> Mapping[str, Cell]:
    estimate, interval = estimate_and_interval(change.ratio, change.ratio_ci, unknown=UNKNOWN)
    certainty = "confirmed"
    if not change.confirmed:
        certainty = (
            f"one or more of {change.commit_count} commits after {short_name(change.earlier_hash)}"
        )
    elif change.not_built:
        certainty = f"confirmed, or one of {len(change.not_built)} before it"
    return {
        "commit": short_name(change.later_hash)
        if change.confirmed
        else f"up to {short_name(change.later_hash)}",
        "subject:name": change.subject if change.confirmed else "",
        "author": change.author if change.confirmed else "",
        "date": change.date[:10],
        "change:number": StyledText(estimate, color_verdict),
        "interval": interval,
        "e-value:number": significant(change.e_value),
        "blocks:number": str(change.blocks),
        "which": certainty,
    }


def _change_notes(result: HistoryResult) -> Iterator[str]:
    yield (
        f"At most {percentage(result.alpha)} of the changes that such histories name are false on "
        "average, however long they go on. A change counts above "
        f"{result.min_effect:g} %; steps that cancel each other are not seen."
    )
    yield "A change is confirmed if one commit ran side by side with its parent."


def _curve_parts(result: HistoryResult) -> Iterator[Part]:
    """Build the tables of the curve: selected commits, or all commits on a page."""
    if len(result.revisions) < 2:
        return
    selection = _selected_revisions(result, MAX_ROWS)
    hidden_count = len(result.revisions) - len(selection)
    notes = [_curve_note(result)]
    if hidden_count:
        notes.append(f"{counted(hidden_count, 'commit')} between them left out.")
    yield Section("Curve", (_screen_table(selection, result, notes),), forms=VERBOSE_TERMINAL)
    brief_selection = _selected_revisions(result, _MAX_BRIEF_COMMITS)
    yield replace(_screen_table(brief_selection, result, ()), forms=BRIEF_TERMINAL)
    yield Section("Curve", (_text_table(selection, notes),), forms=TEXT_AND_NOTEBOOK)
    page_table = _text_table(result.revisions, [_curve_note(result)])
    title = f"Every commit of the curve ({len(result.revisions)})"
    yield Section(title, (page_table,), folded=True, forms=PAGE)


def _selected_revisions(result: HistoryResult, max_rows: int) -> tuple[HistoryRevision, ...]:
    """Return up to ``max_rows`` commits: the commits of changes, and evenly spaced others."""
    revisions = result.revisions
    changed = {
        commit for change in result.changes for commit in (change.earlier_hash, change.later_hash)
    }
    last_row = len(revisions) - 1
    changed_rows = [row for row, revision in enumerate(revisions) if revision.commit in changed]
    step_count = max(1, max_rows - 1)
    even_rows = [round(step * last_row / step_count) for step in range(step_count + 1)]
    rows = list(dict.fromkeys((0, last_row, *changed_rows, *even_rows)))[:max_rows]
    return tuple(revisions[row] for row in sorted(rows))


def _text_table(revisions: Sequence[HistoryRevision], notes: Sequence[str]) -> Table:
    return Table(
        *columns_and_rows(map(_revision_row, revisions)), label=_CURVE_LABEL, notes=tuple(notes)
    )


def _revision_row(revision: HistoryRevision) -> Mapping[str, Cell]:
    estimate, interval = estimate_and_interval(revision.ratio, revision.ratio_ci, unknown=UNKNOWN)
    status: Cell = ""
    if not revision.place:
        estimate, interval, status = "", "", "baseline"
    elif revision.ratio is None:
        interval, status = "", StyledText(_STATUS_TEXTS[revision.status], "dim")
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


def _curve_note(result: HistoryResult) -> str:
    return (
        f"All these intervals hold together with {percentage(1.0 - result.alpha)}, on this host, "
        "as long as each ratio stays the same."
    )


def _screen_table(
    revisions: Sequence[HistoryRevision], result: HistoryResult, notes: Sequence[str]
) -> Table:
    """Build the table for a terminal: each commit with a picture of its interval."""
    margin = 1.0 + result.min_effect / 100.0
    extremes = values_on_axis([(revision.ratio, revision.ratio_ci) for revision in revisions])
    drawn_ratios = [1.0 / margin, margin, *filter(None, extremes)]
    ln_low, ln_high = math.log(min(drawn_ratios)), math.log(max(drawn_ratios))

    def column_of(ratio: float) -> int:
        fraction = (math.log(ratio) - ln_low) / (ln_high - ln_low)
        return round((_PICTURE_WIDTH - 1) * min(max(fraction, 0.0), 1.0))

    def picture(revision: HistoryRevision) -> str:
        letters = [" "] * _PICTURE_WIDTH
        if revision.ratio and revision.place:
            lower, upper = revision.ratio_ci
            begin = column_of(lower) if lower else 0
            end = column_of(upper) if upper else _PICTURE_WIDTH - 1
            letters[begin : end + 1] = _BAR * (end + 1 - begin)
            if not lower or math.log(lower) < ln_low:
                letters[0] = _LEFT_ARROW
            if not upper or math.log(upper) > ln_high:
                letters[-1] = _RIGHT_ARROW
        letters[column_of(1.0)] = _BASELINE_MARK
        if revision.ratio:
            letters[column_of(revision.ratio)] = _ESTIMATE_MARK
        return "".join(letters)

    heading = " to ".join(in_one_unit(math.exp(ln_low), math.exp(ln_high)))
    columns = (Column("commit"), Column("subject", "name"), Column(heading), Column("change"))
    rows: list[Row] = []
    for revision in revisions:
        cells = _revision_row(revision)
        description = cells["status"]
        if interval := cells["interval"]:
            estimate = cells["over the baseline:number"]
            description = f"{text_of(estimate):<8}  {text_of(interval)}"
        rows.append((cells["commit"], cells["subject:name"], picture(revision), description))
    return Table(columns, tuple(rows), label=_CURVE_LABEL, notes=tuple(notes))


def _campaign_table(result: HistoryResult) -> Iterator[Part]:
    era_notes = (
        f"Era {era.number} began {minute_of(era.started)}: {'; '.join(era.differences)}. Commits "
        "are compared within an era only."
        for era in result.eras
        if era.differences
    )
    yield Table(
        *columns_and_rows(map(_campaign_row, result.campaigns)),
        label="Campaigns of this history, the oldest first",
        notes=tuple(era_notes),
    )


def _campaign_row(campaign: HistoryCampaign) -> Mapping[str, Cell]:
    return {
        "run": campaign.run,
        "started": minute_of(campaign.started),
        "blocks:number": str(campaign.blocks),
        "trials:number": str(campaign.trials),
        "commits built:number": str(campaign.tried_commits),
        "time:number": waiting_time(campaign.seconds),
        "stopped by": campaign.stopped_because or "it did not end",
        "era:number": str(campaign.era),
    }


def _cost_facts(result: HistoryResult) -> Iterator[tuple[str, str]]:
    campaigns = counted(len(result.campaigns), "campaign")
    cost = f"{result.trials} trials of {counted(result.tried_commits, 'build')}"
    yield "Cost", f"{cost} in {waiting_time(result.seconds)}, over {campaigns}"
    remaining = "nothing, until there are new commits"
    if result.blocks_to_go:
        remaining = f"about {counted(result.blocks_to_go, 'more block')}"
    yield "Left to measure", remaining


CAVEAT = (
    "These values were not measured side by side, so a suspicion may be a change of the machine, "
    "of its load or of the compiler. Its line measures both commits in random order."
)
_MAX_CONFIRMING_LINES = 5
"""Maximum number of shell lines for suspicions in a terminal; a page has all lines."""
_MAX_FIGURES = 12
"""Maximum number of series that are drawn; series with suspicions come first."""
_SECONDS_PER_UNIT = {
    **dict.fromkeys(("s", "seconds"), 1.0),
    **dict.fromkeys(("ns", "nanoseconds", "nanoseconds (ns)"), 1e-9),
}
"""Seconds in one unit, for each name of a unit of time."""
_BYTE_UNITS = frozenset({"B", "bytes"})
"""Names of the unit byte."""


def series_document(result: SeriesResult) -> Document:
    """Build the document of imported series without a history."""
    series_sources = (f"{imported.tool}: {imported.source}" for imported in result.series)
    sources = ", ".join(dict.fromkeys(series_sources))
    return Document(
        name="series",
        title="Imported series",
        parts=(
            Answer(result.summary, lines=(CAVEAT,)),
            *series_parts(result.series),
            Section("Do it again", (Command(result.command_line, "Again:"),), forms=NOT_TERMINAL),
        ),
        csv_rows=tuple(series_numbers(result.series)),
        origin=Origin(f"Where may the level have changed? From {sources}", result.command_line),
    )


def series_parts(series: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the suspicions, the figures, and a table of the series."""
    if not series:
        return
    if any(imported.suspicions for imported in series):
        rows = (
            {
                "benchmark:name": imported.benchmark,
                "change:number": percent_change(suspicion.ratio),
                "level before:number": _level_text(suspicion.old_level, imported.unit),
                "about at": shown_commit(imported.points[suspicion.change_index].commit),
                "after": shown_commit(suspicion.last_old_commit),
                "until": shown_commit(suspicion.first_new_commit),
            }
            for imported in series
            for suspicion in imported.suspicions
        )
        table = Table(*columns_and_rows(rows), label="Suspicions", max_rows=MAX_ROWS)
        title = "Suspicions, not measured side by side"
        yield Section(title, (table, *_confirming_lines(series)))
    yield Figures(lambda: _series_figures(series[:_MAX_FIGURES]), title="Imported series")
    rows_of_series = (
        {
            "benchmark:name": imported.benchmark,
            "metric": f"{imported.metric} ({imported.unit})" if imported.unit else imported.metric,
            "measured where:text": imported.setting,
            "commits:number": str(len(imported.points)),
            "from": shown_commit(imported.points[0].commit),
            "to": shown_commit(imported.points[-1].commit),
            "suspicions:number": str(len(imported.suspicions)),
        }
        for imported in series
    )
    yield Table(*columns_and_rows(rows_of_series), title="Imported series", max_rows=MAX_ROWS)
    notes = tuple(dict.fromkeys(note for imported in series for note in imported.notes))
    if notes:
        yield Bullets(notes)


def series_numbers(series: Iterable[ImportedSeries]) -> Iterator[CsvRow]:
    """Yield a row for each value of each series, with the ratio of a suspicion at the commit."""
    for imported in series:
        ratios = {suspicion.change_index: suspicion.ratio for suspicion in imported.suspicions}
        for index, commit_value in enumerate(imported.points):
            yield {
                **field_cells(imported, "benchmark", "setting", "metric", "unit"),
                **field_cells(commit_value, "commit", "date", "value"),
                "suspicion": ratios.get(index),
            }


def _confirming_lines(series: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the shell line that tests each suspicion; a terminal shows the first lines."""
    lines = [
        Command(
            suspicion.confirm_command or "", f"To confirm {suspicion.summary.removesuffix('.')}:"
        )
        for imported in series
        for suspicion in imported.suspicions
    ]
    yield from lines[:_MAX_CONFIRMING_LINES]
    hidden_lines = lines[_MAX_CONFIRMING_LINES:]
    if hidden_lines:
        yield Paragraph(
            f"{len(hidden_lines)} more lines are in {option('json')} and {option('report')}.", "dim"
        )
        yield Section("More lines", tuple(hidden_lines), folded=True, forms=PAGE)


def _series_figures(series: Sequence[ImportedSeries]) -> Iterator[Figure]:
    from equipoise.figures.gallery import Figure
    from equipoise.kinds.history.figures import HOW_TO_READ_SERIES, series_chart

    for imported in series:
        yield Figure("series", HOW_TO_READ_SERIES, series_chart(imported))


def _level_text(value: float, unit: str | None) -> str:
    """Return a level as text; times and numbers of bytes get a readable unit."""
    if unit in _SECONDS_PER_UNIT:
        return duration(value * _SECONDS_PER_UNIT[unit])
    if unit in _BYTE_UNITS:
        return byte_count(value)
    return significant(value) if unit is None else f"{significant(value)} {unit}"


def _contradictions(result: HistoryResult) -> Iterator[str]:
    if not (0.0 < result.alpha < 1.0 and 0.0 < result.min_effect <= MAX_MIN_EFFECT):
        yield "a history has an impossible alpha or smallest effect"
    indices = [revision.place for revision in result.revisions]
    if indices and (indices[0] != 0 or indices != sorted(set(indices))):
        yield "the commits of a history do not begin with the baseline, or are not in order"
    revisions = (
        revision for revision in result.revisions if revision.significance_level is not None
    )
    estimates: list[HistoryChange | HistoryPair | HistoryRevision]
    estimates = [*result.changes, *result.pairs, *revisions]
    if not all(map(is_possible_ratio, estimates)):
        yield "a commit, a pair or a change of a history has an impossible ratio or interval"
    if any(change.commit_count < 1 or change.blocks < 0 for change in result.changes):
        yield "a change of a history has no commit, or a negative number of blocks"
    for series in result.imported_series:
        values = [point.value for point in series.points]
        if not all(map(math.isfinite, values)):
            yield "a series has a value that is not finite"
        if any(not 0 <= suspicion.change_index < len(values) for suspicion in series.suspicions):
            yield "a suspicion has an index outside its series"
