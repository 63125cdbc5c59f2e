"""A fleet: the mean over the asked hosts, each host, and the questions that they answer."""

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
from equipoise.report.builders.claims import (
    campaign_answer,
    failures_of,
)
from equipoise.report.builders.conditions import shown_comparison, shown_verdict
from equipoise.report.builders.result import (
    CampaignReport,
    campaign_figures,
    claims_below,
    environment_section,
    how_it_ran,
    whole_document,
)
from equipoise.report.document import (
    MAX_CLAIMS,
    PAGE,
    SCREEN,
    TEXT,
    UNKNOWN,
    WITH_PICTURES,
    WRITTEN,
    Answer,
    Cell,
    Claim,
    Column,
    Command,
    Document,
    Number,
    NumberRow,
    Paragraph,
    Part,
    Section,
    Styled,
    Table,
    fields_of,
    headed,
    ratio_numbers,
)
from equipoise.report.json_document import is_interval_of_ratios
from equipoise.report.kind import ReportKind
from equipoise.report.units import (
    change_text,
    estimate_and_interval,
    metric_value,
    percentage,
)
from equipoise.shared.spelling import option

MAX_HOSTS = 24
"""Number of hosts of a table that a terminal shows."""
_MAX_MEDIAN_COLUMNS = 6
"""Number of columns of a table of medians."""
_STATES = {
    "ended": "ended by its own rules",
    "left": "left",
    "behind": "measures still, or the connection broke",
    "no block": "no block is complete",
    "absent": "nothing of it has come",
}
_NAMES = {
    "cpu_model": "processor",
    "hypervisor": "virtualisation",
    "memory_bytes": "memory",
    "cpus": "CPUs",
}


class FleetReport(ReportKind):
    """How the document of a fleet is shown."""

    first_figures = frozenset({"hosts"})
    figures_of_each = frozenset({"hosts"})

    def machine(self, document: FleetDocument) -> str | None:
        """Return how many of the asked hosts delivered; ``None`` if all campaigns are of one."""
        fleet = document.fleet
        if fleet.one_host:
            return None
        return f"{sum(host.blocks > 0 for host in fleet.hosts)} of {len(fleet.hosts)} asked hosts"

    def document(self, report: CampaignReport) -> Document:
        """Build the document of a fleet."""
        document = report.document
        assert isinstance(document, FleetDocument)
        fleet = document.fleet
        first = answer(document, fleet)
        at_a_glance, others = campaign_figures(report)
        whole: tuple[Part, ...] = (
            first,
            replace(at_a_glance, forms=WITH_PICTURES),
            *claims_below(document, first, first.claims),
            *parts(document, fleet),
            others,
            *how_it_ran(report),
        )
        return whole_document(report, first, whole, numbers(document, fleet))

    def environments(self, document: FleetDocument) -> Iterator[Section]:
        """Build what all hosts share, and the environment of each."""
        yield environment_section(document.environment, "Environment that all hosts share")
        for host in document.fleet.hosts:
            if host.environment:
                section = environment_section(host.environment, f"Environment of {host.host}")
                yield replace(section, folded=True, on_paper=False)

    def impossible(self, document: FleetDocument) -> Iterator[str]:
        """Yield what no fleet computes, of a document that was read."""
        return _impossible(document.fleet, document.comparisons)


def _primary(document: FleetDocument) -> list[FleetComparison]:
    """Return the comparisons on the metric that decides."""
    metric = document.primary_metric
    return [one for one in document.comparisons if one.metric == metric]


def answer(document: FleetDocument, fleet: FleetResult) -> Answer:
    """Build what a reader sees first: the mean over the asked hosts, and what it hides."""
    answer, primary = campaign_answer(document), _primary(document)
    if primary:
        claims = zip(answer.claims, primary, strict=False)
        return replace(answer, claims=tuple(_claim(*one, fleet) for one in claims))
    if failures_of(document):
        return replace(answer, lines=(*answer.lines, fleet.summary))
    return replace(answer, title=fleet.summary, lines=())


