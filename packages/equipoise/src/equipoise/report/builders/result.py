"""A campaign of any kind as a document: what was measured, compared, explained and imported."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.values import EVERY_TRIAL
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import counted, listed
from equipoise.model.record import CampaignWarning, RunSummary
from equipoise.model.result import (
    Comparison,
    ResultDocument,
    SampleComparison,
)
from equipoise.report.builders import (
    claims,
    conditions,
    origin,
    reference,
    runs,
    shape,
    why,
)
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
    ratio_numbers,
    whole_and_brief,
    with_interval,
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

FOLDED_FROM = 8
"""A part of the environment with this many lines is folded."""
_NAMES_SHOWN = 3
_FIRST_FIGURES = frozenset({"distributions"})
"""Figures right below the answer."""
_FIGURES_OF_EACH = frozenset({"sequence", "shift"})
"""Figures of one comparison each: of many comparisons they fill pages."""
_FIRST_OF_MANY = frozenset({"ratios"})
"""Of many comparisons: all in one figure."""
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
"""Codes of the warnings that a brief screen shows before all others, the most important first."""
_LAST_IMPORTANT_WARNING = "inflated"
_ASKED_FIRST = frozenset(
    {"equipoise", "system", "kernel", "cpu model", "cpus", "governor", "memory", "hypervisor"}
)
"""Facts of the environment that a reader asks for first; the page and the JSON have all."""


class CampaignReport(Struct, frozen=True):
    """Result of a campaign, with everything else that its report needs."""

    document: ResultDocument
    sequences: Sequences = field(default_factory=dict)
    """For each candidate, where its interval stood after each block; may lack some."""
    study_figures: tuple[Figure, ...] = ()
    """Figures of the built-in study, which come first."""
    flame_graph: bytes | None = None
    """SVG of the gap that the document explains."""
    ledger: Path | None = None
    """Where the campaign is kept; for the terminal."""
    earlier: Sequence[RunSummary] = ()
    """Campaigns of the same commands; for the terminal."""
    every_trial: int = EVERY_TRIAL
    """Number of trials that a figure draws one by one; it bins more."""


def campaign_documents(reports: Sequence[CampaignReport]) -> list[Document]:
    """Build one document for each campaign, for a page that they share.

    At most ``EVERY_TRIAL`` trials are drawn one by one over all of them; beyond, each campaign
    gets its part of them and bins the others.
    """
    total = sum(len(report.document.trials) for report in reports)
    each = EVERY_TRIAL if total <= EVERY_TRIAL else EVERY_TRIAL // len(reports)
    return [campaign_document(replace(report, every_trial=each)) for report in reports]


def campaign_document(report: CampaignReport) -> Document:
    """Build the document of a campaign."""
    document = report.document
    if (own := report_kind(document).document(report)) is not None:
        return own
    answer = claims.campaign_answer(document)
    first, others = campaign_figures(report)
    has_rows = bool(report_kind(document).tables(document))
    tables = tuple(_screen_tables(document))
    measured = tuple(_measured(document))
    parts: tuple[Part, ...] = (
        *_answers(document, answer),
        *tables,
        first,
        *claims.how_to_compare(document),
        *_written_tables(document),
        *_growth(document),
        *claims.ranking_parts(document),
        *_findings(document),
        *claims_section(document, answer, claims.claims_of(document)),
        *why.why_parts(document, report.flame_graph),
        *([] if document.against is None else [reference.reference_section(document.against)]),
        *((others, *measured) if has_rows else (*measured, others)),
        *_control(document),
        *how_it_ran(report),
        # How long the process of a row takes says nothing of what the row measures.
        *(() if has_rows else _shape_lines(document)),
    )
    return whole_document(report, answer, parts, _numbers(document))


def _answers(document: ResultDocument, answer: Answer) -> tuple[Answer, ...]:
    """Return the answer of each form: a terminal begins with the sources of chance, if any."""
    if not (sentences := why.source_sentences(document)):
        return brief_and_verbose(answer)
    title, *lines = sentences
    on_terminal = replace(answer, title=title, lines=tuple(lines), forms=SCREEN)
    return replace(answer, forms=WRITTEN), *brief_and_verbose(on_terminal)


def brief_and_verbose(answer: Answer) -> tuple[Answer, Answer]:
    """Return the answer, and the same without its details for a brief screen."""
    claims = tuple(map(_brief_claim, answer.claims))
    return whole_and_brief(answer, replace(answer, claims=claims))


def _brief_claim(claim: Claim) -> Claim:
    """Return a claim without its details; its sentence names the two that are compared."""
    is_number = any(map(str.isdigit, claim.estimate))
    estimate = f"estimate {claim.estimate}" if is_number else claim.estimate
    return replace(claim, subject="", estimate=estimate, certainty=())


def whole_document(
    report: CampaignReport, answer: Answer, parts: Iterable[Part], numbers: Iterable[NumberRow]
) -> Document:
    """Put behind the parts of one kind of campaign what the document of every kind ends with."""
    document = report.document
    return Document(
        name=document.run.id,
        title=answer.title or answer.claims[0].text,
        parts=(
            *parts,
            *_warnings(document),
            *_repetition(report),
            *_environments(document),
            *runs.earlier_parts(report.earlier),
            _run_line(document),
        ),
        numbers=tuple(numbers),
        origin=origin.origin_of(document, document.run.command_line or ""),
    )


def claims_section(
    document: ResultDocument, answer: Answer, all_claims: Sequence[Claim]
) -> Iterator[Section]:
    """Build the claims that are not in the answer; folded where each says that nothing is known."""
    if not answer.claims:
        alike = bool(claims.no_difference(document))
        yield Section("Comparisons", (Claims(tuple(all_claims)),), folded=alike, forms=PAGE)


def _shape_lines(document: ResultDocument) -> Iterator[Part]:
    """Build the lines on shapes; nothing keeps a drift out of what was not compared by the coin."""
    forms = VERBOSE if document.comparisons else SCREEN
    yield from (replace(line, forms=forms) for line in shape.shape_lines_of_screen(document))


def _warnings(document: ResultDocument) -> Iterator[Part]:
    """Build the warnings that the answer does not hold; only a page mentions that there is none.

    A brief screen has the most important one.
    """
    failures = claims.failures_of(document)
    warnings = tuple(warning for warning in document.warnings if warning not in failures)
    if not warnings:
        yield Warnings(warnings, forms=PAGE)
    else:
        yield Warnings(warnings, forms=EVERYWHERE - BRIEF)
        yield Warnings((min(warnings, key=_importance),), forms=BRIEF)
        if more := len(warnings) - 1:
            yield Paragraph(
                f"  {counted(more, 'more warning')}: {option('verbose')}", "dim", forms=BRIEF
            )


def _importance(warning: CampaignWarning) -> int:
    """Return the place of a warning among others; the smallest is the most important."""
    first = len(_IMPORTANT_WARNINGS)
    if warning.code in _IMPORTANT_WARNINGS:
        return _IMPORTANT_WARNINGS.index(warning.code)
    return first + 1 if warning.code == _LAST_IMPORTANT_WARNING else first


def campaign_figures(report: CampaignReport) -> tuple[Figures, Figures]:
    """Return the figures below the answer, and the others; all are drawn at most once."""
    document, every_trial = report.document, report.every_trial
    many = len(document.primary_comparisons) > MAX_CLAIMS
    kind = report_kind(document)
    first_names = _FIRST_OF_MANY if many else _FIRST_FIGURES | kind.first_figures

    @functools.cache
    def drawn() -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
        from equipoise.figures.gallery import gallery

        first = list(report.study_figures)
        others: list[Figure] = []
        for figure in gallery(document, report.sequences, every_trial=every_trial):
            (first if figure.name in first_names else others).append(figure)
        return tuple(first), tuple(others)

    unprinted_names = _FIGURES_OF_EACH | kind.figures_per_comparison if many else frozenset[str]()
    return (
        Figures(lambda: drawn()[0], "At a glance"),
        Figures(lambda: drawn()[1], unprinted_names=unprinted_names),
    )


def _screen_tables(document: ResultDocument) -> Iterator[Part]:
    """Build what the terminal shows above the answer."""
    primary = document.primary_comparisons
    several = len(primary) > MAX_CLAIMS or any(comparison.stratum for comparison in primary)
    rows = report_kind(document).tables(document)
    if several or claims.no_difference(document):
        yield conditions.grouped_table(document)
        if document.run.study != COMPARE_STUDY:
            factor = conditions.compared_factor(document, primary[0])
            yield from conditions.scaling_tables(document, document.primary_metric, factor)
    elif rows:
        yield from (replace(table, forms=VERBOSE) for table in rows)
        brief = report_kind(document).brief_tables(document)
        yield from (replace(table, forms=BRIEF) for table in brief)
    else:
        yield replace(conditions.screen_table(document), forms=SCREEN)
    if not rows:
        yield from (replace(table, forms=SCREEN) for table in conditions.further_tables(document))


def _growth(document: ResultDocument) -> Iterator[Part]:
    """Build the scaling laws of the parameters of `compare` that are sizes."""
    if document.run.study == COMPARE_STUDY:
        tables = conditions.scaling_tables(document, document.primary_metric, None)
        yield from (replace(table, forms=EVERYWHERE) for table in tables)


def _written_tables(document: ResultDocument) -> Iterator[Part]:
    if rows := report_kind(document).tables(document):
        yield from (replace(table, forms=TEXT) for table in rows)
    else:
        yield conditions.written_table(document)
        yield from (replace(table, forms=TEXT) for table in conditions.further_tables(document))


def _findings(document: ResultDocument) -> Iterator[Part]:
    """Build the findings of a built-in study beyond its verdicts."""
    findings = document.findings
    if findings is None or not (findings.tables or findings.paragraphs):
        return
    tables = []
    for table in findings.tables:
        columns = []
        for place, heading in enumerate(table.headings):
            cells = [row[place] for row in table.rows]
            numbers = all(cell[:1].isdigit() or cell in ("", UNKNOWN) for cell in cells)
            columns.append(Column(heading, "number" if numbers else "words"))
        tables.append(Table(tuple(columns), table.rows, table.title, notes=table.notes))
    yield Section("Findings", (*map(Paragraph, findings.paragraphs), *tables))


def _measured(document: ResultDocument) -> Iterator[Part]:
    """Build what was measured of each condition, beyond the answer."""
    others = document.other_comparisons
    tables: list[Part] = [conditions.others_table(document, others)] if others else []
    yield from report_kind(document).measured_parts(document)
    if rows := report_kind(document).tables(document):
        yield Section("Every row", tuple(rows), forms=PAGE)
    else:
        further = conditions.further_tables(document)
        parts = (conditions.page_table(document), *further, *tables)
        yield Section("Conditions", parts, forms=PAGE)
        yield from (replace(table, forms=SCREEN | TEXT) for table in tables)
    steady = tuple(map(shape.steady_sentence, document.steady_state))
    if steady:
        yield Bullets(steady, max_items=MAX_ALIKE, forms=VERBOSE)
    yield from shape.level_parts(tuple(shape.levels_of(document)))
    yield shape.shape_section(document, document.primary_comparisons)


def _control(document: ResultDocument) -> Iterator[Part]:
    control = document.control
    if control is None:
        return
    comparison = conditions.shown_comparison(document, control.comparison)
    floor = control.noise_floor
    estimate, interval = estimate_and_interval(comparison.ratio, comparison.ratio_ci)
    noise = "unknown: the interval is still unlimited"
    if floor is not None:
        noise = f"{percent_change(floor).removeprefix('+')}: less than that may be noise here"
    yield Paragraph(f"control: {control.summary}; interval {interval}", forms=SCREEN)
    difference = f"{comparison.candidate} against {comparison.baseline}"
    facts = (
        (difference, estimate),
        (f"{percentage(1.0 - comparison.level)} interval", interval),
        ("Noise floor", noise),
        ("Trials", str(control.condition.trials)),
    )
    parts = (Paragraph(capitalized(control.summary)), Facts(facts))
    yield Section("Control: the baseline against itself", parts, forms=WRITTEN)


def how_it_ran(report: CampaignReport) -> Iterator[Part]:
    """Build the terminal's lines on the campaign."""
    document, run = report.document, report.document.run
    ledger = f", ledger {report.ledger}" if report.ledger is not None else ""
    if (own := report_kind(document).how_it_ran(report)) is not None:
        yield from own
        return
    scope = "nothing was compared"
    if document.comparisons:
        scope = document.comparisons[0].scope
    elif document.typical is not None:
        scope = document.typical.scope
    elif (own_scope := report_kind(document).scope_of(document)) is not None:
        scope = own_scope
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
    """Return the last line of a brief screen: which run it shows, and how to see more."""
    run = document.run
    origin = report_kind(document).origin(document)
    if origin is None:
        ended = run.stopped_because or "it did not end"
        origin = f"{counted(run.blocks, 'block')}, stopped by: {ended}"
    return Paragraph(f"run {run.id}: {origin} (more: {option('verbose')})", "dim", forms=BRIEF)


