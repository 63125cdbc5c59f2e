"""Result documents as campaigns make them, by hand: for what shows them."""

from __future__ import annotations

import math
import statistics
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import asdict, replace

from equipoise.design.command_line import shell_line
from equipoise.model.plan import Layout
from equipoise.model.quantities import Interval
from equipoise.model.record import CampaignWarning
from equipoise.model.result import (
    SCHEMA,
    Advice,
    Comparison,
    ConditionResult,
    Drift,
    MetricSummary,
    Mode,
    ResultDocument,
    RunInfo,
    TrialRow,
    VarianceByLevel,
    VarianceComponent,
    Verdict,
)
from equipoise.model.why import Explanation, InterventionOutcome
from equipoise.stats.levels import describe_advice
from equipoise.stats.sequence import SequencePoint
from packages.equipoise.tests.schema import validated

HOSTILE = "<script>document.title='pwned'</script></script><img src=x onerror=alert(1)>&\"'"
"""A label that does something wherever it is not escaped."""


Of = TypeVar("Of", bound=ResultDocument)


def document_as(kind: type[Of], document: ResultDocument, **fields: Any) -> Of:
    """The same document as one of a kind of campaign, with the fields that the kind has."""
    return kind(**{**asdict(document), **fields})


def document_of(
    *names: str,
    blocks: int = 60,
    medians: tuple[float, ...] = (0.0500, 0.0526, 0.0498),
    noise: float = 0.02,
    seed: int = 7,
    timeouts: frozenset[int] = frozenset(),
    words: str | None = None,
) -> ResultDocument:
    """A campaign of log-normal times.

    Parameters
    ----------
    names
        The conditions, baseline first; two sorts by default.
    medians
        True medians in seconds, repeated as needed.
    timeouts
        Blocks in which the last condition timed out after 1 s.
    """
    names = names or ("sort words", "sort --parallel=2 words")
    generator = np.random.default_rng(seed)
    trials = [_row(0, place, name, 0.06, "warmup") for place, name in enumerate(names)]
    times: dict[str, list[float]] = {name: [] for name in names}
    for block in range(1, blocks + 1):
        for position, place in enumerate(generator.permutation(len(names))):
            wall_s = float(
                medians[place % len(medians)]
                * math.exp(noise * generator.normal())
                * (1 + 0.02 * block / blocks)
            )
            if block in timeouts and place == len(names) - 1:
                trials.append(_timed_out(block, position, names[place]))
                continue
            times[names[place]].append(wall_s)
            trials.append(_row(block, position, names[place], wall_s, "measured"))
    conditions = tuple(_condition(name, times[name], blocks) for name in names)
    comparisons = tuple(
        comparison_of(names[0], name, _ratio(times[names[0]], times[name]), blocks, words=words)
        for name in names[1:]
    )
    document = ResultDocument(
        schema=SCHEMA,
        run=RunInfo(
            id="20260301-101500-ab12",
            study="compare",
            started="2026-03-01T10:15:00Z",
            ended="2026-03-01T10:15:21Z",
            seed=seed,
            blocks=blocks,
            stopped_because="verdict",
            command_line=shell_line(["equipoise", "compare", "--seed", str(seed), *names]),
        ),
        environment={
            "equipoise": "0.1.0",
            "kernel": "6.1.0",
            "cpu_model": "Example CPU @ 2.60GHz",
            "cpus": 2,
            "cpus_allowed": [0, 1],
            "memory_bytes": 8_000_000_000,
            "governor": None,
            "libraries": {"libc.so.6": "2.36"},
        },
        conditions=conditions,
        comparisons=comparisons,
        control=None,
        why=(),
        warnings=(
            CampaignWarning(
                "drift",
                "The machine became 2 % slower over the campaign; the order of trials cancels it.",
                "close what else runs, or measure when the machine is idle",
            ),
        ),
        trials=tuple(trials),
    )
    # A large one takes seconds to hold against the schema and has nothing new in it.
    return validated(document) if len(trials) < 500 else document


