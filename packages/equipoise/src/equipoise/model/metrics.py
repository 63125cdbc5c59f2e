"""Words for sentences about a metric.

Times are *faster* or *slower*. Other metrics have their own words: a program *uses* memory, *has*
page faults and *serves* requests. A metric that a workload reports *is* higher or lower.
"""

from __future__ import annotations

from msgspec import Struct

from equipoise.model.plan import CALL_METRIC, PRIMARY_METRIC
from equipoise.model.result import Verdict


class MetricWords(Struct, frozen=True):
    """Words for sentences about one metric."""

    verb: str
    noun: str
    """Noun for the measured quantity; ``amount`` if the verb implies it."""
    less: str = "less"
    """Word for a lower value: ``fewer`` for counts."""
    part: str = ""
    """Part of a run that the metric measures: an ``iteration``; empty for a whole run."""

    @property
    def more_is_longer(self) -> bool:
        """Whether the word for more of the metric is *longer*: the noun is the plain *time*."""
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
