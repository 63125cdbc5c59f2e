"""Sentences of a fleet: each question in plain words, and its answer.

Ratios are those that a reader is shown: of a cost, or of values where more of a metric is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.analysis.wording import signed_percent
from equipoise.model.fleet import HostDifference, PropertyEffect
from equipoise.model.quantities import Interval, counted, names_of, significant

MEAN = "What is the mean over the asked hosts?"
MEAN_HERE = "What is the mean over these campaigns?"
NO_DIFFERENCE_HERE = "Is there a difference in any campaign?"
STAYED = "What is the mean over the hosts that stayed?"
NO_DIFFERENCE = "Is there a difference on any asked host?"
OTHERWISE = "Which host is otherwise than the others?"
NEW_HOST = "What would one more host show?"
MEDIAN = "What is the median of all such hosts?"
NORMAL = "And if the effects of hosts are normal?"
VARIANCES = "How far do hosts differ?"


def unknown_sentence(because: str) -> str:
    """Return the answer where nothing can be claimed."""
    return f"Not known: {because}."


def too_few_hosts(hosts: int) -> str:
    """Return the reason why so few hosts say nothing of another one."""
    return f"{counted(hosts, 'host')}: too few to say anything of another one"


def mean_sentence(
    ratio: float | None,
    ratio_ci: Interval,
    hosts: Sequence[str],
    *,
    level: float,
    one_host: str | None,
) -> str:
    """Return the mean over the asked hosts, and whose mean it is."""
    of = names_of(hosts) if one_host is None else f"{counted(len(hosts), 'campaign')} on {one_host}"
    interval = f"{_coverage(level)} interval {_ends(ratio_ci)}"
    return f"{_change(ratio)} ({interval}): the mean of {of}, and of no other host."


def no_difference_sentence(e_value: float, *, alpha: float) -> str:
    """Return whether there is a difference on any asked host."""
    needed = f"{1.0 / alpha:.4g}"
    if e_value * alpha >= 1.0:
        return (
            f"Yes, on at least one (e-value {significant(e_value)}, where {needed} was needed); on "
            "which, and in which direction, this does not say."
        )
    return f"None is shown (e-value {significant(e_value)}, where {needed} would be needed)."


def otherwise_sentence(hosts: Sequence[HostDifference], *, alpha: float) -> str:
    """Return which hosts are otherwise than the mean of the others."""
    named = [
        f"{one.host}: {_change(one.ratio)} against the mean of the others ({_ends(one.ratio_ci)})"
        for one in hosts
        if one.differs
    ]
    if named:
        return f"{'; '.join(named)}. All of this holds with {_coverage(alpha)}."
    return "None is shown to be: the interval of each reaches that of the others' mean."


def new_host_sentence(ratio_ci: Interval, chance: float, hosts: int) -> str:
    """Return where one more host lies, with its chance."""
    return (
        f"Between {_ends(ratio_ci, 'and')}, with a chance of at least {_chance(chance)}: no more "
        f"can be said from {counted(hosts, 'host')}, and only of hosts like these."
    )


def median_sentence(ratio_ci: Interval, chance: float) -> str:
    """Return where the median of the population lies."""
    return (
        f"Between {_ends(ratio_ci, 'and')}, with a chance of at least {_chance(chance)}, if these "
        "hosts were drawn from all such hosts."
    )


def normal_sentence(ratio_ci: Interval, chance: float, hosts: int) -> str:
    """Return the prediction for a normal population, and what it rests on."""
    return (
        f"Between {_ends(ratio_ci, 'and')} in {_chance(chance)} of cases; that effects of hosts "
        f"are normal is presumed, and {counted(hosts, 'host')} cannot show it."
    )


def variances_sentence(between: float, within: float) -> str:
    """Return the standard deviations between hosts, and between the blocks of one."""
    return (
        f"By ±{_deviation(between)} (standard deviation); blocks of one host differ by "
        f"±{_deviation(within)}."
    )


def by_property_note(properties: Sequence[PropertyEffect], few: int) -> str:
    """Return what the means by property are worth; empty where there is none.

    Parameters
    ----------
    few
        Number of hosts with one value below which their mean says nothing of the value.
    """
    if not properties:
        return ""
    fewest = max(min(len(value.hosts) for value in one.values) for one in properties)
    note = "Means of hosts, without an interval: hosts with one value differ in much else."
    if fewest >= few:
        return (
            f"{note} With this many hosts, compare hosts that are alike otherwise: `equipoise "
            "export` writes each trial with its host's properties, and `equipoise observe` matches."
        )
    return f"{note} With under {few} hosts of each value it is a lead, and no claim."


def _deviation(variance: float) -> str:
    return f"{significant(100.0 * math.expm1(math.sqrt(max(0.0, variance))), 2)} %"


def _change(ratio: float | None) -> str:
    return "unknown" if ratio is None else signed_percent(ratio)


def _ends(ratio_ci: Interval, joint: str = "to") -> str:
    low, high = ("unlimited" if end is None else signed_percent(end) for end in ratio_ci)
    return f"{low} {joint} {high}"


def _coverage(level: float) -> str:
    return f"{100.0 * (1.0 - level):.4g} %"


def _chance(chance: float) -> str:
    return f"{math.floor(1000.0 * chance + 1e-9) / 10.0:g} %"