def comparison_of(
    baseline: str,
    candidate: str,
    ratio: float | None,
    blocks: int = 60,
    *,
    ratio_ci: Interval | None = None,
    verdict: Verdict | None = None,
    words: str | None = None,
    metric: str = "wall_s",
) -> Comparison:
    """One comparison; the interval is 2 % to each side by default."""
    if ratio_ci is None:
        ratio_ci = (None, None) if ratio is None else (ratio * 0.98, ratio * 1.02)
    if verdict is None:
        verdict = "undecided" if ratio is None else "slower" if ratio > 1 else "faster"
    if words is None:
        change = 0.0 if ratio is None else abs(100 * (ratio - 1))
        words = (
            f"{candidate} against {baseline} is undecided after {blocks} blocks."
            if ratio is None
            else f"{candidate} is {verdict} than {baseline}: it takes {change:.2f} % "
            f"{'longer' if ratio > 1 else 'less time'}."
        )
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        metric=metric,
        estimand="typical within-block ratio",
        ratio=ratio,
        ratio_ci=ratio_ci,
        e_value=812.0,
        verdict=verdict,
        min_effect=1.0,
        alpha=0.05,
        blocks=blocks,
        mean_ratio=ratio,
        mean_ratio_ci=ratio_ci,
        probability_slower=0.93,
        probability_slower_ci=(0.8, 0.98),
        minimum_misleads=False,
        scope="this campaign",
        summary=words,
        significance_level=0.05,
        equivalence_ci=ratio_ci,
        equivalence_level=0.1,
    )


def layered_document(*names: str) -> ResultDocument:
    """A campaign over twelve layouts, which make most of the variance."""
    document = document_of(*names)
    found = by_level_of(1.021)
    return replace(
        document,
        run=replace(document.run, layouts=(Layout(7, 3, True),) * 12),
        conditions=tuple(
            _layered(condition, by_level_of(0.05)) for condition in document.conditions
        ),
        comparisons=tuple(
            replace(comparison, by_level=found) for comparison in document.comparisons
        ),
    )


def by_level_of(mean: float) -> VarianceByLevel:
    """Layouts add 3 %, trials 1 %."""
    advice = (Advice("layout", 40.0, 0.4), Advice("trial", 400.0, 0.02))
    return VarianceByLevel(
        geometric_mean=mean,
        within_scope="these 12 layouts",
        within_ci=(mean * 0.995, mean * 1.005),
        across_scope="across layouts",
        across_ci=(mean * 0.97, mean * 1.03),
        significance_level=0.05,
        components=(
            VarianceComponent("layout", 12, 9e-4, (4e-4, 25e-4), 0.9),
            VarianceComponent("trial", 60, 1e-4, (0.64e-4, 1.44e-4), 0.1),
        ),
        advice=advice,
        advice_summary=describe_advice(advice),
    )


def _layered(condition: ConditionResult, found: VarianceByLevel) -> ConditionResult:
    wall = replace(condition.metrics["wall_s"], by_level=found)
    return replace(condition, metrics={**condition.metrics, "wall_s": wall})


def points_of(ratio: float, blocks: int = 60) -> tuple[SequencePoint, ...]:
    """An interval that is open for five blocks and then narrows towards ``ratio``."""
    return tuple(
        SequencePoint(block, None, None, None)
        if block <= 5
        else SequencePoint(
            block,
            ratio,
            ratio * math.exp(-0.3 / math.sqrt(block - 5) ** 1.5),
            ratio * math.exp(0.3 / math.sqrt(block - 5) ** 1.5),
        )
        for block in range(1, blocks + 1)
    )


