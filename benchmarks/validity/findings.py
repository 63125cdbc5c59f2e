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
    """Return two lists in Markdown: results of the simulations, and effects without a claim.

    All scenarios must have been simulated.
    """
    by_name = {summary.scenario.name: summary for summary in results.single}
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
    error_rate = [summary for summary in single if summary.scenario.claims_error_rate]
    coverage = [summary.missed for summary in single if summary.scenario.claims_coverage]
    probability = [
        summary.probability_missed for summary in single if summary.probability_missed is not None
    ]
    alarms = [share for summary in error_rate for share in (summary.any_effect, summary.default)]
    return (
        f"- **Claimed: false alarms of at most 5 % in {len(error_rate)} scenarios.** They occur "
        f"in {_range(alarms)} of campaigns, however many interim analyses there are. Coverage of a "
        f"true effect is claimed in {len(coverage)} scenarios; intervals miss it in "
        f"{_range(coverage)}. An effect only shifts all log ratios. So the campaigns that miss a "
        "true 3 % are those that raise a false alarm without it, unless a clock or a time limit "
        f"cuts times. Intervals of P(slower) miss the truth in {_range(probability)}."
    )


def _one_after_the_other(by_name: dict[str, Summary]) -> str:
    def called(names: Iterable[str]) -> str:
        return _range(
            by_name[name].peers[rule].called for name in names for rule in _ONE_AFTER_THE_OTHER
        )

    return (
        "- **All of A, then all of B** (hyperfine with Welch, benchstat, pyperf): they raise false "
        f"alarms in {called(_INDEPENDENT)} under independent noise, as their tests promise. If "
        f"neighbouring runs are correlated, they do so in {called(_CORRELATED)}, and under a drift "
        f"in {called(['drift'])}."
    )


def _test_after_every_run(by_name: dict[str, Summary]) -> str:
    def called(rule: str, names: Iterable[str]) -> str:
        return _range(by_name[name].peers[rule].called for name in names)

    drifting = [by_name["drift"].peers[rule].found for rule in ("tachometer", "temci")]
    return (
        "- **An ordinary test after every run** raises false alarms under independent noise: in "
        f"{called('tachometer', _INDEPENDENT)} by tachometer's rule, in "
        f"{called('temci', _INDEPENDENT)} by temci's, which also stops early without a difference. "
        "A slowdown of every second run misleads tachometer's fixed order in "
        f"{called('tachometer', ['slot 5 %'])}. Under drift and correlation these rules raise few "
        "false alarms, but their unpaired tests then miss true differences. Of a true 3 % under a "
        f"drift of 1 % a run they find {_range(drifting)}."
    )


def _cost_of_safety(by_name: dict[str, Summary]) -> str:
    def cost(name: str) -> str:
        summary = by_name[name]
        found = summary.found[3.0]
        ten = _range(summary.peers[rule].found for rule in _TEN_RUNS)
        return (
            f"finds 3 % in {percent_of(found.slower)} % of campaigns, after "
            f"{runs(found.length.median)} runs at the median. Ten runs of each condition find it "
            f"in {ten}, pyperf's 160 runs in {percent_of(summary.peers['pyperf'].found)} %"
        )

    return (
        "- **The cost of safety.** Under independent noise of 2 %, Equipoise "
        f"{cost('Gauss 2 %')}. Under 5 % noise it {cost('Gauss 5 %')}."
    )


def _coarse_clocks(by_name: dict[str, Summary]) -> str:
    known, inferred = by_name["10 ticks"], by_name["10 ticks untold"]
    return (
        "- **Coarse clocks.** A run of 10 clock ticks is too short to find 3 %. Campaigns find it "
        f"in {percent_of(known.found[3.0].slower)} %, and the interval misses it in "
        f"{_percent(known.missed)}. At a ratio of 2 in 3 or 5 ticks intervals miss the truth in "
        f"{_range(by_name[name].missed for name in _COARSE)}. Equipoise infers an unreported "
        "resolution from past values. Then false alarms occur in "
        f"{_percent(inferred.any_effect)}, and intervals miss a true 3 % in "
        f"{_percent(inferred.missed)}."
    )


def _means(by_name: dict[str, Summary]) -> str:
    rare = by_name["rare slow runs"]
    return (
        "- **Typical runs and means.** `mixed` has no error rate: it compares the ratio of means "
        "with 1, without an interval. A true slowdown by 3 % ends as `mixed` in "
        f"{percent_of(by_name['spikes'].found[3.0].mixed)} % under spikes and in "
        f"{percent_of(by_name['Cauchy'].found[3.0].mixed)} % under Cauchy noise. Where one run in "
        "ten takes three times as long, the verdict is `equivalent` in "
        f"{_percent(rare.verdicts['equivalent'])}: few campaigns stop without a slow run."
    )


def _pooled(results: Results) -> str:
    alike = [summary for summary in results.pooled if summary.scenario.claims_common_ratio]
    common = _range(summary.common_missed for summary in alike)
    mean = _range(summary.mean_missed for summary in results.pooled)
    naive = _range(summary.naive_missed for summary in alike)
    return (
        "- **Pooled stops.** These campaigns stopped at their verdict. The interval of their "
        f"common ratio misses the truth in {common} of pools. The interval of the mean over "
        f"campaigns misses it in {mean}, also where the campaigns differ. The mean of the ratios "
        f"at the stop would miss it in {naive}."
    )


def _layouts(results: Results) -> str:
    def called(kind: str) -> str:
        return _range(
            summary.called for summary in results.layouts if kind in summary.scenario.name
        )

    drawn = _range(summary.called_in_these for summary in results.layouts)
    return (
        "- **Layouts.** These layouts differ by 3 to 5 %, and not on average. The claim across "
        f"layouts is wrong in {called('normal')} with normal effects and in "
        f"{called('exponential')} with exponential ones. The claim about the drawn layouts is "
        f"faster or slower in {drawn}: it is true of these layouts, not of others."
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
        "exchanging the two changes times. Then guarantees that rest on exchangeability fail. "
        f"The verdict is `slower` in {percent_of(carried.verdicts['slower'])} %; "
        f"{percent_of(carried.warned)} % warn of carry-over. These campaigns are judged without "
        "the [washouts](../methods/carry-over.md) that Equipoise would add."
    )
    yield (
        "- **Equal means or medians with unequal spreads.** The null hypothesis is sharp: a "
        "constant ratio. Programs with equal means whose spreads differ (2 % and 30 %) are "
        f"called different in {_percent(called)}. The claim is about "
        "[the typical ratio](../methods/interval.md#claim)."
    )
    yield (
        "- **A ratio that is not constant.** The typical ratio and the ratio of means are then "
        "different things. With equal means (0.95 mostly, 1.2 sometimes) the typical run is "
        f"faster; the verdict is `faster` in {percent_of(equal.verdicts['faster'])} % and `mixed` "
        f"in {percent_of(equal.verdicts['mixed'])} %. With 0.9 in 90 % and 5 in 10 %, "
        f"{percent_of(shapes.verdicts['mixed'])} % end `mixed` and "
        f"{percent_of(shapes.verdicts['faster'])} % `faster`, before enough slow runs occurred. "
        "Intervals of P(slower) miss the truth in "
        f"{_range(share for share in held if share is not None)}."
    )


def _range(shares: Iterable[Share]) -> str:
    values = sorted(100.0 * share.count / share.total for share in shares)
    low, high = f"{values[0]:.1f}", f"{values[-1]:.1f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _percent(share: Share) -> str:
    return f"{100.0 * share.count / share.total:.1f} %"
