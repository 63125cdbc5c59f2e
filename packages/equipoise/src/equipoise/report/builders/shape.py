"""Shape of the distributions: modes, changes of state, drift, iterations, variance by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.figures.quantity import metric_name
from equipoise.model.metrics import verdict_word
from equipoise.model.plan import CALL_METRIC, PRIMARY_METRIC
from equipoise.model.quantities import Interval, excludes_one, names_of
from equipoise.model.result import (
    Comparison,
    Component,
    ConditionResult,
    MetricSummary,
    Mode,
    ModeAssociation,
    ResultDocument,
    SteadyComparison,
    VarianceByLevel,
)
from equipoise.report.builders.conditions import shown_comparison
from equipoise.report.document import (
    MAX_ALIKE,
    MAX_CLAIMS,
    PAGE,
    SCREEN,
    UNKNOWN,
    Bullets,
    Facts,
    HeadedCells,
    Name,
    Paragraph,
    Part,
    Section,
    Styled,
    Table,
    columns_and_rows,
)
from equipoise.report.kind import report_kind
from equipoise.report.units import (
    capitalized,
    change_text,
    estimate_and_interval,
    interval_text,
    metric_formatter,
    percent_change,
    significant,
    with_coverage,
)
from equipoise.shared.theme import color_of

MAX_STATISTICS_TABLES = 3
"""A study may have hundreds of comparisons."""
MAX_UNFOLDED_PAIRS = 6
STATISTICS = {"minimum": "Minimum", "p50": "Median", "maximum": "Maximum", "mean": "Mean"}
MIN_TRIALS = 20
"""Number of trials below which tails and neighbours are not described."""
_COMPANIONS = {
    "time": ("the earlier trials", "the later trials"),
    "environment_bytes": ("a small environment", "a large environment"),
    "argument_bytes": ("a short path of the program", "a long path of the program"),
}
"""Words for a mode where the covariate is low, and where it is high."""
_SHAPES_ON_SCREEN = 6
_DRIFT_LEVEL = 0.01
"""Largest chance, among independent trials, of a drift that is shown: conditions are many."""
_TIMES_OF_ALL = (PRIMARY_METRIC, CALL_METRIC)
"""Times of a whole run or call: what has less of them is faster itself."""
_SKEWED_FROM = 2.0
_DEPENDENT_FROM = 0.3
_MAX_STATES = 4
_LEVEL_ROWS = 12
_MAX_ADVICE = 3


def shape_section(document: ResultDocument, primary: Sequence[Comparison]) -> Section:
    """Build the page's section on shapes."""
    smallest = min((row.min_effect for row in primary), default=0.0)
    kind = report_kind(document)
    pairs: list[tuple[Name, str | tuple[str, ...]]] = []
    for index, condition in enumerate(document.conditions):
        metric = kind.metric_of(document, condition)
        lines = tuple(_shape_lines(condition, metric, smallest))
        name = Name(condition.name, color_of(index))
        pairs.append((name, lines or "unknown: no trial has the metric"))
    if not pairs:
        return Section("Shape", (), forms=PAGE)
    parts: list[Part] = [Facts(tuple(pairs))]
    if len(pairs) > MAX_UNFOLDED_PAIRS:
        title = f"Shape of each of the {len(pairs)} conditions"
        parts = [Section(title, tuple(parts), folded=True)]
    parts += (Paragraph(steady_sentence(steady)) for steady in document.steady_state)
    # Where there are many, those that disagree come first.
    answered = sorted((row for row in primary if row.answers), key=lambda row: not row.disagreement)
    for comparison in answered[:MAX_STATISTICS_TABLES]:
        if comparison.disagreement:
            parts.append(Paragraph(f"{comparison.disagreement}."))
        # Of many comparisons the tables would fill pages.
        on_paper = len(primary) <= MAX_CLAIMS
        parts.append(replace(_statistics(document, comparison), on_paper=on_paper))
    return Section("Shape", tuple(parts), forms=PAGE)


def shape_lines_of_screen(document: ResultDocument) -> Iterator[Part]:
    """Build what the terminal says of shapes: what is not flat, and what drifted."""
    if shapes := tuple(_not_flat(document)):
        yield Bullets(shapes, "dim", _SHAPES_ON_SCREEN, forms=SCREEN)
    if drifts := tuple(_drifts(document)):
        yield Bullets(drifts, "dim", MAX_ALIKE, forms=SCREEN)


