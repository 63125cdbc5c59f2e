"""Builds the parts on distributions: modes, changes of state, drift, iterations and variance.

- A mode is one of several values around which the times of a condition cluster.
- A state is a stretch of trials around one value (its field `level`), between changes of state.
- A level is a source of variance, such as processes, layouts or boots.
- A drift compares the last third of the trials with the first third. The iterations of a trial
  are in a steady state after their warm-up.
"""

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
    ConditionResult,
    MetricSummary,
    Mode,
    ModeAssociation,
    ResultDocument,
    SteadyComparison,
    VarianceByLevel,
    VarianceComponent,
)
from equipoise.report.builders.conditions import shown_comparison
from equipoise.report.document import (
    MAX_SIMILAR_LINES,
    MAX_STATEMENTS,
    PAGE,
    TERMINAL,
    UNKNOWN,
    Bullets,
    ConditionName,
    Facts,
    HeadedCells,
    Paragraph,
    Part,
    Section,
    StyledText,
    Table,
    columns_and_rows,
)
from equipoise.report.kind import kind_report
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
MAX_UNFOLDED_CONDITIONS = 6
"""If there are more conditions, the page folds their distributions."""
STATISTIC_NAMES = {"minimum": "Minimum", "p50": "Median", "maximum": "Maximum", "mean": "Mean"}
"""Names of statistics; other statistics are percentiles, such as p90."""
MIN_TRIALS = 20
"""Minimum number of trials for a line on the tail or on the correlation of neighbours."""
_MODE_COVARIATES = {
    "time": ("the earlier trials", "the later trials"),
    "environment_bytes": ("a small environment", "a large environment"),
    "argument_bytes": ("a short path of the program", "a long path of the program"),
}
"""By covariate: phrases for a mode with low values, and for a mode with high values."""
_MAX_SHAPE_LINES = 6
_MAX_DRIFT_P_VALUE = 0.01
"""Maximum p-value of a drift that is shown. It is small because conditions may be many."""
_RUN_TIME_METRICS = (PRIMARY_METRIC, CALL_METRIC)
"""Times of a complete run or call. Their drift is ``faster``; other metrics ``fell``."""
_MIN_TAIL_RATIO = 2.0
"""Minimum ratio of the upper to the lower tail for a line on the upper tail."""
_MIN_AUTOCORRELATION = 0.3
"""Minimum correlation of neighbouring trials for a line on this correlation."""
_MAX_NAMED_STATES = 4
_MAX_LEVEL_ROWS = 12
"""Maximum number of rows in the table of variances on a terminal."""
_MAX_ADVICE_LINES = 3


def shape_section(result: ResultDocument, comparisons: Sequence[Comparison]) -> Section:
    """Build the section of a page on the distribution of each condition."""
    min_effect = min((row.min_effect for row in comparisons), default=0.0)
    kind = kind_report(result)
    names_and_lines: list[tuple[ConditionName, str | tuple[str, ...]]] = []
    for index, condition in enumerate(result.conditions):
        metric = kind.metric_of(result, condition)
        lines = tuple(_page_shape_lines(condition, metric, min_effect))
        if not lines and metric in condition.metrics:
            # The modes were not searched, and nothing else is unusual.
            continue
        name = ConditionName(condition.name, color_of(index))
        names_and_lines.append((name, lines or "unknown: no trial has the metric"))
    if not names_and_lines:
        return Section("Shape", (), forms=PAGE)
    parts: list[Part] = [Facts(tuple(names_and_lines))]
    if len(names_and_lines) > MAX_UNFOLDED_CONDITIONS:
        title = f"Shape of each of the {len(names_and_lines)} conditions"
        parts = [Section(title, tuple(parts), folded=True)]
    parts += (Paragraph(steady_sentence(steady)) for steady in result.steady_state)
    # Comparisons whose statistics disagree come first.
    with_statistics = [row for row in comparisons if row.answers]
    with_statistics.sort(key=lambda row: not row.disagreement)
    for comparison in with_statistics[:MAX_STATISTICS_TABLES]:
        if comparison.disagreement:
            parts.append(Paragraph(f"{comparison.disagreement}."))
        # With many comparisons, the tables would fill printed pages.
        on_paper = len(comparisons) <= MAX_STATEMENTS
        parts.append(replace(_statistics_section(result, comparison), on_paper=on_paper))
    return Section("Shape", tuple(parts), forms=PAGE)


