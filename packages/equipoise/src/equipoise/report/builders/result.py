"""Builds the document of a campaign, in the order: answer, tables, figures, causes, warnings.

Every part has ``forms``: the forms, such as a terminal or a page, that show it (see `document`). A
kind of campaign, such as `gate`, may replace some parts (see `kind_report`).
"""

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
from equipoise.report.builders import conditions, origin, reference, runs, shape, statements, why
from equipoise.report.document import (
    BRIEF_TERMINAL,
    EVERYWHERE,
    MAX_SIMILAR_LINES,
    MAX_STATEMENTS,
    NOT_BRIEF,
    NOT_TERMINAL,
    PAGE,
    TERMINAL,
    TEXT_AND_NOTEBOOK,
    UNKNOWN,
    VERBOSE_TERMINAL,
    Answer,
    Bullets,
    Column,
    Command,
    CsvRow,
    Document,
    Facts,
    Figures,
    Paragraph,
    Part,
    Section,
    Statement,
    Statements,
    Table,
    Warnings,
    field_cells,
    full_and_brief,
    interval_cells,
    ratio_cells,
)
from equipoise.report.kind import kind_report
from equipoise.report.units import (
    byte_count,
    capitalized,
    estimate_and_interval,
    percent_change,
    percentage,
)
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.figures.gallery import ConfidenceSequences, Figure

MIN_FOLDED_LINES = 8
"""Minimum number of lines of a folded part of the environment."""
_MAX_LISTED_NAMES = 3
"""Maximum number of names in the joined name of equal entries."""
_TOP_FIGURES = frozenset({"distributions"})
"""Names of the figures directly below the answer."""
_TOP_FIGURES_OF_MANY_COMPARISONS = frozenset({"ratios"})
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
"""Codes of the most important warnings, the most important first."""
_UNIMPORTANT_WARNING = "inflated"
"""Code of the least important warning."""
_MAIN_FACTS = frozenset(
    {"equipoise", "system", "kernel", "cpu model", "cpus", "governor", "memory", "hypervisor"}
)
"""Facts of the environment in a text or a notebook; a page and the JSON have all facts."""


class ReportInput(Struct, frozen=True):
    """Result of a campaign, and everything else that its report needs."""

    result: ResultDocument
    sequences: ConfidenceSequences = field(default_factory=dict)
    """Confidence sequences by candidate; a candidate may be missing."""
    study_figures: tuple[Figure, ...] = ()
    """Figures of the built-in study, which come first."""
    flame_graph: bytes | None = None
    """Flame graph of the explained gap as SVG."""
    ledger: Path | None = None
    """Path of the ledger with the campaign, for the terminal."""
    other_campaigns: Sequence[RunSummary] = ()
    """Other campaigns of the same commands, for the terminal."""
    max_dots: int = MAX_DOTS
    """Maximum number of trials for a dot per trial in a figure; more trials are binned."""


def campaign_documents(report_inputs: Sequence[ReportInput]) -> list[Document]:
    """Build the documents of several campaigns for one page.

    If all campaigns together have more than `MAX_DOTS` trials, they share this limit.
    """
    trial_count = sum(len(report_input.result.trials) for report_input in report_inputs)
    max_dots = MAX_DOTS if trial_count <= MAX_DOTS else MAX_DOTS // len(report_inputs)
    return [
        campaign_document(replace(report_input, max_dots=max_dots))
        for report_input in report_inputs
    ]


def campaign_document(report_input: ReportInput) -> Document:
    """Build the document of a campaign."""
    result = report_input.result
    if (kind_document := kind_report(result).document(report_input)) is not None:
        return kind_document
    answer = statements.campaign_answer(result)
    top_figures, other_figures = campaign_figures(report_input)
    has_kind_tables = bool(kind_report(result).tables(result))
    measured_parts = tuple(_measured_parts(result))
    parts: tuple[Part, ...] = (
        *_answer_for_each_form(result, answer),
        *_terminal_tables(result),
        top_figures,
        *statements.how_to_compare(result),
        *_text_tables(result),
        *_scaling_tables(result),
        *statements.ranking_parts(result),
        *_findings_section(result),
        *statements_section(result, answer, statements.statements_of(result)),
        *why.why_parts(result, report_input.flame_graph),
        *([] if result.against is None else [reference.reference_section(result.against)]),
        *([other_figures] if has_kind_tables else []),
        *measured_parts,
        *([] if has_kind_tables else [other_figures]),
        *_control_parts(result),
        *how_it_ran(report_input),
        # These lines describe times of processes, but the tables of a kind have other metrics.
        *(() if has_kind_tables else _terminal_shape_parts(result)),
    )
    return whole_document(report_input, answer, parts, _csv_rows(result))


