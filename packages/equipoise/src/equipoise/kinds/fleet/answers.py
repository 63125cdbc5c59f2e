"""Write the answers about a fleet as sentences, each with its question.

`equipoise.stats.hosts` computes the numbers. Sentences have ratios of costs, or ratios
of values if more of the metric is better. The asked hosts are all hosts of the plan.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from equipoise.analysis.wording import signed_change, signed_changes
from equipoise.kinds.fleet.terms import (
    FleetAnswer,
    FleetAnswers,
    FleetDifferences,
    FleetHost,
    FleetInterval,
    FleetTest,
    FleetVariances,
    HostDifference,
    PropertyEffect,
    PropertyValue,
)
from equipoise.model.inverse_ratios import inverse_interval
from equipoise.model.quantities import Interval, byte_count, counted, names_of, significant
from equipoise.stats.hosts import FleetClaims, FleetMean, HostClaims, HostVariance, Prediction
from equipoise.stats.verdict import finite_ratio

PROPERTIES = ("kernel", "cpu_model", "hypervisor", "memory_bytes", "governor", "cpus")
"""Properties of a host that may change an effect."""
MIN_HOSTS_PER_VALUE = 10
"""Minimum hosts with each value of a property, for a note that suggests `equipoise observe`."""

# Each pair has a question, and a pattern for the answer.
_NEW_HOST_TEXTS = (
    "What would one more host show?",
    "Between {ends}, with a chance of at least {chance}. {hosts} allow no stronger claim, and it "
    "is only about similar hosts.",
)
_MEDIAN_TEXTS = (
    "What is the median of all such hosts?",
    "Between {ends}, with a chance of at least {chance}, if these hosts were drawn from all such "
    "hosts.",
)
_NORMAL_TEXTS = (
    "What would one more host show if the effects of hosts are normal?",
    "Between {ends} in {chance} of cases. That effects of hosts are normal is an assumption, which "
    "{hosts} cannot confirm.",
)
_Answer = TypeVar("_Answer", bound=FleetAnswer)


def describe_answers(
    claims: FleetClaims,
    hosts: Sequence[FleetHost],
    *,
    alpha: float,
    only_host: str | None,
    more_is_better: bool,
) -> FleetAnswers:
    """Return the answers over the hosts, each question at level alpha.

    ``only_host`` is the name of the host if all campaigns ran on one host. If more is better, the
    sentences invert the ratios of ``claims``.
    """
    writer = _AnswerWriter(hosts, alpha, only_host, more_is_better)
    by_property = () if only_host is not None else tuple(_property_effects(claims.hosts, hosts))
    subject = "these campaigns" if only_host is not None else "the asked hosts"
    question = "What is the mean over the hosts that were not lost?"
    mean_of_remaining = claims.mean_of_remaining
    remaining = writer.mean_answer(mean_of_remaining, question) if mean_of_remaining else None
    return FleetAnswers(
        mean=writer.mean_answer(claims.mean, f"What is the mean over {subject}?"),
        mean_of_remaining=remaining,
        no_difference=writer.test_answer(claims.e_value),
        differences=writer.differences_answer(claims.hosts),
        new_host=writer.prediction_answer(claims.new_host, *_NEW_HOST_TEXTS),
        median_of_hosts=writer.prediction_answer(claims.median_of_hosts, *_MEDIAN_TEXTS),
        new_host_if_normal=writer.prediction_answer(claims.new_host_if_normal, *_NORMAL_TEXTS),
        variances=_variances(claims.variance),
        by_property=by_property,
        by_property_note=_by_property_note(by_property),
    )


class _AnswerWriter:
    """Writer of the answers about the hosts of one fleet."""

    def __init__(
        self, hosts: Sequence[FleetHost], alpha: float, only_host: str | None, more_is_better: bool
    ) -> None:
        self.alpha, self.only_host, self.more_is_better = alpha, only_host, more_is_better
        self.names = tuple(host.host for host in hosts)

    def change_text(self, ratio: float | None) -> str:
        """Return a ratio of costs as the change in percent that reports show."""
        if self.more_is_better and ratio is not None:
            ratio = 1.0 / ratio if ratio else None
        return "unknown" if ratio is None else signed_change(ratio)

    def ends_text(self, ratio_ci: Interval, separator: str = "to") -> str:
        """Return the ends of an interval as the changes in percent that reports show."""
        shown_ci = inverse_interval(ratio_ci) if self.more_is_better else ratio_ci
        low, high = signed_changes(shown_ci)
        return f"{low} {separator} {high}"

    @property
    def coverage_text(self) -> str:
        return f"{100.0 * (1.0 - self.alpha):.4g} %"

    def mean_answer(self, mean: FleetMean, question: str) -> FleetInterval:
        hosts = tuple(self.names[index] for index in mean.host_indices)
        ratio, ratio_ci = mean.ratio, mean.bounds.ratio_ci
        reason = mean.bounds.unknown_because
        if reason is None and ratio is None:
            reason = "a host has no finite ratio"
        answer = _unknown_sentence(reason)
        if reason is None:
            host_names = names_of(hosts)
            if self.only_host is not None:
                host_names = f"{counted(len(hosts), 'campaign')} on {self.only_host}"
            interval = f"{self.coverage_text} interval {self.ends_text(ratio_ci)}"
            answer = (
                f"{self.change_text(ratio)} ({interval}): the mean of {host_names}, and of no "
                "other host."
            )
        return FleetInterval(
            question=question,
            answer=answer,
            unknown_because=reason,
            ratio=ratio,
            ratio_ci=ratio_ci,
            chance=1.0 - self.alpha if reason is None else None,
            hosts=hosts,
        )

    def test_answer(self, e_value: float) -> FleetTest:
        location = "on any asked host" if self.only_host is None else "in any campaign"
        rejected = e_value * self.alpha >= 1.0
        e_text, threshold = significant(e_value), f"{1.0 / self.alpha:.4g}"
        answer = f"None is certain (e-value {e_text}; {threshold} would be needed)."
        if rejected:
            answer = (
                f"Yes, on at least one (e-value {e_text}; {threshold} was needed). The test shows "
                "neither which one nor the direction."
            )
        return FleetTest(
            question=f"Is there a difference {location}?",
            answer=answer,
            e_value=e_value,
            rejected=rejected,
        )

    def differences_answer(self, hosts: Sequence[HostClaims]) -> FleetDifferences:
        question = "Which host differs from the others?"
        reasons = [
            host.bounds.unknown_because or host.mean_of_others.unknown_because for host in hosts
        ]
        if reasons[0] is not None and None not in reasons:
            return _unknown_answer(FleetDifferences, question, reasons[0])
        host_differences = tuple(map(_ratio_to_others, hosts, self.names))
        clauses = "; ".join(
            f"{host.host}: {self.change_text(host.ratio)} against the mean of the others "
            f"({self.ends_text(host.ratio_ci)})"
            for host in host_differences
            if host.differs
        )
        answer = "None for certain: the interval of each host overlaps that of the others' mean."
        if clauses:
            answer = f"{clauses}. These claims hold together with {self.coverage_text}."
        return FleetDifferences(question=question, answer=answer, hosts=host_differences)

    def prediction_answer(
        self, prediction: Prediction, question: str, pattern: str
    ) -> FleetInterval:
        """Return the answer about hosts that were not measured, worded by ``pattern``."""
        chance, host_count = prediction.chance, counted(len(self.names), "host")
        if not chance:
            too_few = f"{host_count}: too few for a claim about another host"
            return _unknown_answer(FleetInterval, question, prediction.unknown_because or too_few)
        percent = f"{math.floor(1000.0 * chance + 1e-9) / 10.0:g} %"
        ends = self.ends_text(prediction.ratio_ci, "and")
        return FleetInterval(
            question=question,
            answer=pattern.format(ends=ends, chance=percent, hosts=host_count),
            ratio_ci=prediction.ratio_ci,
            chance=chance,
            hosts=self.names,
        )


def _unknown_sentence(reason: str | None) -> str:
    return f"Not known: {reason}."


def _unknown_answer(answer_class: type[_Answer], question: str, reason: str) -> _Answer:
    return answer_class(question=question, answer=_unknown_sentence(reason), unknown_because=reason)


def _ratio_to_others(claims: HostClaims, name: str) -> HostDifference:
    others = claims.mean_of_others
    low, high = claims.bounds.low - others.high, claims.bounds.high - others.low
    ratio = None
    if claims.ln_ratio is not None and math.isfinite(others.low + others.high):
        ratio = finite_ratio(claims.ln_ratio - 0.5 * (others.low + others.high))
    ratio_ci = (finite_ratio(low), finite_ratio(high))
    return HostDifference(name, ratio, ratio_ci, differs=claims.direction is not None)


def _variances(variance: HostVariance) -> FleetVariances:
    question = "How far do hosts differ?"
    if variance.unknown_because is not None:
        return _unknown_answer(FleetVariances, question, variance.unknown_because)
    between_hosts, between_blocks = variance.components
    hosts_text, blocks_text = (
        f"{significant(100.0 * math.expm1(math.sqrt(max(0.0, component.variance))), 2)} %"
        for component in (between_hosts, between_blocks)
    )
    return FleetVariances(
        question=question,
        answer=(
            f"By ±{hosts_text} (standard deviation); blocks of one host differ by ±{blocks_text}."
        ),
        between_hosts=max(0.0, between_hosts.variance),
        between_hosts_ci=between_hosts.variance_ci,
        between_blocks=between_blocks.variance,
    )


def _property_effects(
    claims: Sequence[HostClaims], hosts: Sequence[FleetHost]
) -> Iterator[PropertyEffect]:
    """Yield the properties that differ between hosts with a ratio, the largest spread first."""
    hosts_with_ratio = [
        (host, host_claims.ln_ratio)
        for host, host_claims in zip(hosts, claims, strict=True)
        if host_claims.ln_ratio is not None and math.isfinite(host_claims.ln_ratio)
    ]
    effects: list[PropertyEffect] = []
    for name in PROPERTIES:
        groups: dict[str, list[tuple[str, float]]] = defaultdict(list)
        """Name and log ratio of each host, by the value of the property."""
        for host, ln_ratio in hosts_with_ratio:
            value = _property_text(name, host.environment.get(name))
            groups[value].append((host.host, ln_ratio))
        if len(groups) > 1:
            means = [sum(log for _, log in group) / len(group) for group in groups.values()]
            values = tuple(
                PropertyValue(value, tuple(host for host, _ in group), finite_ratio(mean))
                for (value, group), mean in zip(groups.items(), means, strict=True)
            )
            effects.append(PropertyEffect(name, values, finite_ratio(max(means) - min(means))))
    yield from sorted(effects, key=lambda effect: -(effect.spread or 0.0))


def _property_text(name: str, value: Any) -> str:
    if value is None:
        return "unknown"
    is_size = name.endswith("_bytes") and isinstance(value, int | float)
    return byte_count(value) if is_size else str(value)


def _by_property_note(properties: Sequence[PropertyEffect]) -> str:
    """Return the sentence about means by property; empty if no property differs."""
    if not properties:
        return ""
    host_count = max(min(len(value.hosts) for value in effect.values) for effect in properties)
    note = "Means of hosts, without an interval: hosts with one value also differ in other ways."
    if host_count >= MIN_HOSTS_PER_VALUE:
        return (
            f"{note} With this many hosts, compare hosts that are alike in other properties: "
            "`equipoise export` writes each trial with the properties of its host, and `equipoise "
            "observe` matches the hosts."
        )
    return f"{note} With under {MIN_HOSTS_PER_VALUE} hosts of each value this is not a claim."