def sized_document() -> ResultDocument:
    """Two algorithms at four sizes."""
    sizes = (445, 890, 1780, 5340)
    names = [f"{algorithm} {rows}" for algorithm in ("fast", "slow") for rows in sizes]
    medians = tuple(
        scale * (rows / 445) ** power
        for scale, power in ((0.01, 1.0), (0.012, 1.5))
        for rows in sizes
    )
    document = document_of(*names, blocks=12, medians=medians)
    return replace(
        document,
        conditions=tuple(
            replace(
                condition,
                levels={"algorithm": condition.name.split()[0], "rows": condition.name.split()[1]},
            )
            for condition in document.conditions
        ),
    )


def _condition(name: str, times: list[float], blocks: int) -> ConditionResult:
    metrics = {} if not times else {"wall_s": _summary(times), "max_rss_bytes": _summary([2.1e6])}
    return ConditionResult(
        name=name,
        levels={},
        command=tuple(name.split()),
        trials=blocks,
        failures=blocks - len(times),
        metrics=metrics,
    )


def _summary(values: list[float]) -> MetricSummary:
    quantiles = [float(quantile) for quantile in np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])]
    half = 2 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    median = quantiles[2]
    return MetricSummary(
        median=median,
        median_ci=(None, None) if half is None else (median - half, median + half),
        mean=statistics.fmean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        min=min(values),
        p05=quantiles[0],
        p25=quantiles[1],
        p75=quantiles[3],
        p95=quantiles[4],
        max=max(values),
        modes=(Mode(median, 1.0),),
        drift=Drift(1.013, (1.006, 1.021)) if len(values) > 5 else None,
    )


def _ratio(baseline: list[float], candidate: list[float]) -> float | None:
    if len(baseline) < 8 or len(candidate) < 8:
        return None
    return statistics.median(candidate) / statistics.median(baseline)


def row_of(condition: str, wall_s: float | None, **changed: Any) -> TrialRow:
    """A measured trial of which only the time is known, but for the changes."""
    row = TrialRow(
        block=1,
        position=0,
        condition=condition,
        phase="measured",
        analysed=True,
        left_out_because=None,
        wall_s=wall_s,
        user_s=None,
        sys_s=None,
        max_rss_bytes=None,
        minor_faults=None,
        major_faults=None,
        voluntary_switches=None,
        involuntary_switches=None,
        exit=0,
        failure=None,
    )
    return replace(row, **changed)


def _row(block: int, position: int, name: str, wall_s: float, phase: str) -> TrialRow:
    warms_up = phase == "warmup"
    return row_of(
        name,
        wall_s,
        block=max(block, 1),
        position=position,
        phase=phase,
        analysed=not warms_up,
        left_out_because="it warms up" if warms_up else None,
        user_s=wall_s * 0.9,
        sys_s=wall_s * 0.05,
        max_rss_bytes=2_100_000 + 4096 * position,
        minor_faults=120,
        major_faults=0,
        voluntary_switches=1,
        involuntary_switches=0,
        covariates={"load_1_minute": 0.25},
    )


def _timed_out(block: int, position: int, name: str) -> TrialRow:
    return replace(
        _row(block, position, name, 1.0, "measured"),
        wall_s=None,
        user_s=None,
        sys_s=None,
        max_rss_bytes=None,
        exit=None,
        failure="timed out after 1 s",
        failure_kind="timed out",
        unknown={"wall_s": "it timed out"},
    )


CLOSED = InterventionOutcome(
    intervention="never_mmap",
    summary="keeping freed memory",
    outcome="confirmed",
    share=0.97,
    share_ci=(0.94, 0.99),
    share_of_seconds=0.98,
    share_of_seconds_ci=(0.95, 1.0),
    from_candidate=0.97,
    from_baseline=0.0,
    blocks=20,
    significance_level=0.0125,
)
"""An intervention that closes a gap."""


def explanation_of(text: str) -> Explanation:
    """A cause whose every text is this one."""
    return Explanation(
        cause=text,
        kind="page_fault",
        evidence={text: text},
        status="open",
        share_of_gap=None,
        share_ci=(None, None),
        summary=text,
    )