def _repetition(report: CampaignReport) -> Iterator[Part]:
    """Build the command that runs the campaign again, and how it was measured."""
    document = report.document
    command = document.run.command_line
    show = shell_line(["equipoise", "show", document.run.id])
    facts = tuple(_run_facts(document))
    again = report_kind(document).repetition_purpose
    yield Section(
        "Run it again",
        (
            *([Command(command, again)] if command else []),
            Command(show, "From the ledger that holds it, without measuring again:"),
            Facts(facts),
        ),
        forms=PAGE,
    )
    known = (fact for fact in _flattened(document.environment) if fact[0] in _ASKED_FIRST)
    measured: tuple[Part, ...] = (
        Facts((*facts, *known)),
        *([Command(command, "Again:")] if command else []),
    )
    yield Section("How it was measured", measured, forms=frozenset({"text"}))
    yield Section("How it was measured", measured, folded=True, forms=frozenset({"notebook"}))


def _run_facts(document: ResultDocument) -> Iterator[tuple[str, str]]:
    run = document.run
    yield "Run", run.id
    if (own := report_kind(document).facts(document)) is not None:
        yield from own
        return
    yield "Study", run.study
    yield "Started", run.started
    yield "Ended", run.ended or "it did not end"
    yield "Blocks", str(run.blocks)
    yield "Stopped by", run.stopped_because or "it did not end"
    yield "Seed", str(run.seed)