def terminal_shape_lines(result: ResultDocument) -> Iterator[Part]:
    """Build the lines of a terminal on unusual distributions, then on drifts."""
    if shapes := tuple(_unusual_shapes(result)):
        yield Bullets(shapes, "dim", _MAX_SHAPE_LINES, forms=TERMINAL)
    if drifts := tuple(_drift_lines(result)):
        yield Bullets(drifts, "dim", MAX_SIMILAR_LINES, forms=TERMINAL)


def modes_sentence(metric: str, summary: MetricSummary) -> str | None:
    """Describe several modes: ``2 modes: 8.1 ms (70 %) and 9.6 ms (30 %); the slow one …``.

    Return ``None`` if there is one mode.
    """
    modes = summary.modes
    if len(modes) < 2:
        return None
    format_value = metric_formatter(metric)
    mode_texts = [f"{format_value(mode.value)} ({100 * mode.share:.0f} %)" for mode in modes]
    sentence = f"{len(modes)} modes: {', '.join(mode_texts[:-1])} and {mode_texts[-1]}"
    described_modes: set[int] = set()
    for association in summary.mode_associations:
        # Describe only the strongest association of a mode; others often have the same cause.
        if association.mode not in described_modes:
            described_modes.add(association.mode)
            mode = _mode_name(modes, association.mode, metric)
            sentence += f"; {mode} goes with {_covariate_phrase(association)}"
    return sentence


def states_sentence(metric: str, summary: MetricSummary) -> str | None:
    """Describe the states: ``8.1 ms at first, 9.6 ms (+18.5 %) from trial 41 on``.

    Return ``None`` if there is one state.
    """
    states = summary.states or ()
    if len(states) < 2:
        return None
    format_value = metric_formatter(metric)
    state_texts = [f"{format_value(states[0].mean)} at first"]
    for previous, state in zip(states, states[1:_MAX_NAMED_STATES], strict=False):
        change = f" ({percent_change(state.mean / previous.mean)})" if previous.mean > 0 else ""
        state_texts.append(
            f"{format_value(state.mean)}{change} from trial {state.first_trial + 1} on"
        )
    hidden_count = len(states) - _MAX_NAMED_STATES
    hidden_text = f", and {hidden_count} more changes" if hidden_count > 0 else ""
    return ", ".join(state_texts) + hidden_text


def drift_sentence(metric: str, summary: MetricSummary, min_percent: float) -> str | None:
    """Describe a drift: ``became 1.1 % faster from the first to the last third of the campaign``.

    Return ``None`` if the drift may be chance, or is smaller than ``min_percent``.
    """
    ratio = _drift_ratio(summary, min_percent)
    return None if ratio is None else _drift_phrase(metric, [ratio])


def _drift_ratio(summary: MetricSummary, min_percent: float) -> float | None:
    """Return a drift as a ratio; ``None`` if it may be chance, or is below ``min_percent``."""
    drift = summary.drift
    if drift is None or drift.ratio is None:
        return None
    exceeds_chance = drift.p_value is None or drift.p_value <= _MAX_DRIFT_P_VALUE
    is_large = abs(drift.ratio - 1.0) > min_percent / 100.0
    is_certain = excludes_one(drift.ratio_ci) and exceeds_chance
    return drift.ratio if is_certain and is_large else None


def _drift_phrase(metric: str, ratios: Sequence[float]) -> str:
    """Describe drifts in one direction: ``became 1.1 % to 2.3 % faster from …``."""
    is_increase = ratios[0] > 1.0
    ascending_ratios = sorted(ratios, key=lambda ratio: abs(ratio - 1.0))
    extremes = (ascending_ratios[0], ascending_ratios[-1])
    sizes = [percent_change(extreme).lstrip("+-") for extreme in extremes]
    size_text = " to ".join(dict.fromkeys(sizes))
    if size_text.startswith("×"):
        slow = "slow" if metric in _RUN_TIME_METRICS else "large"
        change = f"became {size_text.removeprefix('×')} times as {slow}"
    elif metric in _RUN_TIME_METRICS:
        change = f"became {size_text} {'slower' if is_increase else 'faster'}"
    else:
        change = f"{'rose' if is_increase else 'fell'} by {size_text}"
    return f"{change} from the first to the last third of the campaign"