def modes_sentence(metric: str, summary: MetricSummary) -> str | None:
    """Describe several modes: ``2 modes: 8.1 ms (70 %) and 9.6 ms (30 %); the slow one …``.

    ``None`` where there is one mode.
    """
    modes = summary.modes
    if len(modes) < 2:
        return None
    show = metric_formatter(metric)
    parts = [f"{show(mode.at)} ({100 * mode.share:.0f} %)" for mode in modes]
    sentence = f"{len(modes)} modes: {', '.join(parts[:-1])} and {parts[-1]}"
    described: set[int] = set()
    for companion in summary.companions:
        # The strongest of each mode: others often say the same in other words.
        if companion.mode not in described:
            described.add(companion.mode)
            mode = _mode_name(modes, companion.mode, metric)
            sentence += f"; {mode} goes with {_companion_name(companion)}"
    return sentence


def states_sentence(metric: str, summary: MetricSummary) -> str | None:
    """Describe changes of state: ``8.1 ms at first, 9.6 ms (+18.5 %) from trial 41 on``.

    ``None`` where the state did not change.
    """
    states = summary.states or ()
    if len(states) < 2:
        return None
    show = metric_formatter(metric)
    parts = [f"{show(states[0].level)} at first"]
    for before, state in zip(states, states[1:_MAX_STATES], strict=False):
        change = f" ({percent_change(state.level / before.level)})" if before.level > 0 else ""
        parts.append(f"{show(state.level)}{change} from trial {state.begin + 1} on")
    more = len(states) - _MAX_STATES
    return ", ".join(parts) + (f", and {more} more changes" if more > 0 else "")


def drift_sentence(metric: str, summary: MetricSummary, least: float) -> str | None:
    """Describe a drift: ``became 1.1 % faster from the first to the last third of the campaign``.

    ``None`` below the smallest change that matters, in percent, and for what may be chance.
    """
    ratio = _sure_drift(summary, least)
    return None if ratio is None else _drift_phrase(metric, [ratio])


def _sure_drift(summary: MetricSummary, least: float) -> float | None:
    """Return the drift of a condition as a ratio; ``None`` unless it is certain and matters."""
    drift = summary.drift
    if drift is None or drift.ratio is None:
        return None
    exceeds_chance = drift.chance is None or drift.chance <= _DRIFT_LEVEL
    matters = abs(drift.ratio - 1.0) > least / 100.0
    sure = excludes_one(drift.ratio_ci) and exceeds_chance
    return drift.ratio if sure and matters else None


def _drift_phrase(metric: str, ratios: Sequence[float]) -> str:
    """Describe drifts in one direction: the least and the largest of them."""
    ratio = ratios[0]
    ordered = sorted(ratios, key=lambda ratio: abs(ratio - 1.0))
    sizes = [percent_change(mode).lstrip("+-") for mode in (ordered[0], ordered[-1])]
    size = " to ".join(dict.fromkeys(sizes))
    if size.startswith("×"):
        slow = "slow" if metric in _TIMES_OF_ALL else "large"
        change = f"became {size.removeprefix('×')} times as {slow}"
    elif metric in _TIMES_OF_ALL:
        change = f"became {size} {'slower' if ratio > 1.0 else 'faster'}"
    else:
        change = f"{'rose' if ratio > 1.0 else 'fell'} by {size}"
    return f"{change} from the first to the last third of the campaign"


def iteration_sentences(condition: ConditionResult) -> Iterator[str]:
    """Describe iterations: ``iterations of request_s: warm-up in all 10 trials, steady from …``."""
    for metric, shape in condition.iterations.items():
        if shape.kind is None:
            # A few measurements in a process do not make a course; the document counts them.
            continue
        sentence = f"iterations of {metric}: {shape.summary}"
        steady = [trial.steady for trial in shape.trials if trial.steady is not None]
        if shape.has_steady_state and steady:
            mean = metric_formatter(metric)(sum(steady) / len(steady))
            sentence += f"; {mean} in the steady state (mean over trials)"
        if shape.not_classed:
            sentence += f"; {shape.not_classed} not classed: too few iterations"
        yield sentence


def steady_sentence(steady: SteadyComparison) -> str:
    """Return the verdict in the steady state with its interval, or why there is none."""
    compared = steady.comparison
    if compared is None or compared.ratio_ci == (None, None):
        return steady.summary
    estimate, ends = estimate_and_interval(compared.ratio, compared.ratio_ci)
    change = "" if compared.ratio is None else f"{estimate}, "
    return f"{steady.summary} {change}{with_coverage(ends, compared.level, compared.alpha)}."


class Levelled(Struct, frozen=True):
    """A comparison or a condition with its variance by level."""

    name: str
    compared: bool
    by_level: VarianceByLevel
    show: Callable[[float], str]
    show_interval: Callable[[Interval], str]