def parts(document: FleetDocument, fleet: FleetResult) -> Iterator[Part]:
    """Build what stands below the answer: hosts, questions, properties, and the hosts' runs."""
    primary = _primary(document)
    many = len(primary) > MAX_CLAIMS
    shown = [shown_comparison(document, one) for one in primary]
    if len(shown) == 1:
        (comparison,) = shown
        yield Section("Hosts", (_hosts_table(fleet, comparison),))
        yield from _answers(comparison)
    else:
        yield Section("Hosts", (_fleet_table(fleet),))
        if many:
            yield Section("Means over the asked hosts", (_means_table(document, primary),))
        for comparison in shown:
            parts = (_hosts_table(fleet, comparison), *_answers(comparison))
            forms = WRITTEN if many else SCREEN | WRITTEN
            yield Section(_title(comparison), parts, folded=many, forms=forms)
        if many:
            yield Paragraph(
                f"The page of {option('report')} has the hosts of each comparison.", forms=SCREEN
            )
    others = [one for one in document.comparisons if one not in primary]
    if others:
        yield Section("Other metrics", (_means_table(document, others),))
    yield from _control(fleet)
    yield from _medians(document, fleet)
    yield from _members(fleet)


def numbers(document: FleetDocument, fleet: FleetResult) -> Iterator[NumberRow]:
    """Yield a row for each comparison and host, after one for the mean over the asked hosts."""
    runs = {host.place: host for host in fleet.hosts}
    for one in document.comparisons:
        of_all: NumberRow = {
            "run": document.run.id,
            "study": document.run.study,
            **fields_of(one, "baseline", "candidate", "metric"),
        }
        mean = {**ratio_numbers(one), **fields_of(one, "blocks", "verdict")}
        yield {**of_all, "host": None, "of": "mean over the asked hosts", **mean}
        for effect in one.hosts:
            yield {
                **of_all,
                "host": effect.host,
                "of": "host",
                **ratio_numbers(effect),
                "blocks": effect.blocks,
                "host_run": runs[effect.place].run,
                **{f"host_{name}": _number(value) for name, value in effect.environment.items()},
            }


def _number(value: object) -> Number:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _claim(claim: Claim, comparison: FleetComparison, fleet: FleetResult) -> Claim:
    """Return the claim of a comparison over hosts: whose mean it is, and for what it holds."""
    answers = comparison.fleet
    assert answers is not None, "a comparison of a fleet has its answers"
    whose = "these campaigns" if fleet.one_host else "the asked hosts"
    # Where the mean over the asked hosts is not known, that over others is another question.
    instead = (answers.mean, *(() if answers.stayed is None else (answers.stayed,)))
    remarks = () if answers.mean.unknown_because is None else instead
    return replace(
        claim,
        subject=f"{claim.subject}, mean over {whose}",
        certainty=(),
        remarks=tuple(f"{one.question} {one.answer}" for one in remarks),
        facts=(
            ("Smallest effect that matters", f"{comparison.min_effect:g} %"),
            ("Holds for", comparison.scope),
        ),
    )


def _hosts_table(fleet: FleetResult, comparison: FleetComparison) -> Table:
    effects = {one.place: one for one in comparison.hosts}
    otherwise = () if comparison.fleet is None else comparison.fleet.otherwise.differing
    levels = {one.level for one in comparison.hosts}
    notes: tuple[str, ...] = ()
    if levels and len(fleet.hosts) > 1:
        together = percentage(1.0 - comparison.level)
        notes = (f"All these intervals hold together with {together}.",)
    weighted = len({one.weight for one in comparison.hosts}) > 1
    rows = (
        _host_row(host, effects.get(host.place), otherwise, weighted=weighted)
        for host in fleet.hosts
    )
    return Table(
        *headed(rows),
        label=f"Hosts: {_title(comparison)}",
        notes=notes,
        max_rows=MAX_HOSTS,
    )