def iteration_sentences(condition: ConditionResult) -> Iterator[str]:
    """Describe the iterations of each metric: ``iterations of request_s: warm-up in all 10 …``."""
    for metric, shape in condition.iterations.items():
        has_too_few = shape.kind is None
        if has_too_few:
            continue
        sentence = f"iterations of {metric}: {shape.summary}"
        steady_values = [
            trial.steady_mean for trial in shape.trials if trial.steady_mean is not None
        ]
        if shape.has_steady_state and steady_values:
            mean = metric_formatter(metric)(sum(steady_values) / len(steady_values))
            sentence += f"; {mean} in the steady state (mean over trials)"
        if shape.unclassified_trials:
            sentence += f"; {shape.unclassified_trials} not classed: too few iterations"
        yield sentence


def steady_sentence(steady: SteadyComparison) -> str:
    """Return a sentence with the verdict in the steady state, or why there is no verdict."""
    comparison = steady.comparison
    if comparison is None or comparison.ratio_ci == (None, None):
        return steady.summary
    estimate, ends = estimate_and_interval(comparison.ratio, comparison.ratio_ci)
    change = "" if comparison.ratio is None else f"{estimate}, "
    interval = with_coverage(ends, comparison.significance_level, comparison.alpha)
    return f"{steady.summary} {change}{interval}."


class VarianceRow(Struct, frozen=True):
    """Row of the table of variances: a comparison or a condition."""

    name: str
    is_comparison: bool
    """Whether the row is a comparison; else it is a condition."""
    by_level: VarianceByLevel
    format_value: Callable[[float], str]
    """Function that returns a mean as text."""
    format_interval: Callable[[Interval], str]
    """Function that returns an interval of a mean as text."""


def variance_rows(result: ResultDocument) -> Iterator[VarianceRow]:
    """Yield the rows of the table of variances: comparisons first, then conditions."""
    for comparison in result.comparisons:
        if comparison.by_level is not None:
            name = f"{comparison.candidate} against {comparison.baseline}"
            yield ratio_variance_row(name, comparison.by_level)
    metric = result.comparisons[0].metric if result.comparisons else PRIMARY_METRIC
    format_value = metric_formatter(metric)

    def format_interval(interval: Interval) -> str:
        return " to ".join("unlimited" if end is None else format_value(end) for end in interval)

    for condition in result.conditions:
        summary = condition.metrics.get(metric)
        if summary is not None and summary.by_level is not None:
            yield VarianceRow(
                condition.name,
                is_comparison=False,
                by_level=summary.by_level,
                format_value=format_value,
                format_interval=format_interval,
            )


def ratio_variance_row(name: str, by_level: VarianceByLevel) -> VarianceRow:
    """Return the row of a ratio in the table of variances."""
    return VarianceRow(
        name,
        is_comparison=True,
        by_level=by_level,
        format_value=percent_change,
        format_interval=interval_text,
    )


def variance_parts(rows: Sequence[VarianceRow]) -> Iterator[Part]:
    """Build the terminal's table of variances, advice, and reasons why a variance is unknown."""
    known_rows = [row for row in rows if row.by_level.unknown_because is None]
    if known_rows:
        yield _variance_table(known_rows)
    rows_with_advice = [row for row in known_rows if row.by_level.advice_summary is not None]
    advised_rows = [row for row in rows_with_advice if row.is_comparison] or rows_with_advice
    for row in advised_rows[:_MAX_ADVICE_LINES]:
        name = f"{row.name}: " if len(advised_rows) > 1 else ""
        advice = capitalized(row.by_level.advice_summary or "")
        yield Paragraph(f"{name}{advice}", forms=TERMINAL)
    for reason in dict.fromkeys(row.by_level.unknown_because for row in rows):
        if reason is not None:
            yield Paragraph(f"variance by level: unknown: {reason}", forms=TERMINAL)