def levels_of(document: ResultDocument) -> Iterator[Levelled]:
    """Yield the results with a variance by level: the comparisons first, then the conditions."""
    for comparison in document.comparisons:
        if comparison.by_level is not None:
            name = f"{comparison.candidate} against {comparison.baseline}"
            yield levelled_ratio(name, comparison.by_level)
    metric = document.comparisons[0].metric if document.comparisons else PRIMARY_METRIC
    show = metric_formatter(metric)

    def show_interval(interval: Interval) -> str:
        return " to ".join("unlimited" if end is None else show(end) for end in interval)

    for condition in document.conditions:
        summary = condition.metrics.get(metric)
        if summary is not None and summary.by_level is not None:
            yield Levelled(condition.name, False, summary.by_level, show, show_interval)


def levelled_ratio(name: str, by_level: VarianceByLevel) -> Levelled:
    """Return a ratio with its variance by level."""
    return Levelled(name, True, by_level, percent_change, interval_text)


def level_parts(levels: Sequence[Levelled]) -> Iterator[Part]:
    """Build the terminal's table of variances with its advice; nothing where there is none."""
    known = [level for level in levels if level.by_level.unknown_because is None]
    if known:
        yield _level_table(known)
    advised = [level for level in known if level.by_level.advice_summary is not None]
    compared = [level for level in advised if level.compared] or advised
    for levelled in compared[:_MAX_ADVICE]:
        name = f"{levelled.name}: " if len(compared) > 1 else ""
        advice = capitalized(levelled.by_level.advice_summary or "")
        yield Paragraph(f"{name}{advice}", forms=SCREEN)
    for reason in dict.fromkeys(level.by_level.unknown_because for level in levels):
        if reason is not None:
            yield Paragraph(f"variance by level: unknown: {reason}", forms=SCREEN)


def level_facts(by_level: VarianceByLevel) -> Iterator[tuple[str, str]]:
    """Yield each scope of a ratio with its interval, and the variance of each level."""
    if by_level.unknown_because is not None:
        yield "Variance by level", f"unknown: {by_level.unknown_because}"
        return
    yield capitalized(by_level.these), interval_text(by_level.these_ci)
    yield capitalized(by_level.across), interval_text(by_level.across_ci)
    for component in by_level.components:
        yield f"Variance: {component.level}", _component(component)
    if by_level.advice_summary is not None:
        yield "More measuring", by_level.advice_summary


def _shape_lines(condition: ConditionResult, metric: str, min_effect: float) -> Iterator[str]:
    summary = condition.metrics.get(metric)
    if summary is not None:
        one_mode = f"1 mode: {metric_formatter(metric)(summary.modes[0].at)}"
        yield modes_sentence(metric, summary) or one_mode
        if (states := states_sentence(metric, summary)) is not None:
            yield f"change of state: {states}"
        if (drift := drift_sentence(metric, summary, min_effect)) is not None:
            yield f"drift: {drift}"
        if condition.trials >= MIN_TRIALS:
            if summary.tail is not None and summary.tail >= _SKEWED_FROM:
                length = significant(summary.tail, 2)
                yield f"the upper tail is {length} times as long as the lower one"
            correlation = summary.autocorrelation
            if correlation is not None and correlation >= _DEPENDENT_FROM:
                yield f"neighbouring trials are alike: correlation {significant(correlation, 2)}"
    yield from iteration_sentences(condition)


def _statistics(document: ResultDocument, comparison: Comparison) -> Section:
    """Build the answers that each statistic alone gives to one comparison."""
    pair = f"{comparison.candidate} against {comparison.baseline}"
    title = f"What each statistic alone would have said: {pair}"
    metric = comparison.metric
    more_is_better = metric in document.more_is_better
    rows = (
        {
            "Statistic:name": STATISTICS.get(
                answer.statistic, f"{answer.statistic.removeprefix('p')} %"
            ),
            "Change:number": change_text(answer.ratio, UNKNOWN),
            "Would have said": verdict_word(answer.says, metric, more_is_better=more_is_better),
        }
        for answer in shown_comparison(document, comparison).answers
    )
    notes = ["Each answer ignores chance; the verdict rests on none of them."]
    if more_is_better:
        notes.append(f"The statistics are those of 1/{metric}: the minimum is its highest value.")
    table = Table(*columns_and_rows(rows), label=title, notes=tuple(notes))
    return Section(title, (table,), folded=True)


def _not_flat(document: ResultDocument) -> Iterator[str]:
    """Yield several modes, changes of state, and what the iterations did."""
    metric = document.primary_metric
    for condition in document.conditions:
        for sentence in iteration_sentences(condition):
            yield f"{condition.name}: {sentence}"
        summary = condition.metrics.get(metric)
        if summary is None:
            continue
        # If there is one condition alone, they are in the answer.
        modes = modes_sentence(metric, summary)
        if modes is not None and document.typical is None:
            yield f"{condition.name}: {modes}"
        if (states := states_sentence(metric, summary)) is not None:
            yield f"change of state: {condition.name}: {states}"