def _environments(document: ResultDocument) -> Iterator[Section]:
    """Build the environment of the campaign."""
    if (own := report_kind(document).environments(document)) is not None:
        yield from own
        return
    yield environment_section(document.environment)


def environment_section(environment: Mapping[str, Any], title: str = "Environment") -> Section:
    """Build the page's section on the environment: all that is known, long parts folded."""
    facts: list[tuple[str, str]] = []
    folded: list[Part] = []
    for key, value in environment.items():
        if not isinstance(value, Mapping):
            facts.extend(_flattened({key: value}))
            continue
        lines = tuple(_flattened({key: _equal_once(value)}))
        if len(lines) < FOLDED_FROM:
            facts.extend(lines)
        else:
            heading = f"{capitalized(key.replace('_', ' '))} ({len(lines)} lines)"
            folded.append(Section(heading, (Facts(lines),), folded=True, on_paper=False))
    return Section(title, (Facts(tuple(facts)), *folded), forms=PAGE)


def _flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested values as names and values; what is null is unknown."""
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{prefix}{key}, ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(str, value)) or "none"
        elif isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif str(key).endswith("_bytes") and isinstance(value, int | float):
            yield name.removesuffix(" bytes"), byte_count(value)
        else:
            yield name, "unknown" if value is None else str(value)


def _equal_once(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put mappings of equal content under one name, which says whose they are."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, value in values.items():
        content = ("", repr(value)) if isinstance(value, Mapping) else (name, "")
        names.setdefault(content, []).append(name)
    return {_joined_names(equal, len(values)): values[equal[0]] for equal in names.values()}


def _joined_names(names: list[str], of: int) -> str:
    if len(names) == of and of > _NAMES_SHOWN:
        return f"all {of} alike"
    return listed(names, _NAMES_SHOWN)


def _numbers(document: ResultDocument) -> Iterator[NumberRow]:
    """Yield a row for each condition and metric, with its comparison.

    After the condition comes ``level_<factor>`` for each factor. Values are in the unit that the
    metric's name ends in; ``inf`` is that of trials that timed out.
    """
    comparisons: list[Comparison | SampleComparison] = [*document.comparisons, *document.samples]
    compared = {(row.candidate, row.metric): row for row in comparisons}
    for condition in document.conditions:
        for metric, summary in condition.metrics.items():
            comparison = compared.get((condition.name, metric))
            # Samples have no verdict.
            within = getattr(comparison, "equivalence_ci", (None, None))
            yield {
                "run": document.run.id,
                "study": document.run.study,
                "condition": condition.name,
                **{f"level_{factor}": level for factor, level in condition.levels.items()},
                **fields_of(condition, "trials", "failures"),
                "metric": metric,
                **with_interval("median", summary.median, summary.median_ci),
                **fields_of(summary, "mean", "sd", "min", "p05", "p25", "p75", "p95", "max"),
                **fields_of(comparison, "baseline"),
                **ratio_numbers(comparison),
                **fields_of(comparison, "mean_ratio", "e_value", "verdict"),
                "equivalence_low": within[0],
                "equivalence_high": within[1],
                **fields_of(comparison, "equivalence_level"),
            }
