"""A fleet: the mean over the asked hosts, each host, and the questions that they answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.figures.quantity import metric_name
from equipoise.model.fleet import FleetAnswers, FleetHost, FleetResult, HostEffect
from equipoise.model.quantities import counted, listed, names_of
from equipoise.model.result import Comparison, ResultDocument
from equipoise.report.builders.claims import (
    campaign_answer,
    failures_of,
    primary_comparisons,
    strip_of,
)
from equipoise.report.builders.conditions import shown_comparison, shown_verdict
from equipoise.report.document import (
    MOST_CLAIMS,
    PAGE,
    SCREEN,
    TEXT,
    UNKNOWN,
    WRITTEN,
    Answer,
    Cell,
    Claim,
    Column,
    Command,
    Number,
    Paragraph,
    Part,
    Row,
    Section,
    Styled,
    Table,
)
from equipoise.report.units import (
    change_text,
    estimate_and_interval,
    metric_value,
    percentage,
    with_coverage,
)

MOST_HOSTS = 24
"""Number of hosts of a table that a terminal shows."""
_MOST_BESIDE = 6
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


def fleet_answer(document: ResultDocument, fleet: FleetResult) -> Answer:
    """Build what a reader sees first: the mean over the asked hosts, and what it hides."""
    answer = campaign_answer(document)
    claims = tuple(_claim(document, fleet, one) for one in primary_comparisons(document))
    if not claims:
        if failures_of(document):
            return replace(answer, lines=(*answer.lines, fleet.summary))
        return replace(answer, title=fleet.summary, lines=())
    if not answer.claims:
        return answer
    return replace(answer, claims=claims)


def fleet_parts(document: ResultDocument, fleet: FleetResult) -> Iterator[Part]:
    """Build what stands below the answer: hosts, questions, properties, and the hosts' runs."""
    primary = primary_comparisons(document)
    many = len(primary) > MOST_CLAIMS
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
            yield Paragraph("The page of --report has the hosts of each comparison.", forms=SCREEN)
    others = [one for one in document.comparisons if one.metric != document.primary_metric]
    if others:
        yield Section("Other metrics", (_means_table(document, others),))
    yield from _control(fleet)
    yield from _medians(document, fleet)
    yield from _members(fleet)


def fleet_numbers(document: ResultDocument, fleet: FleetResult) -> Iterator[dict[str, Number]]:
    """Yield a row for each comparison and host, after one for the mean over the asked hosts."""
    runs = {host.place: host for host in fleet.hosts}
    for one in document.comparisons:
        of_all: dict[str, Number] = {
            "run": document.run.id,
            "study": document.run.study,
            "baseline": one.baseline,
            "candidate": one.candidate,
            "metric": one.metric,
        }
        low, high = one.ratio_ci
        yield {
            **of_all,
            "host": None,
            "of": "mean over the asked hosts",
            "ratio": one.ratio,
            "ratio_low": low,
            "ratio_high": high,
            "level": one.level,
            "blocks": one.blocks,
            "verdict": one.verdict,
        }
        for effect in one.hosts:
            low, high = effect.ratio_ci
            yield {
                **of_all,
                "host": effect.host,
                "of": "host",
                "ratio": effect.ratio,
                "ratio_low": low,
                "ratio_high": high,
                "level": effect.level,
                "blocks": effect.blocks,
                "host_run": runs[effect.place].run,
                **{f"host_{name}": _number(value) for name, value in effect.environment.items()},
            }


def _number(value: Any) -> Number:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _claim(document: ResultDocument, fleet: FleetResult, comparison: Comparison) -> Claim:
    answers = comparison.fleet
    assert answers is not None, "a comparison of a fleet has its answers"
    shown = shown_comparison(document, comparison)
    estimate, interval = estimate_and_interval(shown.ratio, shown.ratio_ci)
    names = f"{comparison.candidate} against {comparison.baseline}"
    whose = "these campaigns" if fleet.one_host else "the asked hosts"
    # Where the mean over the asked hosts is not known, that over others is another question.
    instead = (answers.mean, *(() if answers.stayed is None else (answers.stayed,)))
    remarks = () if answers.mean.unknown_because is None else instead
    return Claim(
        badge=shown_verdict(document, comparison),
        tone=comparison.verdict,
        text=comparison.summary,
        subject=f"{metric_name(comparison.metric)} of {names}, mean over {whose}",
        estimate=estimate,
        interval=with_coverage(interval, comparison.level, comparison.alpha),
        strip=strip_of(shown.ratio, shown.ratio_ci, shown.metric, shown.min_effect),
        remarks=tuple(f"{one.question} {one.answer}" for one in remarks),
        facts=(
            ("Smallest effect that matters", f"{comparison.min_effect:g} %"),
            ("Holds for", comparison.scope),
        ),
    )