def _host_row(
    host: FleetHost, effect: HostEffect | None, otherwise: Sequence[str], *, weighted: bool
) -> Mapping[str, Cell]:
    estimate: Cell = UNKNOWN
    interval, blocks, weight = "", "0", UNKNOWN
    if effect is not None:
        text, interval = estimate_and_interval(effect.ratio, effect.ratio_ci, unknown=UNKNOWN)
        estimate = Styled(text, "strong") if host.host in otherwise else text
        blocks, weight = str(effect.blocks), percentage(effect.weight)
    return {
        "host:name": host.host,
        "ratio:number": estimate,
        "interval": interval,
        **({"weight:number": weight} if weighted else {}),
        "blocks:number": blocks,
        **_of_host(host),
    }


def _of_host(host: FleetHost) -> Mapping[str, Cell]:
    kernel, processor = map(host.environment.get, ("kernel", "cpu_model"))
    ended = _state_sentence(host)
    return {
        "kernel": UNKNOWN if kernel is None else str(kernel),
        "processor:name": UNKNOWN if processor is None else str(processor),
        "ended by": ended if host.state == "ended" else Styled(ended, "caution"),
    }


def _state_sentence(host: FleetHost) -> str:
    """Return how far the campaign of a host came, in a few words."""
    words = _STATES[host.state]
    if host.stopped_because is not None:
        return f"{words}: {host.stopped_because}" if host.state == "left" else host.stopped_because
    return words


def _fleet_table(fleet: FleetResult) -> Table:
    rows = (
        {"host:name": host.host, "blocks:number": str(host.blocks), **_of_host(host)}
        for host in fleet.hosts
    )
    return Table(*headed(rows), label="Hosts", max_rows=MAX_HOSTS)


def _means_table(document: FleetDocument, comparisons: Sequence[FleetComparison]) -> Table:
    rows: list[Mapping[str, Cell]] = []
    for one in comparisons:
        shown = shown_comparison(document, one)
        estimate, interval = estimate_and_interval(shown.ratio, shown.ratio_ci, unknown=UNKNOWN)
        otherwise = () if one.fleet is None else one.fleet.otherwise.differing
        rows.append(
            {
                "candidate:name": one.candidate,
                "against:name": one.baseline,
                "metric": metric_name(one.metric),
                "mean over hosts:number": estimate,
                "interval": interval,
                "verdict": Styled(shown_verdict(document, one), one.verdict),
                "hosts otherwise:words": listed(otherwise),
            }
        )
    return Table(*headed(rows), label="Means over the asked hosts")


def _answers(comparison: FleetComparison) -> Iterator[Part]:
    """Build the questions with their answers, and what goes with properties of the hosts."""
    answers = comparison.fleet
    if answers is None:
        return
    columns = (Column("question", "words"), Column("answer", "words"))
    rows = ((one.question, one.answer) for one in answers.all if one.unknown_because is None)
    open_questions: dict[str, list[str]] = defaultdict(list)
    for one in answers.all:
        if one.unknown_because is not None:
            open_questions[one.unknown_because].append(one.question)
    table = Table(
        columns,
        tuple(rows),
        label=f"Questions and answers: {_title(comparison)}",
        notes=tuple(
            f"Not answered: {' '.join(questions)} The reason: {because}."
            for because, questions in open_questions.items()
        ),
    )
    yield Section("What they say together", (table,))
    yield from _properties(comparison, answers)


def _properties(comparison: FleetComparison, answers: FleetAnswers) -> Iterator[Part]:
    if not answers.by_property:
        return
    rows = (
        {
            "hosts differ by": _NAMES.get(effect.name, effect.name.replace("_", " "))
            if not place
            else "",
            "value:name": one.value,
            "hosts:number": str(len(one.hosts)),
            "which:words": names_of(one.hosts),
            "mean ratio:number": change_text(one.ratio, UNKNOWN),
        }
        for effect in answers.by_property
        for place, one in enumerate(effect.values)
    )
    table = Table(
        *headed(rows),
        label=f"By properties of the hosts: {_title(comparison)}",
        notes=(answers.by_property_note,),
        max_rows=MAX_HOSTS,
    )
    yield Section("By properties of the hosts", (table,))


