"""The report of a fleet: the mean over the asked hosts, each host, and the answers over hosts.

In the heading ``host:name`` of a table, ``name`` is the kind of the column. The constants SCREEN,
TEXT, PAGE and WRITTEN select the forms of a document in which a part appears.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.quantity import metric_name
from equipoise.kinds.fleet.terms import (
    FleetAnswers,
    FleetComparison,
    FleetDocument,
    FleetHost,
    FleetInterval,
    FleetResult,
    HostDifference,
    HostEffect,
)
from equipoise.model.quantities import counted, listed, names_of
from equipoise.report.builders.conditions import shown_comparison, shown_verdict
from equipoise.report.builders.result import (
    ReportInput,
    campaign_figures,
    environment_section,
    how_it_ran,
    statements_section,
    whole_document,
)
from equipoise.report.builders.statements import campaign_answer, failures_of
from equipoise.report.document import (
    MAX_STATEMENTS,
    NOT_TERMINAL,
    PAGE,
    PAGE_AND_TEXT,
    TERMINAL,
    TEXT_AND_NOTEBOOK,
    UNKNOWN,
    Answer,
    Cell,
    Column,
    Command,
    CsvRow,
    CsvValue,
    Document,
    Paragraph,
    Part,
    Section,
    Statement,
    StyledText,
    Table,
    columns_and_rows,
    field_cells,
    ratio_cells,
)
from equipoise.report.json_document import is_interval_of_ratios
from equipoise.report.kind import KindReport
from equipoise.report.units import change_text, estimate_and_interval, metric_value, percentage
from equipoise.shared.spelling import option

MAX_HOST_ROWS = 24
"""Maximum number of rows for hosts that a table on a terminal shows."""
_MAX_MEDIAN_COLUMNS = 6
"""Maximum number of columns of the table of medians, without the first column."""
_STATE_SENTENCES = {
    "ended": "ended by its own rules",
    "stopped early": "stopped early",
    "not ended": "still measuring, or the connection broke",
    "no block": "no complete block",
    "absent": "nothing has arrived from it",
}
_PROPERTY_NAMES = {
    "cpu_model": "processor",
    "hypervisor": "virtualisation",
    "memory_bytes": "memory",
    "cpus": "CPUs",
}


class FleetReport(KindReport):
    """The report of a fleet."""

    top_figures = frozenset({"hosts"})
    figures_per_comparison = frozenset({"hosts"})

    def machine(self, document: FleetDocument) -> str | None:
        """Return how many hosts have blocks; ``None`` if all campaigns ran on one host."""
        fleet = document.fleet
        if fleet.is_one_host:
            return None
        return f"{sum(host.blocks > 0 for host in fleet.hosts)} of {len(fleet.hosts)} asked hosts"

    def document(self, report: ReportInput) -> Document:
        """Build the document of a fleet."""
        document = report.result
        assert isinstance(document, FleetDocument)
        fleet = document.fleet
        answer = _fleet_answer(document, fleet)
        top_figures, other_figures = campaign_figures(report)
        parts: tuple[Part, ...] = (
            answer,
            replace(top_figures, forms=PAGE_AND_TEXT),
            *statements_section(document, answer, answer.statements),
            *_parts_below_answer(document, fleet),
            other_figures,
            *how_it_ran(report),
        )
        return whole_document(report, answer, parts, _number_rows(document, fleet))

    def environments(self, document: FleetDocument) -> Iterator[Section]:
        """Build the environment that all hosts share, and the environment of each host."""
        yield environment_section(document.environment, "Environment that all hosts share")
        for host in document.fleet.hosts:
            if host.environment:
                section = environment_section(host.environment, f"Environment of {host.host}")
                yield replace(section, folded=True, on_paper=False)

    def contradictions(self, document: FleetDocument) -> Iterator[str]:
        """Yield sentences about impossible values in a document from a file."""
        return _contradictions(document.fleet, document.comparisons)


def _primary_comparisons(document: FleetDocument) -> list[FleetComparison]:
    metric = document.primary_metric
    return [comparison for comparison in document.comparisons if comparison.metric == metric]


def _fleet_answer(document: FleetDocument, fleet: FleetResult) -> Answer:
    """Build the answer: the mean over the asked hosts, or the reason why the mean is unknown."""
    answer, primary = campaign_answer(document), _primary_comparisons(document)
    if primary:
        statements = (
            _statement_over_hosts(statement, comparison, fleet)
            for statement, comparison in zip(answer.statements, primary, strict=False)
        )
        return replace(answer, statements=tuple(statements))
    if failures_of(document):
        return replace(answer, lines=(*answer.lines, fleet.summary))
    return replace(answer, title=fleet.summary, lines=())


def _parts_below_answer(document: FleetDocument, fleet: FleetResult) -> Iterator[Part]:
    """Build the parts below the answer: hosts, questions, properties, and the hosts' runs."""
    primary = _primary_comparisons(document)
    is_folded = len(primary) > MAX_STATEMENTS
    comparisons = [shown_comparison(document, comparison) for comparison in primary]
    if len(comparisons) == 1:
        (comparison,) = comparisons
        yield Section("Hosts", (_effects_table(fleet, comparison),))
        yield from _answers_section(comparison)
    else:
        yield Section("Hosts", (_states_table(fleet),))
        if is_folded:
            yield Section("Means over the asked hosts", (_means_table(document, primary),))
        for comparison in comparisons:
            tables = (_effects_table(fleet, comparison), *_answers_section(comparison))
            forms = NOT_TERMINAL if is_folded else TERMINAL | NOT_TERMINAL
            yield Section(_comparison_title(comparison), tables, folded=is_folded, forms=forms)
        if is_folded:
            yield Paragraph(
                f"The page of {option('report')} has the hosts of each comparison.", forms=TERMINAL
            )
    secondary = [comparison for comparison in document.comparisons if comparison not in primary]
    if secondary:
        yield Section("Other metrics", (_means_table(document, secondary),))
    yield from _control_sentence(fleet)
    yield from _medians_table(document, fleet)
    yield from _host_runs(fleet)