def _answer_for_each_form(result: ResultDocument, answer: Answer) -> tuple[Answer, ...]:
    """Return the answers for all forms; a terminal's answer names sources of variation, if any."""
    if not (sentences := why.source_sentences(result)):
        return full_and_brief_answer(answer)
    title, *lines = sentences
    terminal_answer = replace(answer, title=title, lines=tuple(lines), forms=TERMINAL)
    return replace(answer, forms=NOT_TERMINAL), *full_and_brief_answer(terminal_answer)


def full_and_brief_answer(answer: Answer) -> tuple[Answer, Answer]:
    """Return the full answer, and a shorter answer for a brief terminal."""
    brief_statements = tuple(map(_brief_statement, answer.statements))
    return full_and_brief(answer, replace(answer, statements=brief_statements))


def _brief_statement(statement: Statement) -> Statement:
    is_number = any(map(str.isdigit, statement.estimate))
    estimate = f"estimate {statement.estimate}" if is_number else statement.estimate
    return replace(statement, subject="", estimate=estimate, certainty_lines=())


def whole_document(
    report_input: ReportInput, answer: Answer, parts: Iterable[Part], csv_rows: Iterable[CsvRow]
) -> Document:
    """Build a document from ``parts`` and the parts that end the report of every kind."""
    result = report_input.result
    return Document(
        name=result.run.id,
        title=answer.title or answer.statements[0].text,
        parts=(
            *parts,
            *_warning_parts(result),
            *_repetition(report_input),
            *_environments(result),
            *runs.other_campaigns_parts(report_input.other_campaigns),
            _run_line(result),
        ),
        csv_rows=tuple(csv_rows),
        origin=origin.origin_of(result, result.run.command_line or ""),
    )


def statements_section(
    result: ResultDocument, answer: Answer, all_statements: Sequence[Statement]
) -> Iterator[Section]:
    """Build the section with all statements, unless the answer has them; folded if none differ."""
    if not answer.statements:
        is_folded = bool(statements.no_difference_sentence(result))
        parts = (Statements(tuple(all_statements)),)
        yield Section("Comparisons", parts, folded=is_folded, forms=PAGE)


def _terminal_shape_parts(result: ResultDocument) -> Iterator[Part]:
    # Drift cannot bias a comparison, whose order is random, so a brief terminal omits it.
    forms = VERBOSE_TERMINAL if result.comparisons else TERMINAL
    yield from (replace(line, forms=forms) for line in shape.terminal_shape_lines(result))


def _warning_parts(result: ResultDocument) -> Iterator[Part]:
    """Build the warnings that are not in the answer; a brief terminal shows only one of them."""
    failures = statements.failures_of(result)
    warnings = tuple(warning for warning in result.warnings if warning not in failures)
    if not warnings:
        yield Warnings(warnings, forms=PAGE)
    else:
        yield Warnings(warnings, forms=NOT_BRIEF)
        yield Warnings((min(warnings, key=_importance_rank),), forms=BRIEF_TERMINAL)
        if hidden_count := len(warnings) - 1:
            text = f"  {counted(hidden_count, 'more warning')}: {option('verbose')}"
            yield Paragraph(text, "dim", forms=BRIEF_TERMINAL)


def _importance_rank(warning: CampaignWarning) -> int:
    """Return the rank of a warning; the most important warning has the rank 0."""
    if warning.code in _IMPORTANT_WARNINGS:
        return _IMPORTANT_WARNINGS.index(warning.code)
    ordinary_rank = len(_IMPORTANT_WARNINGS)
    return ordinary_rank + 1 if warning.code == _UNIMPORTANT_WARNING else ordinary_rank


def campaign_figures(report_input: ReportInput) -> tuple[Figures, Figures]:
    """Return the figures directly below the answer, and the other figures."""
    result, max_dots = report_input.result, report_input.max_dots
    is_long = len(result.primary_comparisons) > MAX_STATEMENTS
    kind = kind_report(result)
    top_names = _TOP_FIGURES_OF_MANY_COMPARISONS if is_long else _TOP_FIGURES | kind.top_figures

    @functools.cache
    def draw() -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
        from equipoise.figures.gallery import gallery

        top_figures = list(report_input.study_figures)
        other_figures: list[Figure] = []
        for figure in gallery(result, report_input.sequences, max_dots=max_dots):
            (top_figures if figure.name in top_names else other_figures).append(figure)
        return tuple(top_figures), tuple(other_figures)

    unprinted_names: frozenset[str] = frozenset()
    if is_long:
        unprinted_names = _FIGURES_PER_COMPARISON | kind.figures_per_comparison
    return (
        Figures(lambda: draw()[0], "At a glance"),
        Figures(lambda: draw()[1], unprinted_names=unprinted_names),
    )


