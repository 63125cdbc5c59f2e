"""Builds the sections that explain a result: extra time, interventions, and random variation.

- The gap is the extra time of the slower condition. Rules find possible causes of the gap.
- To test a cause, an intervention changes both conditions in the same way. It closes the fraction
  of the gap that disappears with the change.
- A source of variation makes the times of one command spread; a test holds this source fixed. The
  kind of such a cause is `CHANCE_KIND`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.model.quantities import listed
from equipoise.model.result import Comparison, ResultDocument
from equipoise.model.why import Explanation, ExtraTime, InterventionOutcome, TimePart
from equipoise.report.document import (
    BRIEF_TERMINAL,
    NOT_BRIEF,
    NOT_TERMINAL,
    UNKNOWN,
    Bullets,
    Cell,
    Column,
    FlameGraph,
    Paragraph,
    Part,
    Section,
    StyledText,
    Table,
    columns_and_rows,
    full_and_brief,
)
from equipoise.report.units import capitalized, duration, range_text
from equipoise.stats.intervention import CONFIRMED_WIDTH, describe_fraction
from equipoise.stats.spread import CHANCE_KIND, describe_spread

_CLOSES_NOTE = (
    "Closes: the fraction of the gap that disappears with the change. All intervals together hold "
    "at the campaign's alpha, however long one looks (docs/reference/causes.md)."
)
NOTHING_CLOSES_GAP = "No tested intervention closes the gap, so its cause is still unknown."
NOTHING_REACHES_CAUSE = (
    "No intervention can change what the evidence names, so the cause of the gap is still unknown."
)
NOTHING_DECIDED = (
    "No intervention is decided yet; more blocks may decide one "
    "(equipoise resume, docs/reference/causes.md)."
)
_MAX_CAUSES = 12
_MAX_BRIEF_ROWS = 3
"""Maximum number of rows on a terminal without ``--verbose``."""
_BRIEF_COLUMNS = ("share:number", "status", "what it comes from:text")
"""Columns of the table of causes on a terminal without ``--verbose``."""
_MAX_REMARKS = 2
"""Maximum number of remarks on what a profiler or another tool did not see."""
_STATUS_PHRASES = {
    "open": "not tested by changing it, or not decided",
    "not reachable": "no intervention reaches it",
}
"""Phrases for statuses of a cause; other statuses are plain words."""
_PART_NAMES = {"queueing": "waiting for a processor"}
"""Names for parts of the extra time; other parts keep their name."""
_SOURCE_STATUS = "source"
"""Status of a confirmed source of variation."""
_MAX_SHOWN_AS_0 = 0.005
"""Largest fraction that is shown as 0 %."""
_MAX_SHOWN_AS_100 = 1.0 + _MAX_SHOWN_AS_0
"""Largest fraction that is shown as 100 %."""


def why_parts(result: ResultDocument, flame_graph: bytes | None = None) -> Iterator[Part]:
    """Build all sections that explain a result; none if nothing was explained."""
    extra_time = result.extra_time
    sources = [cause for cause in result.why if cause.kind == CHANCE_KIND]
    if sources:
        yield _sources_section(sources)
    remedies = remedy_sentences(result)
    if remedies:
        yield Section("What to do", (Bullets(remedies),))
    if extra_time is not None:
        yield _extra_time_section(result, extra_time, flame_graph)
    interventions = interventions_section(result)
    if interventions is not None:
        brief_section = replace(interventions, title="What was changed on both conditions")
        yield from full_and_brief(interventions, brief_section)
    if extra_time is None:
        causes = tuple(cause.summary for cause in result.why if cause.kind != CHANCE_KIND)
        if causes:
            yield Section("Why", (Bullets(causes),), forms=NOT_TERMINAL)


def remedy_sentences(result: ResultDocument) -> tuple[str, ...]:
    """Return remedies for a gap: changes that close it, and advice on the first cause."""
    causes = [
        cause for cause in result.why if cause.kind != CHANCE_KIND and cause.status != "refuted"
    ]
    confirmed_by_name = {
        intervention.intervention: intervention
        for cause in causes
        for intervention in cause.tested
        if intervention.outcome == "confirmed"
    }
    change_sentences = tuple(
        f"{capitalized(intervention.summary)} closes "
        f"{describe_fraction(intervention.share, intervention.share_ci)} of the gap. "
        f"To keep it: {intervention.advice}"
        for intervention in confirmed_by_name.values()
        if intervention.advice
    )
    first_cause = next(
        (cause for cause in causes if cause.status == "confirmed"), next(iter(causes), None)
    )
    if first_cause is None or first_cause.remedy is None:
        return change_sentences
    note = "" if first_cause.status == "confirmed" else " (No test has confirmed this cause.)"
    return (*change_sentences, f"{first_cause.remedy}{note}")


def cause_sentence(result: ResultDocument, comparison: Comparison) -> str:
    """Return the sentence on the first cause of a gap; empty if the gap was not explained."""
    extra_time = result.extra_time
    pair = (comparison.baseline, comparison.candidate)
    if extra_time is None or (extra_time.baseline, extra_time.candidate) != pair:
        return ""
    causes = [cause for cause in result.why if cause.kind != CHANCE_KIND]
    confirmed_causes = [cause for cause in causes if cause.status == "confirmed"]
    if not causes:
        return f"Why: {extra_time.summary}; no rule finds a cause for it."
    possible_causes = confirmed_causes or [cause for cause in causes if cause.status != "refuted"]
    if not possible_causes:
        return f"Why: {extra_time.summary}; every tested cause is refuted."
    cause = possible_causes[0]
    summary, *_ = cause.summary.partition(". ")
    sentence = f"Why ({_STATUS_PHRASES.get(cause.status, cause.status)}): {summary.rstrip('.')}."
    confirmed = (tested for tested in cause.tested if tested.outcome == "confirmed")
    if (intervention := next(confirmed, None)) is not None:
        fraction = describe_fraction(intervention.share, intervention.share_ci)
        sentence += f" {capitalized(intervention.summary)} closes {fraction} of the gap."
    return f"{sentence} What to do: {cause.remedy}" if cause.remedy else sentence


def interventions_section(result: ResultDocument) -> Section | None:
    """Build the section with the effect of each intervention; ``None`` if there are none."""
    by_name: dict[str, InterventionOutcome] = {}
    for intervention in (tested for cause in result.why for tested in cause.tested):
        # Prefer the outcome for a cause that the intervention can change.
        if intervention.unchanged_sentence is None or intervention.intervention not in by_name:
            by_name[intervention.intervention] = intervention
    # Interventions that ran come first.
    interventions = sorted(by_name.values(), key=lambda intervention: intervention.blocks == 0)
    if not interventions:
        return None
    full_table = columns_and_rows(map(_intervention_cells, interventions))
    brief_table = columns_and_rows(map(_brief_intervention_cells, interventions))
    parts: list[Part] = [
        *full_and_brief(
            Table(*full_table, label="What was changed"),
            Table(*brief_table, max_rows=_MAX_BRIEF_ROWS),
        )
    ]
    if not any(intervention.outcome == "confirmed" for intervention in interventions):
        is_undecided = any(map(_may_yet_be_confirmed, interventions))
        outcomes = {intervention.outcome for intervention in interventions}
        sentence = NOTHING_REACHES_CAUSE if outcomes == {"not reachable"} else NOTHING_CLOSES_GAP
        parts.append(Paragraph(NOTHING_DECIDED if is_undecided else sentence))
    unknown_lines = tuple(
        f"{intervention.summary}: {intervention.unknown_because}"
        for intervention in interventions
        if intervention.unknown_because
    )
    unreachable_lines = tuple(
        f"{intervention.summary} cannot reach it: {intervention.unchanged_sentence}"
        for intervention in interventions
        if intervention.unchanged_sentence
    )
    if unknown_lines or unreachable_lines:
        parts.append(Bullets((*unknown_lines, *unreachable_lines), forms=NOT_BRIEF))
    if unknown_lines:
        parts.append(Bullets(unknown_lines, max_items=_MAX_BRIEF_ROWS, forms=BRIEF_TERMINAL))
    note = " ".join((_CLOSES_NOTE, *_fraction_notes(interventions)))
    parts.append(Paragraph(note, "dim", forms=NOT_BRIEF))
    return Section(_interventions_title(result), tuple(parts))


def _fraction_notes(interventions: Sequence[InterventionOutcome]) -> Iterator[str]:
    fractions = [
        (intervention.share, *intervention.share_ci)
        for intervention in interventions
        if intervention.share is not None
    ]
    if any(low is not None and low > _MAX_SHOWN_AS_100 for _, low, _ in fractions):
        yield "More than 100 %: with the change the order of the two is reversed."
    elif any(share > _MAX_SHOWN_AS_100 for share, _, _ in fractions):
        yield "An estimate above 100 % with 100 % in its interval: all of the gap may be gone."
    if any(high is not None and high < -_MAX_SHOWN_AS_0 for _, _, high in fractions):
        yield "Below 0 %: the change makes the gap larger."
    elif any(share < -_MAX_SHOWN_AS_0 for share, _, _ in fractions):
        yield "An estimate below 0 % with 0 % in its interval: the change may do nothing."
    confirmed_fractions = [
        intervention.share
        for intervention in interventions
        if intervention.share and intervention.outcome == "confirmed"
    ]
    if len(confirmed_fractions) > 1 and sum(confirmed_fractions) > _MAX_SHOWN_AS_100:
        yield (
            "The fractions add up to more than 100 %: several changes remove the same cause, or "
            "one cause hides another."
        )


def _share_notes(extra_time: ExtraTime) -> tuple[str, ...]:
    shares = [part.share_of_gap for part in extra_time.parts if part.share_of_gap is not None]
    if sum(shares) > _MAX_SHOWN_AS_100:
        return (
            f"The shares add up to {round(100 * sum(shares))} %: processor time adds up over all "
            "threads, and several threads or processes worked at once.",
        )
    if any(share > _MAX_SHOWN_AS_100 for share in shares):
        return ("A share is above 100 % because another part became smaller.",)
    return ()


def _sources_section(sources: Sequence[Explanation]) -> Section:
    columns = (
        Column("held", "name"),
        *(Column(heading, "number") for heading in ("spread", "variance", "interval", "p")),
        Column(""),
    )
    free_spread = describe_spread(sources[0].evidence["spread"])
    rows = [("nothing", free_spread, "", "", "", ""), *map(_source_cells, sources)]
    note = (
        "Spread: half the range of the middle 80 % of the runs. p: corrected for the number of "
        "sources (docs/explanation/noise.md)."
    )
    return Section(
        "What the spread comes from",
        (
            Table(
                columns,
                tuple(
                    tuple(StyledText(cell, "strong") if row[-1] else cell for cell in row)
                    for row in rows
                ),
                label="What the spread comes from",
                notes=(note,),
            ),
            # On a terminal, these sentences are the answer.
            *(Paragraph(sentence, forms=NOT_TERMINAL) for sentence in _source_sentences(sources)),
        ),
    )


def source_sentences(result: ResultDocument) -> tuple[str, ...]:
    """Return sentences on the sources of variation of one command, if any were found."""
    sources = [cause for cause in result.why if cause.kind == CHANCE_KIND]
    return tuple(_source_sentences(sources)) if sources else ()


def _source_sentences(sources: Sequence[Explanation]) -> Iterator[str]:
    confirmed_summaries = [source.summary for source in sources if source.status == _SOURCE_STATUS]
    yield from (f"{capitalized(summary)}." for summary in confirmed_summaries)
    if not confirmed_summaries:
        yield "No source that was held makes the times spread."
    remainder_summaries = (source.summary for source in sources if source.status == "remainder")
    yield from (f"{capitalized(summary)}." for summary in remainder_summaries)


def _source_cells(source: Explanation) -> tuple[str, ...]:
    low, high = source.share_ci
    share = source.share_of_gap
    return (
        source.cause,
        describe_spread(source.evidence["spread_held"]),
        UNKNOWN if share is None else f"{-100 * share:+.0f} %",
        UNKNOWN if low is None or high is None else f"{-100 * high:+.0f} % to {-100 * low:+.0f} %",
        f"{source.evidence['p_value']:.2g}",
        "a source of the spread" if source.status == _SOURCE_STATUS else "",
    )


def _extra_time_section(
    result: ResultDocument, extra_time: ExtraTime, flame_graph: bytes | None
) -> Section:
    headings = (extra_time.baseline, extra_time.candidate, "extra", "95 % interval", "share")
    parts: list[Part] = [
        Paragraph(f"{capitalized(extra_time.summary)}."),
        Table(
            (Column(""), *(Column(heading, "number") for heading in headings)),
            tuple(map(_part_cells, extra_time.parts)),
            label="Where the extra time goes",
            notes=_share_notes(extra_time),
            forms=NOT_BRIEF,
        ),
    ]
    causes = [cause for cause in result.why if cause.kind != CHANCE_KIND]
    if causes:
        label = "What the extra time comes from"
        shares = [cause.share_of_gap or 0.0 for cause in causes]
        overlap_note = "The shares add up to more than 100 %: causes overlap, or one hides another."
        notes = (overlap_note,) if len(shares) > 1 and sum(shares) > _MAX_SHOWN_AS_100 else ()
        rows = [_cause_cells(cause) for cause in causes]
        table = Table(*columns_and_rows(rows), label=label, max_rows=_MAX_CAUSES, notes=notes)
        brief_rows = [{name: row[name] for name in _BRIEF_COLUMNS} for row in rows]
        brief_table = Table(*columns_and_rows(brief_rows), max_rows=_MAX_BRIEF_ROWS)
        parts += full_and_brief(table, brief_table)
    else:
        no_cause = "No rule finds a cause in what was observed (docs/reference/causes.md)."
        parts.append(Paragraph(no_cause))
    if flame_graph is not None:
        parts.append(FlameGraph(flame_graph))
    if extra_time.unseen:
        parts.append(Bullets(tuple(_unseen_lines(extra_time)), "dim", forms=NOT_BRIEF))
    title = f"Where the extra {_seconds(extra_time.gap_s)} of `{extra_time.slower}` go"
    return Section(title, tuple(parts))


def _part_cells(part: TimePart) -> tuple[str, ...]:
    return (
        _PART_NAMES.get(part.part, part.part),
        _seconds(part.baseline_s),
        _seconds(part.candidate_s),
        _seconds(part.extra_s),
        range_text(part.extra_s_ci, duration),
        _percent(part.share_of_gap),
    )


def _cause_cells(cause: Explanation) -> Mapping[str, str]:
    return {
        "extra:number": _seconds(cause.seconds),
        "share:number": _percent(cause.share_of_gap),
        "status": cause.status,
        "what it comes from:text": cause.summary,
    }


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else duration(value)


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{round(100 * share)} %"


def _unseen_lines(extra_time: ExtraTime) -> Iterator[str]:
    for tool, remarks in extra_time.unseen.items():
        yield f"not seen by {tool}: {listed(remarks, _MAX_REMARKS, '; ')}"


def _intervention_cells(intervention: InterventionOutcome) -> Mapping[str, Cell]:
    return {
        "changed": intervention.summary,
        "closes": describe_fraction(intervention.share, intervention.share_ci),
        "by candidate + baseline": _fraction_by_condition(intervention),
        "in seconds": describe_fraction(
            intervention.share_of_seconds, intervention.share_of_seconds_ci
        ),
        "blocks:number": str(intervention.blocks),
        "outcome": StyledText(intervention.outcome, intervention.outcome),
    }


def _brief_intervention_cells(intervention: InterventionOutcome) -> Mapping[str, Cell]:
    return {
        "changed:name": intervention.summary,
        "closes of the gap [interval]": describe_fraction(
            intervention.share, intervention.share_ci
        ),
        "blocks:number": str(intervention.blocks),
        "outcome": StyledText(intervention.outcome, intervention.outcome),
    }


def _fraction_by_condition(intervention: InterventionOutcome) -> str:
    """Return the median fraction of the gap that each condition contributes: ``96 % + 1 %``."""
    candidate, baseline = intervention.from_candidate, intervention.from_baseline
    if intervention.share is None or candidate is None or baseline is None:
        return "unknown"
    return f"{round(100 * candidate)} % + {round(100 * baseline)} %"


def _may_yet_be_confirmed(intervention: InterventionOutcome) -> bool:
    if intervention.outcome != "open" or intervention.unknown_because is not None:
        return False
    low, high = intervention.share_ci
    return low is None or high is None or high - low > CONFIRMED_WIDTH


def _interventions_title(result: ResultDocument) -> str:
    comparison = _explained_comparison(result)
    if comparison is None or comparison.ratio is None:
        return "What was changed on both conditions, and how much of the gap each change closes"
    low, high = comparison.ratio_ci
    interval = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return (
        f"{comparison.candidate} takes {comparison.ratio:.2f}{interval} times as long as "
        f"{comparison.baseline}. What was changed on both:"
    )


def _explained_comparison(result: ResultDocument) -> Comparison | None:
    extra_time = result.extra_time
    for comparison in result.comparisons:
        pair = (comparison.baseline, comparison.candidate)
        is_explained = extra_time is None or pair == (extra_time.baseline, extra_time.candidate)
        if comparison.metric == "wall_s" and is_explained:
            return comparison
    return None