def _hosts_table(fleet: FleetResult, comparison: Comparison) -> Table:
    effects = {one.place: one for one in comparison.hosts}
    otherwise = frozenset[str]()
    if comparison.fleet is not None:
        otherwise = frozenset(one.host for one in comparison.fleet.otherwise.hosts if one.differs)
    levels = {one.level for one in comparison.hosts}
    notes: tuple[str, ...] = ()
    if levels and len(fleet.hosts) > 1:
        together = percentage(1.0 - comparison.level)
        notes = (f"All these intervals hold together with {together}.",)
    weighted = len({one.weight for one in comparison.hosts}) > 1
    return Table(
        (
            Column("host", "name"),
            Column("ratio", "number"),
            Column("interval"),
            *([Column("weight", "number")] if weighted else []),
            Column("blocks", "number"),
            Column("kernel"),
            Column("processor", "name"),
            Column("ended by"),
        ),
        tuple(
            _host_row(host, effects.get(host.place), otherwise, weighted=weighted)
            for host in fleet.hosts
        ),
        label=f"Hosts: {_title(comparison)}",
        notes=notes,
        most_rows=MOST_HOSTS,
    )


def _host_row(
    host: FleetHost, effect: HostEffect | None, otherwise: frozenset[str], *, weighted: bool
) -> Row:
    estimate: Cell = UNKNOWN
    interval, blocks, weight = "", "0", UNKNOWN
    if effect is not None:
        text, interval = estimate_and_interval(effect.ratio, effect.ratio_ci, unknown=UNKNOWN)
        estimate = Styled(text, "strong") if host.host in otherwise else text
        blocks, weight = str(effect.blocks), percentage(effect.weight)
    return (
        host.host,
        estimate,
        interval,
        *([weight] if weighted else []),
        blocks,
        *_of_host(host),
    )


def _of_host(host: FleetHost) -> tuple[Cell, ...]:
    known = (host.environment.get(key) for key in ("kernel", "cpu_model"))
    ended = _state_sentence(host)
    return (
        *(UNKNOWN if value is None else str(value) for value in known),
        ended if host.state == "ended" else Styled(ended, "caution"),
    )


def _state_sentence(host: FleetHost) -> str:
    """Return how far the campaign of a host came, in a few words."""
    words = _STATES[host.state]
    if host.stopped_because is not None:
        return f"{words}: {host.stopped_because}" if host.state == "left" else host.stopped_because
    return words


def _fleet_table(fleet: FleetResult) -> Table:
    columns = (
        Column("host", "name"),
        Column("blocks", "number"),
        Column("kernel"),
        Column("processor", "name"),
        Column("ended by"),
    )
    rows = tuple((host.host, str(host.blocks), *_of_host(host)) for host in fleet.hosts)
    return Table(columns, rows, label="Hosts", most_rows=MOST_HOSTS)


def _means_table(document: ResultDocument, comparisons: Sequence[Comparison]) -> Table:
    rows: list[Row] = []
    for one in comparisons:
        shown = shown_comparison(document, one)
        estimate, interval = estimate_and_interval(shown.ratio, shown.ratio_ci, unknown=UNKNOWN)
        differing = [] if one.fleet is None else one.fleet.otherwise.hosts
        otherwise = listed([host.host for host in differing if host.differs])
        verdict = Styled(shown_verdict(document, one), one.verdict)
        metric = metric_name(one.metric)
        rows.append((one.candidate, one.baseline, metric, estimate, interval, verdict, otherwise))
    columns = (
        Column("candidate", "name"),
        Column("against", "name"),
        Column("metric"),
        Column("mean over hosts", "number"),
        Column("interval"),
        Column("verdict"),
        Column("hosts otherwise", "words"),
    )
    return Table(columns, tuple(rows), label="Means over the asked hosts")