def _terminal_tables(result: ResultDocument) -> Iterator[Part]:
    comparisons = result.primary_comparisons
    is_grouped = len(comparisons) > MAX_STATEMENTS or any(
        comparison.stratum for comparison in comparisons
    )
    kind_tables = kind_report(result).tables(result)
    if is_grouped or statements.no_difference_sentence(result):
        yield conditions.grouped_table(result)
        if result.run.study != COMPARE_STUDY:
            factor = conditions.compared_factor(result, comparisons[0])
            yield from conditions.scaling_tables(result, result.primary_metric, factor)
    elif kind_tables:
        yield from (replace(table, forms=VERBOSE_TERMINAL) for table in kind_tables)
        brief_tables = kind_report(result).brief_tables(result)
        yield from (replace(table, forms=BRIEF_TERMINAL) for table in brief_tables)
    else:
        yield replace(conditions.terminal_table(result), forms=TERMINAL)
    if not kind_tables:
        yield from (replace(table, forms=TERMINAL) for table in conditions.further_tables(result))


def _scaling_tables(result: ResultDocument) -> Iterator[Part]:
    if result.run.study == COMPARE_STUDY:
        tables = conditions.scaling_tables(result, result.primary_metric, None)
        yield from (replace(table, forms=EVERYWHERE) for table in tables)


def _text_tables(result: ResultDocument) -> Iterator[Part]:
    if kind_tables := kind_report(result).tables(result):
        yield from (replace(table, forms=TEXT_AND_NOTEBOOK) for table in kind_tables)
    else:
        yield conditions.text_table(result)
        further_tables = conditions.further_tables(result)
        yield from (replace(table, forms=TEXT_AND_NOTEBOOK) for table in further_tables)


def _findings_section(result: ResultDocument) -> Iterator[Part]:
    findings = result.findings
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


def _measured_parts(result: ResultDocument) -> Iterator[Part]:
    comparisons = result.other_comparisons
    other_metrics: list[Part] = []
    if comparisons:
        other_metrics = [conditions.other_metrics_table(result, comparisons)]
    yield from kind_report(result).measured_parts(result)
    if kind_tables := kind_report(result).tables(result):
        yield Section("Every row", tuple(kind_tables), forms=PAGE)
    else:
        further_tables = conditions.further_tables(result)
        parts = (conditions.page_table(result), *further_tables, *other_metrics)
        yield Section("Conditions", parts, forms=PAGE)
        yield from (replace(table, forms=TERMINAL | TEXT_AND_NOTEBOOK) for table in other_metrics)
    steady_sentences = tuple(map(shape.steady_sentence, result.steady_state))
    if steady_sentences:
        yield Bullets(steady_sentences, max_items=MAX_SIMILAR_LINES, forms=VERBOSE_TERMINAL)
    yield from shape.variance_parts(tuple(shape.variance_rows(result)))
    yield shape.shape_section(result, result.primary_comparisons)


def _control_parts(result: ResultDocument) -> Iterator[Part]:
    control = result.control
    if control is None:
        return
    comparison = conditions.shown_comparison(result, control.comparison)
    floor = control.noise_floor
    estimate, interval = estimate_and_interval(comparison.ratio, comparison.ratio_ci)
    floor_text = "unknown: the interval is still unlimited"
    if floor is not None:
        floor_text = f"{percent_change(floor).removeprefix('+')}: less than that may be noise here"
    yield Paragraph(f"control: {control.summary}; interval {interval}", forms=TERMINAL)
    difference = f"{comparison.candidate} against {comparison.baseline}"
    facts = (
        (difference, estimate),
        (f"{percentage(1.0 - comparison.significance_level)} interval", interval),
        ("Noise floor", floor_text),
        ("Trials", str(control.condition.trials)),
    )
    parts = (Paragraph(capitalized(control.summary)), Facts(facts))
    yield Section("Control: the baseline against itself", parts, forms=NOT_TERMINAL)


def how_it_ran(report_input: ReportInput) -> Iterator[Part]:
    """Build the lines of a terminal that say how the campaign ran."""
    result, run = report_input.result, report_input.result.run
    ledger = f", ledger {report_input.ledger}" if report_input.ledger is not None else ""
    if (kind_parts := kind_report(result).how_it_ran(report_input)) is not None:
        yield from kind_parts
        return
    scope = "nothing was compared"
    if result.comparisons:
        scope = result.comparisons[0].scope
    elif result.typical is not None:
        scope = result.typical.scope
    elif (kind_scope := kind_report(result).scope_of(result)) is not None:
        scope = kind_scope
    elif not run.blocks:
        scope = "nothing: no block is complete"
    ended = f"stopped by: {run.stopped_because or 'it did not end'}"
    lines = [
        f"{counted(run.blocks, 'block')}; {ended}; scope: {scope}",
        f"run {run.id}, seed {run.seed}{ledger}",
    ]
    if result.duet is not None:
        lines.append(result.duet.summary)
    if certificate := result.environment.get("certificate"):
        lines.append(f"certificate of this host: {certificate}")
    yield Bullets(tuple(lines), "dim", forms=VERBOSE_TERMINAL)