def _control(fleet: FleetResult) -> Iterator[Part]:
    """Build what the controls of the hosts show."""
    controls = [one for one in fleet.hosts if one.control_excludes_one is not None]
    if controls:
        wrong = [one.host for one in controls if one.control_excludes_one]
        which = f": {names_of(wrong)}" if wrong else ""
        yield Paragraph(
            f"Control: the baseline against itself differs on {len(wrong)} of "
            f"{counted(len(controls), 'host')}{which}."
        )


def _medians(document: FleetDocument, fleet: FleetResult) -> Iterator[Part]:
    """Build the median of each condition on each host."""
    hosts = [host for host in fleet.hosts if host.conditions]
    if not hosts:
        return
    names = [one.name for one in document.conditions]
    of_hosts = (
        {
            one.name: UNKNOWN if one.median is None else metric_value(one.median, one.metric)
            for one in host.conditions
        }
        for host in hosts
    )
    medians = [[known.get(name, UNKNOWN) for name in names] for known in of_hosts]
    first, noun, down, across = "host", "more condition", [host.host for host in hosts], names
    # The fewer stand beside one another.
    if len(names) > len(hosts):
        first, noun, down, across = "condition", "more host", across, down
        medians = [list(column) for column in zip(*medians, strict=True)]
    left_out = len(across) - _MAX_MEDIAN_COLUMNS
    title = "Medians on each host"
    table = Table(
        (Column(first, "name"), *(Column(one, "number") for one in across[:_MAX_MEDIAN_COLUMNS])),
        tuple((name, *row[:_MAX_MEDIAN_COLUMNS]) for name, row in zip(down, medians, strict=True)),
        label=title,
        notes=(
            "Each median is of one host: hosts are not mixed.",
            *([f"The JSON has {counted(left_out, noun)}."] if left_out > 0 else []),
        ),
        max_rows=None if first == "condition" else MAX_HOSTS,
    )
    compares = bool(document.comparisons)
    yield Section(title, (table,), folded=compares, forms=WRITTEN if compares else SCREEN | WRITTEN)


def _members(fleet: FleetResult) -> Iterator[Part]:
    """Build how to see the campaign of one host."""
    members = [(host, host.run) for host in fleet.hosts if host.run]
    if not members:
        return
    rows = (
        {"host:name": host.host, "run": run, "blocks:number": str(host.blocks)}
        for host, run in members
    )
    table = Table(*headed(rows), label="Campaigns of the hosts", max_rows=MAX_HOSTS)
    host, run = members[0]
    line = Command(shell_line(["equipoise", "show", run]), f"The campaign of {host.host} alone:")
    yield Section("Campaigns of the hosts", (table, line), folded=True, forms=PAGE)
    yield Section("", (line,), forms=SCREEN | TEXT)


def _title(comparison: FleetComparison) -> str:
    where = ", ".join(f"{factor} {level}" for factor, level in comparison.stratum.items())
    at = f" at {where}" if where else ""
    return f"{comparison.candidate} against {comparison.baseline}{at}"


def _impossible(fleet: FleetResult, comparisons: Sequence[FleetComparison]) -> Iterator[str]:
    places = [host.place for host in fleet.hosts]
    if places != list(range(len(places))):
        yield "the hosts of a fleet are not in order"
    if any(min(host.blocks, host.trials) < 0 for host in fleet.hosts):
        yield "a host of a fleet has fewer than no blocks"
    for one in comparisons:
        if any(not 0 <= effect.place < len(places) for effect in one.hosts):
            yield "a comparison of a fleet is of a host that it did not ask"
        if any(not 0.0 < effect.level < 1.0 or effect.blocks < 0 for effect in one.hosts):
            yield "a host of a comparison has no level between 0 and 1, or fewer than no blocks"
        parts: list[HostEffect | HostDifference | FleetInterval] = [*one.hosts]
        if one.fleet is not None:
            answers = one.fleet
            parts += (*answers.otherwise.hosts, answers.mean, answers.new_host, answers.median)
            parts.append(answers.normal)
        for part in parts:
            is_ratio = part.ratio is None or 0.0 <= part.ratio < math.inf
            if not (is_ratio and is_interval_of_ratios(part.ratio_ci)):
                yield "a host or an answer of a fleet has no ratio with an interval"