def level_facts(by_level: VarianceByLevel) -> Iterator[tuple[str, str]]:
    """Yield names and values for a ratio: its intervals, then the variance of each level."""
    if by_level.unknown_because is not None:
        yield "Variance by level", f"unknown: {by_level.unknown_because}"
        return
    yield capitalized(by_level.within_scope), interval_text(by_level.within_ci)
    yield capitalized(by_level.across_scope), interval_text(by_level.across_ci)
    for component in by_level.components:
        yield f"Variance: {component.level}", _component_text(component)
    if by_level.advice_summary is not None:
        yield "More measuring", by_level.advice_summary


def _page_shape_lines(condition: ConditionResult, metric: str, min_effect: float) -> Iterator[str]:
    summary = condition.metrics.get(metric)
    if summary is not None:
        if summary.modes:
            one_mode = f"1 mode: {metric_formatter(metric)(summary.modes[0].value)}"
            yield modes_sentence(metric, summary) or one_mode
        if (states := states_sentence(metric, summary)) is not None:
            yield f"change of state: {states}"
        if (drift := drift_sentence(metric, summary, min_effect)) is not None:
            yield f"drift: {drift}"
        if condition.trials >= MIN_TRIALS:
            if summary.tail_ratio is not None and summary.tail_ratio >= _MIN_TAIL_RATIO:
                length = significant(summary.tail_ratio, 2)
                yield f"the upper tail is {length} times as long as the lower one"
            correlation = summary.autocorrelation
            if correlation is not None and correlation >= _MIN_AUTOCORRELATION:
                yield f"neighbouring trials are alike: correlation {significant(correlation, 2)}"
    yield from iteration_sentences(condition)


def _statistics_section(result: ResultDocument, comparison: Comparison) -> Section:
    pair = f"{comparison.candidate} against {comparison.baseline}"
    title = f"What each statistic alone would have said: {pair}"
    metric = comparison.metric
    more_is_better = metric in result.more_is_better
    rows = (
        {
            "Statistic:name": STATISTIC_NAMES.get(
                answer.statistic, f"{answer.statistic.removeprefix('p')} %"
            ),
            "Change:number": change_text(answer.ratio, UNKNOWN),
            "Would have said": verdict_word(answer.verdict, metric, more_is_better=more_is_better),
        }
        for answer in shown_comparison(result, comparison).answers
    )
    notes = ["Each answer ignores chance; the verdict rests on none of them."]
    if more_is_better:
        notes.append(f"The statistics are those of 1/{metric}: the minimum is its highest value.")
    table = Table(*columns_and_rows(rows), label=title, notes=tuple(notes))
    return Section(title, (table,), folded=True)


def _unusual_shapes(result: ResultDocument) -> Iterator[str]:
    metric = result.primary_metric
    for condition in result.conditions:
        for sentence in iteration_sentences(condition):
            yield f"{condition.name}: {sentence}"
        summary = condition.metrics.get(metric)
        if summary is None:
            continue
        # If a campaign has only one condition, its modes are in the answer.
        modes = modes_sentence(metric, summary)
        if modes is not None and result.typical is None:
            yield f"{condition.name}: {modes}"
        if (states := states_sentence(metric, summary)) is not None:
            yield f"change of state: {condition.name}: {states}"


def _drift_lines(result: ResultDocument) -> Iterator[str]:
    """Yield a line for the conditions that became slower, and a line for the faster conditions."""
    consequence = "the random order keeps this out of the verdict"
    metric = result.primary_metric
    if result.typical is not None:
        consequence = "nothing keeps this out of its interval"
    if not result.has_random_order:
        consequence = "nothing keeps this out of a ratio: the trials were not in random order"
    ratios_by_direction: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for condition in result.conditions:
        summary = condition.metrics.get(metric)
        if summary is None:
            continue
        if (ratio := _drift_ratio(summary, _min_drift(result, condition.name))) is not None:
            ratios_by_direction[ratio > 1.0][condition.name] = ratio
    for ratios in ratios_by_direction.values():
        if ratios:
            phrase = _drift_phrase(metric, [*ratios.values()])
            quantity = "" if metric in _RUN_TIME_METRICS else f"{metric_name(metric)} of "
            yield f"drift: {quantity}{names_of([*ratios])} {phrase}; {consequence}"