def _run_line(result: ResultDocument) -> Paragraph:
    run = result.run
    origin = kind_report(result).origin(result)
    if origin is None:
        ended = run.stopped_because or "it did not end"
        manner = "" if result.duet is None else " of trials at once"
        origin = f"{counted(run.blocks, 'block')}{manner}, stopped by: {ended}"
    text = f"run {run.id}: {origin} (more: {option('verbose')})"
    return Paragraph(text, "dim", forms=BRIEF_TERMINAL)


def _repetition(report_input: ReportInput) -> Iterator[Part]:
    result = report_input.result
    command = result.run.command_line
    show_command = shell_line(["equipoise", "show", result.run.id])
    facts = tuple(_run_facts(result))
    purpose = kind_report(result).repetition_purpose
    yield Section(
        "Run it again",
        (
            *([Command(command, purpose)] if command else []),
            Command(show_command, "From the ledger that holds it, without measuring again:"),
            Facts(facts),
        ),
        forms=PAGE,
    )
    environment = _flat_facts(result.environment)
    main_facts = ((name, text) for name, text in environment if name in _MAIN_FACTS)
    parts: tuple[Part, ...] = (
        Facts((*facts, *main_facts)),
        *([Command(command, "Again:")] if command else []),
    )
    yield Section("How it was measured", parts, forms=frozenset({"text"}))
    yield Section("How it was measured", parts, folded=True, forms=frozenset({"notebook"}))


def _run_facts(result: ResultDocument) -> Iterator[tuple[str, str]]:
    run = result.run
    yield "Run", run.id
    if (kind_facts := kind_report(result).facts(result)) is not None:
        yield from kind_facts
        return
    yield "Study", run.study
    yield "Started", run.started
    yield "Ended", run.ended or "it did not end"
    yield "Blocks", str(run.blocks)
    if result.duet is not None:
        yield "At once", result.duet.summary
    yield "Stopped by", run.stopped_because or "it did not end"
    yield "Seed", str(run.seed)


def _environments(result: ResultDocument) -> Iterator[Section]:
    sections = kind_report(result).environments(result)
    yield from [environment_section(result.environment)] if sections is None else sections


def environment_section(environment: Mapping[str, Any], title: str = "Environment") -> Section:
    """Build a page's section with all facts of an environment; long parts are folded."""
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
    """Yield a name and a text for each value; the name of a nested value has all its keys."""
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
    """Merge entries whose values are equal mappings, such as equal CPUs; join their names."""
    equal_names: dict[tuple[str, str], list[str]] = {}
    for name, value in values.items():
        key = ("", repr(value)) if isinstance(value, Mapping) else (name, "")
        equal_names.setdefault(key, []).append(name)
    return {_joined_names(names, len(values)): values[names[0]] for names in equal_names.values()}


def _joined_names(names: list[str], name_count: int) -> str:
    if len(names) == name_count and name_count > _MAX_LISTED_NAMES:
        return f"all {name_count} alike"
    return listed(names, _MAX_LISTED_NAMES)


def _csv_rows(result: ResultDocument) -> Iterator[CsvRow]:
    """Yield a row of the CSV table for each condition and metric, with its comparison.

    Each factor has a column ``level_<factor>``. A metric's name ends in its unit. The time of a
    trial that timed out is ``inf``.
    """
    comparisons: list[Comparison | SampleComparison] = [*result.comparisons, *result.samples]
    by_candidate = {(row.candidate, row.metric): row for row in comparisons}
    for condition in result.conditions:
        for metric, summary in condition.metrics.items():
            comparison = by_candidate.get((condition.name, metric))
            # A comparison of samples has no verdict and no equivalence interval.
            low, high = getattr(comparison, "equivalence_ci", (None, None))
            yield {
                "run": result.run.id,
                "study": result.run.study,
                "condition": condition.name,
                **{f"level_{factor}": level for factor, level in condition.levels.items()},
                **field_cells(condition, "trials", "failures"),
                "metric": metric,
                **interval_cells("median", summary.median, summary.median_ci),
                **field_cells(summary, "mean", "sd", "min", "p05", "p25", "p75", "p95", "max"),
                **field_cells(comparison, "baseline"),
                **ratio_cells(comparison),
                **field_cells(comparison, "mean_ratio", "e_value", "verdict"),
                "equivalence_low": low,
                "equivalence_high": high,
                **field_cells(comparison, "equivalence_level"),
            }
