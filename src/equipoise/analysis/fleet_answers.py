"""The answers of a fleet in words: from the numbers over hosts to questions with their answers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from equipoise.analysis import fleet_wording as wording
from equipoise.model.fleet import (
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
from equipoise.model.metrics import inverse_interval
from equipoise.model.quantities import Interval, byte_count
from equipoise.stats.fleet import FleetAnswers as Numbers
from equipoise.stats.fleet import FleetMean, HostAnswer, Prediction
from equipoise.stats.verdict import finite_ratio

PROPERTIES = ("kernel", "cpu_model", "hypervisor", "memory_bytes", "governor", "cpus")
"""Facts of a host that an effect may differ by."""
FEW_OF_A_VALUE = 10
"""Fewest hosts with one value whose mean says something of that value: as many as the clusters of
each version from which `equipoise observe` answers."""


def describe_answers(
    numbers: Numbers,
    hosts: Sequence[FleetHost],
    *,
    alpha: float,
    one_host: str | None,
    more_is_better: bool,
) -> FleetAnswers:
    """Word what holds over the hosts.

    Parameters
    ----------
    numbers
        In the order of ``hosts``.
    alpha
        Level of each question.
    one_host
        Name of the host that all campaigns are of; ``None`` if there are several.
    more_is_better
        Whether the cost that the ratios compare is the inverse of the metric: sentences then tell
        ratios of values.
    """
    writer = _AnswerWriter(hosts, alpha, one_host, more_is_better)
    by_property = () if one_host is not None else tuple(_by_property(numbers.hosts, hosts))
    return FleetAnswers(
        mean=writer.mean(numbers.asked, wording.MEAN if one_host is None else wording.MEAN_HERE),
        stayed=None if numbers.stayed is None else writer.mean(numbers.stayed, wording.STAYED),
        no_difference=writer.no_difference(numbers.no_host_differs.e_value),
        otherwise=writer.otherwise(numbers.hosts),
        new_host=writer.new_host(numbers.new_host),
        median=writer.median(numbers.median_of_hosts),
        normal=writer.normal(numbers.new_normal_host),
        variances=writer.variances(numbers),
        by_property=by_property,
        by_property_note=wording.by_property_note(by_property, FEW_OF_A_VALUE),
    )


class _AnswerWriter:
    """Writer of the answers about the hosts of one fleet."""

    def __init__(
        self, hosts: Sequence[FleetHost], alpha: float, one_host: str | None, more_is_better: bool
    ) -> None:
        self.hosts, self.alpha, self.one_host = hosts, alpha, one_host
        self.more_is_better = more_is_better
        self.names = tuple(host.host for host in hosts)

    def shown_ratio(self, ratio: float | None) -> float | None:
        """Return a ratio as a reader is shown it."""
        return (1.0 / ratio if ratio else None) if self.more_is_better else ratio

    def shown_interval(self, ratio_ci: Interval) -> Interval:
        """Return an interval as a reader is shown it."""
        return inverse_interval(ratio_ci) if self.more_is_better else ratio_ci

    def mean(self, mean: FleetMean, question: str) -> FleetInterval:
        names = tuple(self.names[place] for place in mean.places)
        ratio_ci, ratio = mean.bounds.ratio_ci, mean.ratio
        unknown = mean.bounds.unknown_because
        if unknown is None and ratio is None:
            unknown = "a host has no finite ratio"
        if unknown is not None:
            return FleetInterval(
                question=question,
                answer=wording.unknown_sentence(unknown),
                unknown_because=unknown,
                ratio=ratio,
                ratio_ci=ratio_ci,
                hosts=names,
            )
        sentence = wording.mean_sentence(
            self.shown_ratio(ratio),
            self.shown_interval(ratio_ci),
            names,
            level=self.alpha,
            one_host=self.one_host,
        )
        return FleetInterval(
            question=question,
            answer=sentence,
            ratio=ratio,
            ratio_ci=ratio_ci,
            chance=1.0 - self.alpha,
            hosts=names,
        )

    def no_difference(self, e_value: float) -> FleetTest:
        return FleetTest(
            question=wording.NO_DIFFERENCE if self.one_host is None else wording.NO_DIFFERENCE_HERE,
            answer=wording.no_difference_sentence(e_value, alpha=self.alpha),
            e_value=e_value,
            rejected=e_value * self.alpha >= 1.0,
        )

    def otherwise(self, hosts: Sequence[HostAnswer]) -> FleetDifferences:
        reasons = [one.bounds.unknown_because or one.others.unknown_because for one in hosts]
        unknown = reasons[0]
        if unknown is not None and None not in reasons:
            return FleetDifferences(
                question=wording.OTHERWISE,
                answer=wording.unknown_sentence(unknown),
                unknown_because=unknown,
            )
        differences = tuple(map(self.difference, hosts, self.names))
        shown = [
            HostDifference(
                one.host,
                self.shown_ratio(one.ratio),
                self.shown_interval(one.ratio_ci),
                one.differs,
            )
            for one in differences
        ]
        return FleetDifferences(
            question=wording.OTHERWISE,
            answer=wording.otherwise_sentence(shown, alpha=self.alpha),
            hosts=differences,
        )

    def difference(self, one: HostAnswer, name: str) -> HostDifference:
        """Return one host over the mean of the others."""
        low, high = one.bounds.low - one.others.high, one.bounds.high - one.others.low
        ends = (finite_ratio(low), finite_ratio(high))
        middle = None
        if one.typical is not None and math.isfinite(one.others.low + one.others.high):
            middle = finite_ratio(one.typical - 0.5 * (one.others.low + one.others.high))
        return HostDifference(name, middle, ends, one.otherwise is not None)

    def new_host(self, prediction: Prediction) -> FleetInterval:
        return self.prediction(
            prediction,
            wording.NEW_HOST,
            lambda ends, chance: wording.new_host_sentence(ends, chance, len(self.hosts)),
        )

    def median(self, prediction: Prediction) -> FleetInterval:
        return self.prediction(prediction, wording.MEDIAN, wording.median_sentence)

    def normal(self, prediction: Prediction) -> FleetInterval:
        return self.prediction(
            prediction,
            wording.NORMAL,
            lambda ends, chance: wording.normal_sentence(ends, chance, len(self.hosts)),
        )

    def prediction(
        self, prediction: Prediction, question: str, tell: Callable[[Interval, float], str]
    ) -> FleetInterval:
        unknown, chance = prediction.unknown_because, prediction.chance
        if unknown is None and not chance:
            unknown = wording.too_few_hosts(len(self.hosts))
        if unknown is not None or chance is None:
            because = unknown or "no chance can be given"
            return FleetInterval(
                question=question, answer=wording.unknown_sentence(because), unknown_because=because
            )
        return FleetInterval(
            question=question,
            answer=tell(self.shown_interval(prediction.ratio_ci), chance),
            ratio_ci=prediction.ratio_ci,
            chance=chance,
            hosts=self.names,
        )

    def variances(self, numbers: Numbers) -> FleetVariances:
        components = {one.level: one for one in numbers.variance.components}
        between, within = components.get("host"), components.get("block")
        if between is None or within is None:
            unknown = numbers.variance.unknown_because or "it cannot be told apart"
            return FleetVariances(
                question=wording.VARIANCES,
                answer=wording.unknown_sentence(unknown),
                unknown_because=unknown,
            )
        return FleetVariances(
            question=wording.VARIANCES,
            answer=wording.variances_sentence(between.variance, within.variance),
            between=max(0.0, between.variance),
            between_ci=between.variance_ci,
            within=within.variance,
        )


def _by_property(
    answers: Sequence[HostAnswer], hosts: Sequence[FleetHost]
) -> Iterator[PropertyEffect]:
    """Yield the properties that the hosts with a ratio differ by, the largest spread first."""
    known = [
        (host, answer.typical)
        for host, answer in zip(hosts, answers, strict=True)
        if answer.typical is not None and math.isfinite(answer.typical)
    ]
    effects: list[PropertyEffect] = []
    for name in PROPERTIES:
        by_value: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for host, typical in known:
            value = _property_text(name, host.environment.get(name))
            by_value[value].append((host.host, typical))
        if len(by_value) > 1:
            means = [sum(log for _, log in of) / len(of) for of in by_value.values()]
            values = tuple(
                PropertyValue(value, tuple(host for host, _ in of), finite_ratio(mean))
                for (value, of), mean in zip(by_value.items(), means, strict=True)
            )
            effects.append(PropertyEffect(name, values, finite_ratio(max(means) - min(means))))
    yield from sorted(effects, key=lambda one: -(one.spread or 0.0))


def _property_text(name: str, value: Any) -> str:
    """Return the value of a property as a reader sees it."""
    if value is None:
        return "unknown"
    is_size = name.endswith("_bytes") and isinstance(value, int | float)
    return byte_count(value) if is_size else str(value)