def _min_drift(result: ResultDocument, condition: str) -> float:
    """Return the smallest drift of a condition that is shown, in percent.

    It is the larger of two values: the smallest effect that matters, and half the width of the
    narrowest interval among the comparisons of the condition.
    """
    intervals = (
        comparison.ratio_ci
        for comparison in result.primary_comparisons
        if condition in (comparison.baseline, comparison.candidate)
    )
    half_widths = (
        100.0 * (math.sqrt(high / low) - 1.0) if low and high and high / low > 0 else math.inf
        for low, high in intervals
    )
    min_effect = min((comparison.min_effect for comparison in result.comparisons), default=0.0)
    return max(min_effect, min(half_widths, default=0.0))


def _mode_name(modes: Sequence[Mode], mode_index: int, metric: str) -> str:
    """Name one of several modes: ``the slow one``, ``the one at 9.6 ms``."""
    if len(modes) == 2:
        upper_name, lower_name = ("slow", "fast") if metric.endswith("_s") else ("high", "low")
        return f"the {upper_name if mode_index == 1 else lower_name} one"
    return f"the one at {metric_formatter(metric)(modes[mode_index].value)}"


def _covariate_phrase(association: ModeAssociation) -> str:
    """Name the covariate that is associated with a mode: ``CPU 3``."""
    covariate, value = association.covariate, association.value
    is_high = association.correlation > 0
    match covariate:
        case "cpu" if value is not None:
            return f"CPU {value:.0f}"
        case "position" if value is not None:
            return f"position {value + 1:.0f} in the block"
        case "cpu_set" if value is not None:
            return "the second set of CPUs" if value else "the first set of CPUs"
        case "random_addresses":
            return "random addresses (ASLR)" if value else "fixed addresses (no ASLR)"
        case "time" | "environment_bytes" | "argument_bytes":
            return _MODE_COVARIATES[covariate][is_high]
    if value is not None:
        return f"{covariate} {value:g}"
    return f"{'high' if is_high else 'low'} {covariate}"


def _variance_table(rows: Sequence[VarianceRow]) -> Table:
    levels = list(
        dict.fromkeys(component.level for row in rows for component in row.by_level.components)
    )
    # Examples: the narrow scope is "these 20 processes", and the wide scope "across processes".
    # If the rows have different numbers of processes, the heading is "these processes".
    narrow_scopes = {row.by_level.within_scope for row in rows}
    wide_scope = rows[0].by_level.across_scope
    general_scope = wide_scope.replace("across", "these", 1)
    narrow_heading = narrow_scopes.pop() if len(narrow_scopes) == 1 else general_scope
    table_rows: list[HeadedCells] = []
    for row in rows:
        by_level = row.by_level
        mean = (
            UNKNOWN
            if by_level.geometric_mean is None
            else row.format_value(by_level.geometric_mean)
        )
        components = {
            component.level: _component_text(component) for component in by_level.components
        }
        table_rows.append(
            (
                ("by level:name", row.name),
                ("mean:number", StyledText(mean, "strong")),
                (narrow_heading, row.format_interval(by_level.within_ci)),
                (wide_scope, row.format_interval(by_level.across_ci)),
                *((level, components.get(level, UNKNOWN)) for level in levels),
            )
        )
    return Table(
        *columns_and_rows(table_rows),
        max_rows=_MAX_LEVEL_ROWS,
        notes=(
            "A level's cell: its share of the variance of the logarithm, and the standard "
            "deviation that it adds (docs/methods/levels.md).",
        ),
        forms=TERMINAL,
    )


def _component_text(component: VarianceComponent) -> str:
    """Return ``78 % (±3.1 %; 2.2 to 5.4)``: share, standard deviation and its interval."""
    low, high = map(_standard_deviation, component.variance_ci)
    share = f"{100 * component.share:.0f} %"
    return f"{share} (±{_standard_deviation(component.variance)} %; {low} to {high})"


def _standard_deviation(variance: float) -> str:
    """Return the standard deviation of a logarithm, in percent."""
    return significant(100.0 * math.sqrt(max(0.0, variance)), 2)
