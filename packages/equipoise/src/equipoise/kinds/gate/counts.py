"""The sentences of a gate that counts: its rows, its outcome, and its counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from equipoise.counting import allocations, callgrind
from equipoise.kinds.gate.terms import GateOutcome, GateResult, GateRow
from equipoise.model.quantities import counted, names_of
from equipoise.report.units import metric_value


def counts_sentence(row: GateRow, min_effect: float) -> str:
    """Return the sentence of one count."""
    name = row.benchmark
    limit = f"more than {min_effect:g} %"
    match row.outcome:
        case "slower":
            return f"{name} grew by {limit}: {_change(row)}."
        case "passes":
            return f"{name} did not grow by {limit}: {_change(row)}."
        case "undecided":
            blocks = counted(row.blocks, "block")
            return f"whether {name} grew by {limit} is not known after {blocks}."


def _change(row: GateRow) -> str:
    runs = f"in {counted(row.blocks, 'run')} of each revision"
    if row.exact and row.ratio == 1.0:
        return f"it was equal {runs}"
    if row.exact and row.ratio is not None:
        return f"it changed by exactly {100 * (row.ratio - 1):+.4g} % {runs}"
    if row.exact:
        return f"it changed from exactly {row.baseline_median:g} to {row.candidate_median:g} {runs}"
    low, high = row.equivalence_ci
    if row.outcome == "slower":
        return "it timed out" if low is None else f"by at least {100 * (low - 1):.3g} %"
    return "it varies" if high is None else f"it changed by at most {100 * (high - 1):+.3g} %"


def counts_clause(
    rows: Sequence[GateRow], outcomes: Counter[GateOutcome], min_effect: float
) -> str:
    """Return the outcome of several counts."""
    limit = f"grew by more than {min_effect:g} %"
    if grown := outcomes["slower"]:
        return f"{grown} of {len(rows)} counts {limit}"
    return f"none of {len(rows)} counts is known to have grown by more than {min_effect:g} %"


def counters_sentences(gate: GateResult) -> Iterator[str]:
    """Yield which counter counted what, and that no time is compared, if the gate counts."""
    metrics_by_counter: dict[str, list[str]] = {}
    for metric, counter in gate.counted_by.items():
        metrics_by_counter.setdefault(counter, []).append(metric)
    if metrics_by_counter:
        clauses = (_counter_clause(*item) for item in metrics_by_counter.items())
        yield f"{'. '.join(clauses)}. No time of these runs is compared."


def _counter_clause(counter: str, metrics: Sequence[str]) -> str:
    verb = "Simulated" if callgrind.METRIC in metrics else "Counted"
    return f"{verb} by {counter}: {names_of(metrics)}"


def counts_question(gate: GateResult) -> str:
    """Return the question of a gate that counts."""
    candidate, baseline = gate.candidate.typed_name, gate.baseline.typed_name
    return (
        f"Do the counts of {candidate} exceed those of {baseline}, by more than "
        f"{gate.min_effect:g} %?"
    )


def outcome_label(gate: GateResult, row: GateRow, labels: Mapping[GateOutcome, str]) -> str:
    """Return the label of a row's outcome: a count is not slower, but more."""
    label = labels[row.outcome]
    return label.replace("slower", "more") if gate.counted_by else label


def cost_text(value: float | None, metric: str) -> str:
    """Return a median with its unit; a count has all its digits."""
    if value is None:
        return "timed out"
    is_count = metric.endswith((callgrind.METRIC, allocations.ALLOCATIONS))
    return f"{value:,.0f}" if is_count and value == round(value) else metric_value(value, metric)
