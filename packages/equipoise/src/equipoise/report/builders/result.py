"""Builds the document of a campaign, in the order: answer, tables, figures, causes, warnings."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.values import MAX_DOTS
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import counted, listed
from equipoise.model.record import CampaignWarning, RunSummary
from equipoise.model.result import Comparison, ResultDocument, SampleComparison
from equipoise.report.builders import claims, conditions, origin, reference, runs, shape, why
from equipoise.report.document import (
    BRIEF,
    EVERYWHERE,
    MAX_ALIKE,
    MAX_CLAIMS,
    PAGE,
    SCREEN,
    TEXT,
    UNKNOWN,
    VERBOSE,
    WRITTEN,
    Answer,
    Bullets,
    Claim,
    Claims,
    Column,
    Command,
    Document,
    Facts,
    Figures,
    NumberRow,
    Paragraph,
    Part,
    Section,
    Table,
    Warnings,
    fields_of,
    interval_cells,
    ratio_cells,
    whole_and_brief,
)
from equipoise.report.kind import report_kind
from equipoise.report.units import (
    byte_count,
    capitalized,
    estimate_and_interval,
    percent_change,
    percentage,
)
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure, Sequences

MIN_FOLDED_LINES = 8
"""Minimum number of lines of a folded part of the environment."""
_MAX_LISTED_NAMES = 3
"""Maximum number of names in the joined name of equal entries."""
_FIRST_FIGURES = frozenset({"distributions"})
"""Names of the figures directly below the answer."""
_FIRST_FIGURES_OF_MANY = frozenset({"ratios"})
"""Names of the figures directly below the answer if there are many comparisons."""
_FIGURES_PER_COMPARISON = frozenset({"sequence", "shift"})
"""Names of the figures that exist once for each comparison."""
_IMPORTANT_WARNINGS = (
    "no_constant_ratio",
    "carry_over",
    "minimum_misleads",
    "slow_runs",
    "ignored_failures",
    "control",
    "cut_blocks",
    "verdict_near",
    "short_time",
)
"""Codes of the warnings that a brief screen shows first, in this order."""
_UNIMPORTANT_WARNING = "inflated"
"""Code of the warning that a brief screen shows last."""
_MAIN_FACTS = frozenset(
    {"equipoise", "system", "kernel", "cpu model", "cpus", "governor", "memory", "hypervisor"}
)
"""Facts of the environment in a text or a notebook; a page and the JSON have all facts."""


class CampaignReport(Struct, frozen=True):
    """Result of a campaign, and everything else that its report needs."""

    document: ResultDocument
    sequences: Sequences = field(default_factory=dict)
    """Intervals after each block, by candidate; a candidate may be missing."""
    study_figures: tuple[Figure, ...] = ()
    """Figures of the built-in study, which come first."""
    flame_graph: bytes | None = None
    """Flame graph of the explained gap as SVG."""
    ledger: Path | None = None
    """Path of the ledger with the campaign, for the terminal."""
    other_campaigns: Sequence[RunSummary] = ()
    """Other campaigns of the same commands, for the terminal."""
    max_dots: int = MAX_DOTS
    """Maximum number of trials that a figure draws one by one; more trials are binned."""


def campaign_documents(reports: Sequence[CampaignReport]) -> list[Document]:
    """Build the documents of several campaigns for one page.

    If all campaigns together have more than `MAX_DOTS` trials, the limit of a campaign is lower.
    """
    trial_count = sum(len(report.document.trials) for report in reports)
    max_dots = MAX_DOTS if trial_count <= MAX_DOTS else MAX_DOTS // len(reports)
    return [campaign_document(replace(report, max_dots=max_dots)) for report in reports]


def campaign_document(report: CampaignReport) -> Document:
    """Build the document of a campaign."""
    document = report.document
    if (kind_document := report_kind(document).document(report)) is not None:
        return kind_document
    answer = claims.campaign_answer(document)
    first_figures, other_figures = campaign_figures(report)
    has_kind_tables = bool(report_kind(document).tables(document))
    measured_parts = tuple(_measured_parts(document))
    parts: tuple[Part, ...] = (
        *_answer_for_each_form(document, answer),
        *_screen_tables(document),
        first_figures,
        *claims.how_to_compare(document),
        *_text_tables(document),
        *_scaling_tables(document),
        *claims.ranking_parts(document),
        *_findings_section(document),
        *claims_section(document, answer, claims.claims_of(document)),
        *why.why_parts(document, report.flame_graph),
        *([] if document.against is None else [reference.reference_section(document.against)]),
        *([other_figures] if has_kind_tables else []),
        *measured_parts,
        *([] if has_kind_tables else [other_figures]),
        *_control_parts(document),
        *how_it_ran(report),
        # These lines describe process times, but the tables of a kind have other metrics.
        *(() if has_kind_tables else _screen_shape_parts(document)),
    )
    return whole_document(report, answer, parts, _csv_rows(document))


def _answer_for_each_form(document: ResultDocument, answer: Answer) -> tuple[Answer, ...]:
    """Return the answer of each form; on a terminal, it is the sources of variation, if any."""
    if not (sentences := why.source_sentences(document)):
        return brief_and_verbose(answer)
    title, *lines = sentences
    on_terminal = replace(answer, title=title, lines=tuple(lines), forms=SCREEN)
    return replace(answer, forms=WRITTEN), *brief_and_verbose(on_terminal)


def brief_and_verbose(answer: Answer) -> tuple[Answer, Answer]:
    """Return the answer for all forms but a brief screen, and a shorter answer for that screen."""
    claims = tuple(map(_brief_claim, answer.claims))
    return whole_and_brief(answer, replace(answer, claims=claims))


def _brief_claim(claim: Claim) -> Claim:
    is_number = any(map(str.isdigit, claim.estimate))
    estimate = f"estimate {claim.estimate}" if is_number else claim.estimate
    return replace(claim, subject="", estimate=estimate, certainty=())


def whole_document(
    report: CampaignReport, answer: Answer, parts: Iterable[Part], numbers: Iterable[NumberRow]
) -> Document:
    """Build a document from ``parts`` and the last parts, which all kinds of campaign share."""
    document = report.document
    return Document(
        name=document.run.id,
        title=answer.title or answer.claims[0].text,
        parts=(
            *parts,
            *_warning_parts(document),
            *_repetition(report),
            *_environments(document),
            *runs.other_campaigns_parts(report.other_campaigns),
            _run_line(document),
        ),
        numbers=tuple(numbers),
        origin=origin.origin_of(document, document.run.command_line or ""),
    )


def claims_section(
    document: ResultDocument, answer: Answer, all_claims: Sequence[Claim]
) -> Iterator[Section]:
    """Build the section with all claims; no section if the answer has all claims.

    The section is folded if no comparison found a difference.
    """
    if not answer.claims:
        is_folded = bool(claims.no_difference_sentence(document))
        yield Section("Comparisons", (Claims(tuple(all_claims)),), folded=is_folded, forms=PAGE)


def _screen_shape_parts(document: ResultDocument) -> Iterator[Part]:
    # In a comparison, the random order protects from drift, so a brief screen omits the lines.
    forms = VERBOSE if document.comparisons else SCREEN
    yield from (replace(line, forms=forms) for line in shape.screen_shape_lines(document))


def _warning_parts(document: ResultDocument) -> Iterator[Part]:
    """Build the warnings that are not in the answer; a brief screen has only the most important."""
    failures = claims.failures_of(document)
    warnings = tuple(warning for warning in document.warnings if warning not in failures)
    if not warnings:
        yield Warnings(warnings, forms=PAGE)
    else:
        yield Warnings(warnings, forms=EVERYWHERE - BRIEF)
        yield Warnings((min(warnings, key=_importance_rank),), forms=BRIEF)
        if hidden_count := len(warnings) - 1:
            text = f"  {counted(hidden_count, 'more warning')}: {option('verbose')}"
            yield Paragraph(text, "dim", forms=BRIEF)


def _importance_rank(warning: CampaignWarning) -> int:
    """Return the rank of a warning; a smaller rank is more important."""
    if warning.code in _IMPORTANT_WARNINGS:
        return _IMPORTANT_WARNINGS.index(warning.code)
    ordinary_rank = len(_IMPORTANT_WARNINGS)
    return ordinary_rank + 1 if warning.code == _UNIMPORTANT_WARNING else ordinary_rank


def campaign_figures(report: CampaignReport) -> tuple[Figures, Figures]:
    """Return the figures directly below the answer, and the other figures."""
    document, max_dots = report.document, report.max_dots
    is_long = len(document.primary_comparisons) > MAX_CLAIMS
    kind = report_kind(document)
    names_at_top = _FIRST_FIGURES_OF_MANY if is_long else _FIRST_FIGURES | kind.first_figures

    @functools.cache
    def draw() -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
        from equipoise.figures.gallery import gallery

        top_figures = list(report.study_figures)
        other_figures: list[Figure] = []
        for figure in gallery(document, report.sequences, max_dots=max_dots):
            (top_figures if figure.name in names_at_top else other_figures).append(figure)
        return tuple(top_figures), tuple(other_figures)

    unprinted_names: frozenset[str] = frozenset()
    if is_long:
        unprinted_names = _FIGURES_PER_COMPARISON | kind.figures_per_comparison
    return (
        Figures(lambda: draw()[0], "At a glance"),
        Figures(lambda: draw()[1], unprinted_names=unprinted_names),
    )


def _screen_tables(document: ResultDocument) -> Iterator[Part]:
    comparisons = document.primary_comparisons
    is_grouped = len(comparisons) > MAX_CLAIMS or any(
        comparison.stratum for comparison in comparisons
    )
    kind_tables = report_kind(document).tables(document)
    if is_grouped or claims.no_difference_sentence(document):
        yield conditions.grouped_table(document)
        if document.run.study != COMPARE_STUDY:
            factor = conditions.compared_factor(document, comparisons[0])
            yield from conditions.scaling_tables(document, document.primary_metric, factor)
    elif kind_tables:
        yield from (replace(table, forms=VERBOSE) for table in kind_tables)
        brief_tables = report_kind(document).brief_tables(document)
        yield from (replace(table, forms=BRIEF) for table in brief_tables)
    else:
        yield replace(conditions.screen_table(document), forms=SCREEN)
    if not kind_tables:
        yield from (replace(table, forms=SCREEN) for table in conditions.further_tables(document))


def _scaling_tables(document: ResultDocument) -> Iterator[Part]:
    if document.run.study == COMPARE_STUDY:
        tables = conditions.scaling_tables(document, document.primary_metric, None)
        yield from (replace(table, forms=EVERYWHERE) for table in tables)


def _text_tables(document: ResultDocument) -> Iterator[Part]:
    if kind_tables := report_kind(document).tables(document):
        yield from (replace(table, forms=TEXT) for table in kind_tables)
    else:
        yield conditions.written_table(document)
        yield from (replace(table, forms=TEXT) for table in conditions.further_tables(document))


def _findings_section(document: ResultDocument) -> Iterator[Part]:
    findings = document.findings
    if findings is None or not (findings.tables or findings.paragraphs):
        return
    tables = []
    for table in findings.tables:
        columns = []
        for index, heading in enumerate(table.headings):
            cells = [row[index] for row in table.rows]
            are_numbers = all(cell[:1].isdigit() or cell in ("", UNKNOWN) for cell in cells)
            columns.append(Column(heading, "number" if are_numbers else "text"))
        tables.append(Table(tuple(columns), table.rows, table.title, notes=table.notes))
    yield Section("Findings", (*map(Paragraph, findings.paragraphs), *tables))


def _measured_parts(document: ResultDocument) -> Iterator[Part]:
    comparisons = document.other_comparisons
    other_metrics: list[Part] = []
    if comparisons:
        other_metrics = [conditions.other_metrics_table(document, comparisons)]
    yield from report_kind(document).measured_parts(document)
    if kind_tables := report_kind(document).tables(document):
        yield Section("Every row", tuple(kind_tables), forms=PAGE)
    else:
        further_tables = conditions.further_tables(document)
        parts = (conditions.page_table(document), *further_tables, *other_metrics)
        yield Section("Conditions", parts, forms=PAGE)
        yield from (replace(table, forms=SCREEN | TEXT) for table in other_metrics)
    steady_sentences = tuple(map(shape.steady_sentence, document.steady_state))
    if steady_sentences:
        yield Bullets(steady_sentences, max_items=MAX_ALIKE, forms=VERBOSE)
    yield from shape.variance_parts(tuple(shape.variance_rows(document)))
    yield shape.shape_section(document, document.primary_comparisons)


def _control_parts(document: ResultDocument) -> Iterator[Part]:
    control = document.control
    if control is None:
        return
    comparison = conditions.shown_comparison(document, control.comparison)
    floor = control.noise_floor
    estimate, interval = estimate_and_interval(comparison.ratio, comparison.ratio_ci)
    floor_text = "unknown: the interval is still unlimited"
    if floor is not None:
        floor_text = f"{percent_change(floor).removeprefix('+')}: less than that may be noise here"
    yield Paragraph(f"control: {control.summary}; interval {interval}", forms=SCREEN)
    difference = f"{comparison.candidate} against {comparison.baseline}"
    facts = (
        (difference, estimate),
        (f"{percentage(1.0 - comparison.significance_level)} interval", interval),
        ("Noise floor", floor_text),
        ("Trials", str(control.condition.trials)),
    )
    parts = (Paragraph(capitalized(control.summary)), Facts(facts))
    yield Section("Control: the baseline against itself", parts, forms=WRITTEN)


def how_it_ran(report: CampaignReport) -> Iterator[Part]:
    """Build the lines of a terminal that say how the campaign ran."""
    document, run = report.document, report.document.run
    ledger = f", ledger {report.ledger}" if report.ledger is not None else ""
    if (kind_parts := report_kind(document).how_it_ran(report)) is not None:
        yield from kind_parts
        return
    scope = "nothing was compared"
    if document.comparisons:
        scope = document.comparisons[0].scope
    elif document.typical is not None:
        scope = document.typical.scope
    elif (kind_scope := report_kind(document).scope_of(document)) is not None:
        scope = kind_scope
    elif not run.blocks:
        scope = "nothing: no block is complete"
    ended = f"stopped by: {run.stopped_because or 'it did not end'}"
    lines = [
        f"{run.blocks} blocks; {ended}; scope: {scope}",
        f"run {run.id}, seed {run.seed}{ledger}",
    ]
    if certificate := document.environment.get("certificate"):
        lines.append(f"certificate of this host: {certificate}")
    yield Bullets(tuple(lines), "dim", forms=VERBOSE)


def _run_line(document: ResultDocument) -> Paragraph:
    run = document.run
    origin = report_kind(document).origin(document)
    if origin is None:
        ended = run.stopped_because or "it did not end"
        origin = f"{counted(run.blocks, 'block')}, stopped by: {ended}"
    return Paragraph(f"run {run.id}: {origin} (more: {option('verbose')})", "dim", forms=BRIEF)


def _repetition(report: CampaignReport) -> Iterator[Part]:
    document = report.document
    command = document.run.command_line
    show_command = shell_line(["equipoise", "show", document.run.id])
    facts = tuple(_run_facts(document))
    purpose = report_kind(document).repetition_purpose
    yield Section(
        "Run it again",
        (
            *([Command(command, purpose)] if command else []),
            Command(show_command, "From the ledger that holds it, without measuring again:"),
            Facts(facts),
        ),
        forms=PAGE,
    )
    environment = _flat_facts(document.environment)
    main_facts = ((name, text) for name, text in environment if name in _MAIN_FACTS)
    parts: tuple[Part, ...] = (
        Facts((*facts, *main_facts)),
        *([Command(command, "Again:")] if command else []),
    )
    yield Section("How it was measured", parts, forms=frozenset({"text"}))
    yield Section("How it was measured", parts, folded=True, forms=frozenset({"notebook"}))


def _run_facts(document: ResultDocument) -> Iterator[tuple[str, str]]:
    run = document.run
    yield "Run", run.id
    if (kind_facts := report_kind(document).facts(document)) is not None:
        yield from kind_facts
        return
    yield "Study", run.study
    yield "Started", run.started
    yield "Ended", run.ended or "it did not end"
    yield "Blocks", str(run.blocks)
    yield "Stopped by", run.stopped_because or "it did not end"
    yield "Seed", str(run.seed)


def _environments(document: ResultDocument) -> Iterator[Section]:
    sections = report_kind(document).environments(document)
    yield from [environment_section(document.environment)] if sections is None else sections


def environment_section(environment: Mapping[str, Any], title: str = "Environment") -> Section:
    """Build the section of a page with all facts of the environment; long parts are folded."""
    facts: list[tuple[str, str]] = []
    folded_sections: list[Part] = []
    for key, value in environment.items():
        if not isinstance(value, Mapping):
            facts.extend(_flat_facts({key: value}))
            continue
        lines = tuple(_flat_facts({key: _with_joined_names(value)}))
        if len(lines) < MIN_FOLDED_LINES:
            facts.extend(lines)
        else:
            heading = f"{capitalized(key.replace('_', ' '))} ({len(lines)} lines)"
            folded_sections.append(Section(heading, (Facts(lines),), folded=True, on_paper=False))
    return Section(title, (Facts(tuple(facts)), *folded_sections), forms=PAGE)


def _flat_facts(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each value; names of nested values are joined."""
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield from _flat_facts(value, f"{prefix}{key}, ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(str, value)) or "none"
        elif isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif str(key).endswith("_bytes") and isinstance(value, int | float):
            yield name.removesuffix(" bytes"), byte_count(value)
        else:
            yield name, "unknown" if value is None else str(value)


def _with_joined_names(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge entries with equal values (mappings) into one entry with joined names."""
    names_by_content: dict[tuple[str, str], list[str]] = {}
    for name, value in values.items():
        content = ("", repr(value)) if isinstance(value, Mapping) else (name, "")
        names_by_content.setdefault(content, []).append(name)
    return {
        _joined_names(names, len(values)): values[names[0]] for names in names_by_content.values()
    }


def _joined_names(names: list[str], name_count: int) -> str:
    if len(names) == name_count and name_count > _MAX_LISTED_NAMES:
        return f"all {name_count} alike"
    return listed(names, _MAX_LISTED_NAMES)


def _csv_rows(document: ResultDocument) -> Iterator[NumberRow]:
    """Yield a row of the CSV table for each condition and metric, with its comparison.

    After the column ``condition``, there is a column ``level_<factor>`` for each factor. The end of
    a metric's name is the unit of the value. The time of a trial that timed out is ``inf``.
    """
    comparisons: list[Comparison | SampleComparison] = [*document.comparisons, *document.samples]
    by_condition = {(row.candidate, row.metric): row for row in comparisons}
    for condition in document.conditions:
        for metric, summary in condition.metrics.items():
            comparison = by_condition.get((condition.name, metric))
            # A comparison of samples has no verdict and no equivalence interval.
            low, high = getattr(comparison, "equivalence_ci", (None, None))
            yield {
                "run": document.run.id,
                "study": document.run.study,
                "condition": condition.name,
                **{f"level_{factor}": level for factor, level in condition.levels.items()},
                **fields_of(condition, "trials", "failures"),
                "metric": metric,
                **interval_cells("median", summary.median, summary.median_ci),
                **fields_of(summary, "mean", "sd", "min", "p05", "p25", "p75", "p95", "max"),
                **fields_of(comparison, "baseline"),
                **ratio_cells(comparison),
                **fields_of(comparison, "mean_ratio", "e_value", "verdict"),
                "equivalence_low": low,
                "equivalence_high": high,
                **fields_of(comparison, "equivalence_level"),
            }