def _number_rows(document: FleetDocument, fleet: FleetResult) -> Iterator[CsvRow]:
    """Yield rows of numbers for each comparison: the mean over the asked hosts, then each host."""
    host_by_place = {host.place: host for host in fleet.hosts}
    for comparison in document.comparisons:
        common: CsvRow = {
            "run": document.run.id,
            "study": document.run.study,
            **field_cells(comparison, "baseline", "candidate", "metric"),
        }
        mean = {**ratio_cells(comparison), **field_cells(comparison, "blocks", "verdict")}
        yield {**common, "host": None, "of": "mean over the asked hosts", **mean}
        for effect in comparison.hosts:
            yield {
                **common,
                "host": effect.host,
                "of": "host",
                **ratio_cells(effect),
                "blocks": effect.blocks,
                "host_run": host_by_place[effect.place].run,
                **{f"host_{name}": _number_cell(fact) for name, fact in effect.environment.items()},
            }


def _number_cell(value: object) -> CsvValue:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _statement_over_hosts(
    statement: Statement, comparison: FleetComparison, fleet: FleetResult
) -> Statement:
    """Return the statement of a comparison, with the hosts to which the mean applies."""
    answers = comparison.fleet
    assert answers is not None, "a comparison of a fleet has its answers"
    subject = "these campaigns" if fleet.is_one_host else "the asked hosts"
    # The mean over the hosts that were not lost may still be known.
    mean_answers = (
        answers.mean,
        *(() if answers.mean_of_remaining is None else (answers.mean_of_remaining,)),
    )
    remarks = () if answers.mean.unknown_because is None else mean_answers
    return replace(
        statement,
        subject=f"{statement.subject}, mean over {subject}",
        certainty_lines=(),
        remarks=tuple(f"{remark.question} {remark.answer}" for remark in remarks),
        certainty_facts=(
            ("Smallest effect that matters", f"{comparison.min_effect:g} %"),
            ("Holds for", comparison.scope),
        ),
    )


def _effects_table(fleet: FleetResult, comparison: FleetComparison) -> Table:
    effect_by_place = {effect.place: effect for effect in comparison.hosts}
    differing_names = () if comparison.fleet is None else comparison.fleet.differences.differing
    notes: tuple[str, ...] = ()
    if comparison.hosts and len(fleet.hosts) > 1:
        coverage = percentage(1.0 - comparison.significance_level)
        notes = (f"All these intervals hold together with {coverage}.",)
    has_weights = len({effect.weight for effect in comparison.hosts}) > 1
    rows = (
        _host_row(host, effect_by_place.get(host.place), differing_names, has_weights=has_weights)
        for host in fleet.hosts
    )
    return Table(
        *columns_and_rows(rows),
        label=f"Hosts: {_comparison_title(comparison)}",
        notes=notes,
        max_rows=MAX_HOST_ROWS,
    )


