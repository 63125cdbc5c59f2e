"""Sentences on what the tables show, with their figures, and on what is not claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.validity.results import Results
from benchmarks.validity.shares import Share
from benchmarks.validity.summary import Summary
from benchmarks.validity.tables import percent_of, runs

_INDEPENDENT = ("Gauss 0.5 %", "Gauss 2 %", "Gauss 5 %")
_CORRELATED = ("AR(1) 0.6", "AR(1) 0.9", "random walk")
_ONE_AFTER_THE_OTHER = ("hyperfine, Welch", "benchstat", "pyperf")
_TEN_RUNS = ("hyperfine, Welch", "benchstat")
_COARSE = ("5 ticks", "3 ticks")


def findings(results: Results) -> str:
    """Return two lists in Markdown: what the simulations show, and what is not claimed.

    All scenarios must have been simulated.
    """
    by_name = {one.scenario.name: one for one in results.single}
    shown = (
        _claimed(results.single),
        _one_after_the_other(by_name),
        _test_after_every_run(by_name),
        _cost_of_safety(by_name),
        _coarse_clocks(by_name),
        _means(by_name),
        _pooled(results),
        _layouts(results),
    )
    return "\n".join(
        ["## What it shows", "", *shown, "", "## What is not claimed", "", *_not_claimed(by_name)]
    )


def _claimed(single: Sequence[Summary]) -> str:
    error_rate = [one for one in single if one.scenario.claims_error_rate]
    coverage = [one.missed for one in single if one.scenario.claims_coverage]
    probability = [one.probability_missed for one in single if one.probability_missed is not None]
    alarms = [share for one in error_rate for share in (one.any_effect, one.default)]
    return (
        f"- **Claimed: false alarms of at most 5 % in {len(error_rate)} scenarios.** They come "
        f"in {_range(alarms)} of campaigns, however many interim analyses there are. Coverage of a "
        f"true effect is claimed in {len(coverage)} scenarios; intervals miss it in "
        f"{_range(coverage)}. "
        "(An effect only shifts all log ratios. So the same campaigns miss 3 % that raise a false "
        "alarm without it, except where a clock or a time limit cuts.) Intervals of P(slower) miss "
        f"the truth in {_range(probability)}."
    )


def _one_after_the_other(by_name: dict[str, Summary]) -> str:
    def called(names: Iterable[str]) -> str:
        return _range(
            by_name[name].peers[rule].called for name in names for rule in _ONE_AFTER_THE_OTHER
        )

    return (
        "- **All of A, then all of B** (hyperfine with Welch, benchstat, pyperf): they raise false "
        f"alarms in {called(_INDEPENDENT)} under independent noise, as their tests promise; in "
        f"{called(_CORRELATED)} if neighbouring runs have something in common, and in "
        f"{called(['drift'])} under a drift."
    )


def _test_after_every_run(by_name: dict[str, Summary]) -> str:
    def called(rule: str, names: Iterable[str]) -> str:
        return _range(by_name[name].peers[rule].called for name in names)

    drifting = [by_name["drift"].peers[rule].found for rule in ("tachometer", "temci")]
    return (
        "- **An ordinary test after every run** raises false alarms in "
        f"{called('tachometer', _INDEPENDENT)} (tachometer's rule) and "
        f"{called('temci', _INDEPENDENT)} (temci's, which also stops early without a difference) "
        "under independent noise. A slowdown of every second run fools tachometer's fixed turns in "
        f"{called('tachometer', ['slot 5 %'])}. Under drift and correlation their turns and blocks "
        "keep false alarms away, but unpaired tests then see nothing: of a true 3 % under a drift "
        f"of 1 % a run they find {_range(drifting)}."
    )


def _cost_of_safety(by_name: dict[str, Summary]) -> str:
    def cost(name: str) -> str:
        one = by_name[name]
        ten = _range(one.peers[rule].found for rule in _TEN_RUNS)
        return (
            f"finds 3 % in {percent_of(one.found[3.0].slower)} %, in "
            f"{runs(one.found[3.0].length.median)} runs at the median; ten runs of each condition "
            f"find it in {ten}, pyperf's 160 runs in {percent_of(one.peers['pyperf'].found)} %"
        )

    return (
        "- **The cost of safety.** Under independent noise of 2 %, Equipoise "
        f"{cost('Gauss 2 %')}. Under 5 % noise it {cost('Gauss 5 %')}."
    )


def _coarse_clocks(by_name: dict[str, Summary]) -> str:
    told, untold = by_name["10 ticks"], by_name["10 ticks untold"]
    return (
        "- **Coarse clocks.** A run of 10 clock ticks is too short for 3 %: it is found in "
        f"{percent_of(told.found[3.0].slower)} %, and the interval misses it in "
        f"{_percent(told.missed)}. At a ratio of 2 in 3 or 5 ticks intervals miss the truth in "
        f"{_range(by_name[name].missed for name in _COARSE)}. Where the metric does not tell its "
        "resolution, it is inferred from past values: false alarms in "
        f"{_percent(untold.any_effect)}, misses of a true 3 % in {_percent(untold.missed)}."
    )


def _means(by_name: dict[str, Summary]) -> str:
    rare = by_name["rare slow runs"]
    return (
        "- **Typical runs and means.** `mixed` has no error rate: it compares the ratio of means "
        "with 1, without an interval. A true slowdown by 3 % ends as `mixed` in "
        f"{percent_of(by_name['spikes'].found[3.0].mixed)} % under spikes and in "
        f"{percent_of(by_name['Cauchy'].found[3.0].mixed)} % under Cauchy noise. Where one run in "
        "ten takes three times as long, `equivalent` is said in "
        f"{_percent(rare.verdicts['equivalent'])}: a few campaigns meet no slow run in time."
    )


def _pooled(results: Results) -> str:
    alike = [one for one in results.pooled if one.scenario.claims_common_ratio]
    naive = [one.naive_missed for one in alike]
    return (
        "- **Pooled stops.** Campaigns that stopped at their verdict: the interval of their common "
        f"ratio misses the truth in {_range(one.common_missed for one in alike)} of pools, that of "
        f"the mean over campaigns in {_range(one.mean_missed for one in results.pooled)}, also "
        "where the campaigns differ. The mean of the ratios at the stop would miss it in "
        f"{_range(naive)}."
    )


def _layouts(results: Results) -> str:
    def called(kind: str) -> str:
        return _range(one.called for one in results.layouts if kind in one.scenario.name)

    return (
        "- **Layouts.** Where layouts differ by 3 to 5 % and not on average, the claim across "
        f"layouts is wrong in {called('normal')} with normal effects and in "
        f"{called('exponential')} with exponential ones. The claim about the drawn layouts alone "
        f"says faster or slower in {_range(one.called_in_these for one in results.layouts)}: of "
        "these layouts it is true, of others not."
    )


def _not_claimed(by_name: dict[str, Summary]) -> Iterable[str]:
    carried, equal = by_name["unequal carry-over"], by_name["equal means"]
    spreads, shapes = by_name["unequal spreads"], by_name["90/10 shapes"]
    called = Share(
        sum(spreads.verdicts[verdict].count for verdict in ("faster", "slower", "mixed")),
        spreads.campaigns,
    )
    held = [equal.probability_missed, shapes.probability_missed]
    yield (
        "- **Unequal carry-over.** If one condition slows the next run and the other does not, "
        "exchanging the two changes times. Then no guarantee holds that rests on exchangeability. "
        f"The verdict is `slower` in {percent_of(carried.verdicts['slower'])} %; "
        f"{percent_of(carried.warned)} % warn of carry-over. These campaigns are "
        "judged without the washouts that Equipoise goes on with "
        "([carry-over](../methods/carry-over.md))."
    )
    yield (
        "- **Equal means or medians with unequal spreads.** The null hypothesis is the sharp one: "
        "a constant ratio. Programs with equal means whose spreads differ (2 % and 30 %) are "
        f"called different in {_percent(called)}; what is claimed is about "
        "[the typical ratio](../methods/interval.md#claim)."
    )
    yield (
        "- **A ratio that is not constant.** The typical ratio and the ratio of means are then "
        "different things. With equal means (0.95 mostly, 1.2 sometimes) the typical run is "
        f"faster; the verdict is `faster` in {percent_of(equal.verdicts['faster'])} % and `mixed` "
        f"in {percent_of(equal.verdicts['mixed'])} %. With 0.9 in 90 % and 5 in 10 %, "
        f"{percent_of(shapes.verdicts['mixed'])} % end `mixed` and "
        f"{percent_of(shapes.verdicts['faster'])} % `faster`, before they have met enough slow "
        "runs. Intervals of P(slower) miss the truth in "
        f"{_range(one for one in held if one is not None)}."
    )


def _range(shares: Iterable[Share]) -> str:
    values = sorted(100.0 * share.count / share.total for share in shares)
    low, high = f"{values[0]:.1f}", f"{values[-1]:.1f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _percent(share: Share) -> str:
    return f"{100.0 * share.count / share.total:.1f} %"