def _answers(comparison: Comparison) -> Iterator[Part]:
    """Build the questions with their answers, and what goes with properties of the hosts."""
    answers = comparison.fleet
    if answers is None:
        return
    columns = (Column("question", "words"), Column("answer", "words"))
    known = [one for one in answers.all if one.unknown_because is None]
    open_questions: dict[str, list[str]] = defaultdict(list)
    for one in answers.all:
        if one.unknown_because is not None:
            open_questions[one.unknown_because].append(one.question)
    table = Table(
        columns,
        tuple((one.question, one.answer) for one in known),
        label=f"Questions and answers: {_title(comparison)}",
        notes=tuple(
            f"Not answered: {' '.join(questions)} The reason: {because}."
            for because, questions in open_questions.items()
        ),
    )
    yield Section("What they say together", (table,))
    yield from _properties(comparison, answers)


def _properties(comparison: Comparison, answers: FleetAnswers) -> Iterator[Part]:
    if not answers.by_property:
        return
    rows = tuple(
        (
            _NAMES.get(effect.name, effect.name.replace("_", " ")) if not place else "",
            one.value,
            str(len(one.hosts)),
            names_of(one.hosts),
            change_text(one.ratio, UNKNOWN),
        )
        for effect in answers.by_property
        for place, one in enumerate(effect.values)
    )
    columns = (
        Column("hosts differ by"),
        Column("value", "name"),
        Column("hosts", "number"),
        Column("which", "words"),
        Column("mean ratio", "number"),
    )
    table = Table(
        columns,
        rows,
        label=f"By properties of the hosts: {_title(comparison)}",
        notes=(answers.by_property_note,),
        most_rows=MOST_HOSTS,
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


def _medians(document: ResultDocument, fleet: FleetResult) -> Iterator[Part]:
    """Build the median of each condition on each host."""
    hosts = [host for host in fleet.hosts if host.conditions]
    if not hosts:
        return
    medians = {
        (host.place, one.name): UNKNOWN
        if one.median is None
        else metric_value(one.median, one.metric)
        for host in hosts
        for one in host.conditions
    }
    names = [one.name for one in document.conditions]
    # The fewer stand beside one another.
    if len(names) > len(hosts):
        first, left_out = "condition", counted(max(0, len(hosts) - _MOST_BESIDE), "more host")
        beside = [host.host for host in hosts[:_MOST_BESIDE]]
        rows = tuple(
            (name, *(medians.get((host.place, name), UNKNOWN) for host in hosts[:_MOST_BESIDE]))
            for name in names
        )
        is_whole = len(hosts) <= _MOST_BESIDE
    else:
        first, left_out = "host", counted(max(0, len(names) - _MOST_BESIDE), "more condition")
        beside = names[:_MOST_BESIDE]
        rows = tuple(
            (host.host, *(medians.get((host.place, name), UNKNOWN) for name in beside))
            for host in hosts
        )
        is_whole = len(names) <= _MOST_BESIDE
    title = "Medians on each host"
    table = Table(
        (Column(first, "name"), *(Column(heading, "number") for heading in beside)),
        rows,
        label=title,
        notes=(
            "Each median is of one host: hosts are not mixed.",
            *(() if is_whole else (f"The JSON has {left_out}.",)),
        ),
        most_rows=None if first == "condition" else MOST_HOSTS,
    )
    compares = bool(document.comparisons)
    yield Section(title, (table,), folded=compares, forms=WRITTEN if compares else SCREEN | WRITTEN)


def _members(fleet: FleetResult) -> Iterator[Part]:
    """Build how to see the campaign of one host."""
    known = [(host.host, host.run) for host in fleet.hosts if host.run is not None]
    if not known:
        return
    columns = (Column("host", "name"), Column("run"), Column("blocks", "number"))
    rows = tuple(
        (host.host, host.run or UNKNOWN, str(host.blocks)) for host in fleet.hosts if host.run
    )
    table = Table(columns, rows, label="Campaigns of the hosts", most_rows=MOST_HOSTS)
    name, run = known[0]
    line = Command(shell_line(["equipoise", "show", run or ""]), f"The campaign of {name} alone:")
    yield Section("Campaigns of the hosts", (table, line), folded=True, forms=PAGE)
    yield Section("", (line,), forms=SCREEN | TEXT)


def _title(comparison: Comparison) -> str:
    where = ", ".join(f"{factor} {level}" for factor, level in comparison.stratum.items())
    at = f" at {where}" if where else ""
    return f"{comparison.candidate} against {comparison.baseline}{at}"