def _host_row(
    host: FleetHost, effect: HostEffect | None, differing_names: Sequence[str], *, has_weights: bool
) -> Mapping[str, Cell]:
    estimate: Cell = UNKNOWN
    interval, blocks, weight = "", "0", UNKNOWN
    if effect is not None:
        ratio_text, interval = estimate_and_interval(effect.ratio, effect.ratio_ci, unknown=UNKNOWN)
        estimate = StyledText(ratio_text, "strong") if host.host in differing_names else ratio_text
        blocks, weight = str(effect.blocks), percentage(effect.weight)
    return {
        "host:name": host.host,
        "ratio:number": estimate,
        "interval": interval,
        **({"weight:number": weight} if has_weights else {}),
        "blocks:number": blocks,
        **_host_facts(host),
    }


def _host_facts(host: FleetHost) -> Mapping[str, Cell]:
    kernel, processor = map(host.environment.get, ("kernel", "cpu_model"))
    ending = _state_sentence(host)
    return {
        "kernel": UNKNOWN if kernel is None else str(kernel),
        "processor:name": UNKNOWN if processor is None else str(processor),
        "ended by": ending if host.state == "ended" else StyledText(ending, "caution"),
    }


def _state_sentence(host: FleetHost) -> str:
    state = _STATE_SENTENCES[host.state]
    if host.stopped_because is None:
        return state
    return f"{f'{state}: ' if host.state == 'stopped early' else ''}{host.stopped_because}"


def _states_table(fleet: FleetResult) -> Table:
    rows = (
        {"host:name": host.host, "blocks:number": str(host.blocks), **_host_facts(host)}
        for host in fleet.hosts
    )
    return Table(*columns_and_rows(rows), label="Hosts", max_rows=MAX_HOST_ROWS)


def _means_table(document: FleetDocument, comparisons: Sequence[FleetComparison]) -> Table:
    rows: list[Mapping[str, Cell]] = []
    for comparison in comparisons:
        shown = shown_comparison(document, comparison)
        estimate, interval = estimate_and_interval(shown.ratio, shown.ratio_ci, unknown=UNKNOWN)
        differing_names = () if comparison.fleet is None else comparison.fleet.differences.differing
        rows.append(
            {
                "candidate:name": comparison.candidate,
                "against:name": comparison.baseline,
                "metric": metric_name(comparison.metric),
                "mean over hosts:number": estimate,
                "interval": interval,
                "verdict": StyledText(shown_verdict(document, comparison), comparison.verdict),
                "differing hosts:text": listed(differing_names),
            }
        )
    return Table(*columns_and_rows(rows), label="Means over the asked hosts")


def _answers_section(comparison: FleetComparison) -> Iterator[Part]:
    answers = comparison.fleet
    if answers is None:
        return
    columns = (Column("question", "text"), Column("answer", "text"))
    rows = (
        (answer.question, answer.answer) for answer in answers.all if answer.unknown_because is None
    )
    open_questions: dict[str, list[str]] = defaultdict(list)
    for answer in answers.all:
        if answer.unknown_because is not None:
            open_questions[answer.unknown_because].append(answer.question)
    table = Table(
        columns,
        tuple(rows),
        label=f"Questions and answers: {_comparison_title(comparison)}",
        notes=tuple(
            f"Not answered: {' '.join(questions)} Reason: {reason}."
            for reason, questions in open_questions.items()
        ),
    )
    yield Section("Answers over the hosts", (table,))
    yield from _properties_section(comparison, answers)


def _properties_section(comparison: FleetComparison, answers: FleetAnswers) -> Iterator[Part]:
    if not answers.by_property:
        return
    rows = (
        {
            "hosts differ by": _PROPERTY_NAMES.get(effect.name, effect.name.replace("_", " "))
            if not index
            else "",
            "value:name": value.value,
            "hosts:number": str(len(value.hosts)),
            "which:text": names_of(value.hosts),
            "mean ratio:number": change_text(value.ratio, UNKNOWN),
        }
        for effect in answers.by_property
        for index, value in enumerate(effect.values)
    )
    table = Table(
        *columns_and_rows(rows),
        label=f"By properties of the hosts: {_comparison_title(comparison)}",
        notes=(answers.by_property_note,),
        max_rows=MAX_HOST_ROWS,
    )
    yield Section("By properties of the hosts", (table,))


def _control_sentence(fleet: FleetResult) -> Iterator[Part]:
    hosts_with_control = [host for host in fleet.hosts if host.control_excludes_one is not None]
    if hosts_with_control:
        differing_names = [host.host for host in hosts_with_control if host.control_excludes_one]
        names_clause = f": {names_of(differing_names)}" if differing_names else ""
        yield Paragraph(
            f"Control: the baseline against itself differs on {len(differing_names)} of "
            f"{counted(len(hosts_with_control), 'host')}{names_clause}."
        )


