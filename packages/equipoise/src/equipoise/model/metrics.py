"""Words for sentences about a metric, and ratios of costs as ratios of its values.

Times are *faster* or *slower*. Other metrics have their own words: a program *uses* memory, *has*
page faults and *serves* requests; a metric that a workload reports itself *is* higher or lower. If
more of a metric is better, its cost is the inverse of its value, and every ratio of costs is
inverted before a reader sees it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.plan import CALL_METRIC, PRIMARY_METRIC
from equipoise.model.quantities import Interval
from equipoise.model.result import Comparison, Verdict

ComparisonT = TypeVar("ComparisonT", bound=Comparison)
RatioT = TypeVar("RatioT", bound=Struct)
"""Struct with a ``ratio`` and its interval ``ratio_ci``."""


class MetricWords(Struct, frozen=True):
    """Words for sentences about one metric."""

    verb: str
    noun: str
    """Noun for the measured quantity; ``amount`` if the verb implies it."""
    less: str = "less"
    """Word for a lower value: ``fewer`` for counts."""
    part: str = ""
    """Part of a run that the metric measures: an ``iteration``."""

    @property
    def is_duration(self) -> bool:
        """Whether the metric is a time, so that more is *longer*."""
        return self.noun == "time"


WORDS: dict[str, MetricWords] = {
    PRIMARY_METRIC: MetricWords("takes", "time"),
    CALL_METRIC: MetricWords("takes", "time"),
    "iteration_s": MetricWords("takes", "time", part="iteration"),
    "user_s": MetricWords("uses", "user CPU time"),
    "sys_s": MetricWords("uses", "system CPU time"),
    "cpu_s": MetricWords("uses", "CPU time"),
    "max_rss_bytes": MetricWords("uses", "memory"),
    "output_bytes": MetricWords("writes", "output"),
    "throughput_per_s": MetricWords("serves", "amount"),
    "minor_faults": MetricWords("has", "minor page faults", "fewer"),
    "major_faults": MetricWords("has", "major page faults", "fewer"),
    "voluntary_switches": MetricWords("makes", "voluntary context switches", "fewer"),
    "involuntary_switches": MetricWords("has", "involuntary context switches", "fewer"),
    "block_reads": MetricWords("makes", "block reads", "fewer"),
    "block_writes": MetricWords("makes", "block writes", "fewer"),
}
"""Words by metric; sentences use the name of any other metric."""


def is_time(metric: str) -> bool:
    """Return whether a metric is a time, so that less of it is faster."""
    return metric.endswith("_s") and not metric.endswith("_per_s")


def verdict_word(verdict: Verdict, metric: str, *, more_is_better: bool = False) -> str:
    """Return the word for a verdict on a metric: ``less`` for less memory, not ``faster``."""
    if is_time(metric) or verdict not in ("faster", "slower"):
        return verdict
    return "more" if (verdict == "slower") is not more_is_better else "less"


def inverse_ratio(ratio: float | None) -> float | None:
    """Return 1 over a ratio; ``None`` if it is unknown or 0."""
    return 1.0 / ratio if ratio else None


def inverse_interval(interval: Interval) -> Interval:
    """Return the interval of 1 over a ratio; the inverse of an end at 0 is unlimited (``None``)."""
    low, high = interval
    return (1.0 / high if high else None, 1.0 / low if low else None)


def as_values(comparison: ComparisonT) -> ComparisonT:
    """Return a comparison with ratios of values instead of costs, if more of a metric is better."""
    layouts_claim = comparison.in_these_layouts
    return replace(
        invert_ratio(comparison),
        equivalence_ci=inverse_interval(comparison.equivalence_ci),
        mean_ratio=inverse_ratio(comparison.mean_ratio),
        mean_ratio_ci=inverse_interval(comparison.mean_ratio_ci),
        answers=tuple(
            replace(answer, ratio=inverse_ratio(answer.ratio)) for answer in comparison.answers
        ),
        **comparison.additional_values(),
        in_these_layouts=layouts_claim and invert_ratio(layouts_claim),
    )


def invert_ratio(ratio: RatioT) -> RatioT:
    """Return the struct with its ratio and the interval inverted."""
    struct: Any = ratio
    return replace(
        ratio, ratio=inverse_ratio(struct.ratio), ratio_ci=inverse_interval(struct.ratio_ci)
    )