def _drifts(document: ResultDocument) -> Iterator[str]:
    """Yield a line for all conditions that became slower, and one for those that became faster.

    A drift matters if it exceeds the smallest effect that matters, and the half-width of the
    interval of an effect on whose condition it acts.
    """
    consequence = "the random order keeps this out of the verdict"
    metric = document.primary_metric
    if document.typical is not None:
        consequence = "nothing keeps this out of its interval"
    if not document.has_random_order:
        consequence = "nothing keeps this out of a ratio: the trials were not in random order"
    drifts: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for condition in document.conditions:
        summary = condition.metrics.get(metric)
        if summary is None:
            continue
        if (ratio := _sure_drift(summary, _min_drift(document, condition.name))) is not None:
            drifts[ratio > 1.0][condition.name] = ratio
    for of_one_direction in drifts.values():
        if of_one_direction:
            phrase = _drift_phrase(metric, [*of_one_direction.values()])
            what = "" if metric in _TIMES_OF_ALL else f"{metric_name(metric)} of "
            yield f"drift: {what}{names_of([*of_one_direction])} {phrase}; {consequence}"


def _min_drift(document: ResultDocument, condition: str) -> float:
    """Return the change in percent from which on a drift of a condition matters."""
    concerned = (
        comparison.ratio_ci
        for comparison in document.primary_comparisons
        if condition in (comparison.baseline, comparison.candidate)
    )
    widths = (
        100.0 * (math.sqrt(high / low) - 1.0) if low and high and high / low > 0 else math.inf
        for low, high in concerned
    )
    smallest = min((comparison.min_effect for comparison in document.comparisons), default=0.0)
    return max(smallest, min(widths, default=0.0))


def _mode_name(modes: Sequence[Mode], mode: int, metric: str) -> str:
    if len(modes) == 2:
        slow, fast = ("slow", "fast") if metric.endswith("_s") else ("high", "low")
        return f"the {slow if mode == 1 else fast} one"
    return f"that at {metric_formatter(metric)(modes[mode].at)}"


def _companion_name(companion: ModeAssociation) -> str:
    covariate, value, more = companion.covariate, companion.value, companion.correlation > 0
    match covariate:
        case "cpu" if value is not None:
            return f"CPU {value:.0f}"
        case "position" if value is not None:
            return f"place {value + 1:.0f} in the block"
        case "random_addresses":
            return "random addresses (ASLR)" if value else "fixed addresses (no ASLR)"
        case "time" | "environment_bytes" | "argument_bytes":
            return _COMPANIONS[covariate][more]
    if value is not None:
        return f"{covariate} {value:g}"
    return f"{'high' if more else 'low'} {covariate}"


def _level_table(levels: Sequence[Levelled]) -> Table:
    names = list(
        dict.fromkeys(part.level for level in levels for part in level.by_level.components)
    )
    these = {level.by_level.these for level in levels}
    across = levels[0].by_level.across
    # Conditions that ran in different numbers of trials have no number in common.
    heading = these.pop() if len(these) == 1 else across.replace("across", "these", 1)
    rows: list[HeadedCells] = []
    for levelled in levels:
        by_level = levelled.by_level
        mean = UNKNOWN if by_level.mean is None else levelled.show(by_level.mean)
        components = {part.level: _component(part) for part in by_level.components}
        rows.append(
            (
                ("by level:name", levelled.name),
                ("mean:number", Styled(mean, "strong")),
                (heading, levelled.show_interval(by_level.these_ci)),
                (across, levelled.show_interval(by_level.across_ci)),
                *((name, components.get(name, UNKNOWN)) for name in names),
            )
        )
    return Table(
        *columns_and_rows(rows),
        max_rows=_LEVEL_ROWS,
        notes=(
            "A level's cell: its share of the variance of the logarithm, and the standard "
            "deviation that it adds (docs/methods/levels.md).",
        ),
        forms=SCREEN,
    )


def _component(component: Component) -> str:
    """Return ``78 % (±3.1 %; 2.2 to 5.4)``: the share, the standard deviation, its interval."""
    low, high = map(_standard_deviation, component.variance_ci)
    share = f"{100 * component.share:.0f} %"
    return f"{share} (±{_standard_deviation(component.variance)} %; {low} to {high})"


def _standard_deviation(variance: float) -> str:
    """Return the standard deviation of a logarithm, in percent."""
    return significant(100.0 * math.sqrt(max(0.0, variance)), 2)