def _medians_table(document: FleetDocument, fleet: FleetResult) -> Iterator[Part]:
    hosts = [host for host in fleet.hosts if host.conditions]
    if not hosts:
        return
    names = [condition.name for condition in document.conditions]
    texts_by_host = (
        {
            condition.name: UNKNOWN
            if condition.median is None
            else metric_value(condition.median, condition.metric)
            for condition in host.conditions
        }
        for host in hosts
    )
    medians = [[texts.get(name, UNKNOWN) for name in names] for texts in texts_by_host]
    heading, column_noun = "host", "more condition"
    row_names, column_names = [host.host for host in hosts], names
    # The columns are the conditions, or the hosts if there are fewer hosts than conditions.
    if len(names) > len(hosts):
        heading, column_noun = "condition", "more host"
        row_names, column_names = column_names, row_names
        medians = [list(column) for column in zip(*medians, strict=True)]
    hidden_count = len(column_names) - _MAX_MEDIAN_COLUMNS
    column_names = column_names[:_MAX_MEDIAN_COLUMNS]
    title = "Medians on each host"
    table = Table(
        (Column(heading, "name"), *(Column(name, "number") for name in column_names)),
        tuple(
            (name, *row[: len(column_names)]) for name, row in zip(row_names, medians, strict=True)
        ),
        label=title,
        notes=(
            "Each median is that of one host.",
            *([f"The JSON has {counted(hidden_count, column_noun)}."] if hidden_count > 0 else []),
        ),
        max_rows=None if heading == "condition" else MAX_HOST_ROWS,
    )
    forms = NOT_TERMINAL if document.comparisons else TERMINAL | NOT_TERMINAL
    yield Section(title, (table,), folded=bool(document.comparisons), forms=forms)


def _host_runs(fleet: FleetResult) -> Iterator[Part]:
    """Build the table of the hosts' runs, and the command that shows the first run."""
    hosts_with_run = [(host, host.run) for host in fleet.hosts if host.run]
    if not hosts_with_run:
        return
    rows = (
        {"host:name": host.host, "run": run, "blocks:number": str(host.blocks)}
        for host, run in hosts_with_run
    )
    table = Table(*columns_and_rows(rows), label="Campaigns of the hosts", max_rows=MAX_HOST_ROWS)
    host, run = hosts_with_run[0]
    show_command = Command(
        shell_line(["equipoise", "show", run]), f"The campaign of {host.host} alone:"
    )
    yield Section("Campaigns of the hosts", (table, show_command), folded=True, forms=PAGE)
    yield Section("", (show_command,), forms=TERMINAL | TEXT_AND_NOTEBOOK)


def _comparison_title(comparison: FleetComparison) -> str:
    stratum = ", ".join(f"{factor} {level}" for factor, level in comparison.stratum.items())
    location = f" at {stratum}" if stratum else ""
    return f"{comparison.candidate} against {comparison.baseline}{location}"


def _contradictions(fleet: FleetResult, comparisons: Sequence[FleetComparison]) -> Iterator[str]:
    positions = [host.place for host in fleet.hosts]
    if positions != list(range(len(positions))):
        yield "the hosts of a fleet are not in order"
    if any(min(host.blocks, host.trials) < 0 for host in fleet.hosts):
        yield "a host of a fleet has a negative number of blocks"
    for comparison in comparisons:
        if any(not 0 <= effect.place < len(positions) for effect in comparison.hosts):
            yield "a comparison of a fleet names a host that is not in the fleet"
        if any(
            not 0.0 < effect.significance_level < 1.0 or effect.blocks < 0
            for effect in comparison.hosts
        ):
            yield "a host of a comparison has an impossible level or a negative number of blocks"
        estimates: list[HostEffect | HostDifference | FleetInterval] = [*comparison.hosts]
        if comparison.fleet is not None:
            answers = comparison.fleet
            estimates += (*answers.differences.hosts, answers.mean, answers.new_host)
            estimates += (answers.median_of_hosts, answers.new_host_if_normal)
        for estimate in estimates:
            is_ratio = estimate.ratio is None or 0.0 <= estimate.ratio < math.inf
            if not (is_ratio and is_interval_of_ratios(estimate.ratio_ci)):
                yield "a host or an answer of a fleet has an impossible ratio or interval"
