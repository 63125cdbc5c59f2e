"""The verdict is a sentence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.analysis.wording import (
    adjustment_sentence,
    changing_ratio_sentence,
    control_sentence,
    disagreement_sentence,
    ranking_sentence,
    slow_runs_sentence,
    verdict_sentence,
)
from equipoise.model.quantities import Interval
from equipoise.model.result import (
    Adjustment,
    RankedCondition,
    RatioSegment,
    SlowRuns,
    StatisticAnswer,
    Verdict,
)
from equipoise.stats.slow_runs import unseen_share
from packages.equipoise.tests.documents import comparison_of


def sentence_of(
    verdict: Verdict,
    ratio: float | None,
    *,
    ratio_ci: Interval = (None, None),
    mean_ratio: float | None = None,
    blocks: int = 10,
    blocks_to_go: int | None = None,
    metric: str = "wall_s",
    more_is_better: bool = False,
    means_forbid_equivalence: bool = False,
) -> str:
    comparison = replace(
        comparison_of("old", "new", 1.0, 10),
        metric=metric,
        verdict=verdict,
        ratio=ratio,
        ratio_ci=ratio_ci,
        mean_ratio=mean_ratio,
        min_effect=1.0,
        blocks=blocks,
        blocks_to_go=blocks_to_go,
        means_forbid_equivalence=means_forbid_equivalence,
        stratum={},
    )
    return verdict_sentence(comparison, "old", "new", more_is_better=more_is_better)


@pytest.mark.parametrize(
    ("verdict", "ratio", "sentence"),
    [
        ("slower", 1.031, "new is slower than old: it takes 3.10 % longer."),
        ("slower", 210.0, "new is slower than old: it takes 210 times as long."),
        ("slower", None, "new is slower than old: it takes longer than the timeout."),
        ("faster", 0.88, "new is faster than old: it takes 12.0 % less time."),
        ("faster", 0.25, "new is 4 times as fast as old."),
        (
            "equivalent",
            1.001,
            "new against old: no difference in a typical run (within 1 %); "
            "slow runs rarer than 1 in 41 may have been missed.",
        ),
    ],
)
def test_a_decided_comparison(verdict: Verdict, ratio: float | None, sentence: str) -> None:
    assert sentence_of(verdict, ratio, blocks=124) == sentence


@pytest.mark.parametrize(
    ("verdict", "ratio", "ratio_ci", "sentence"),
    [
        ("faster", 0.303, (0.29, 0.31), "new is 3.3 times as fast as old."),
        ("faster", 0.05, (0.001, 0.16), "new is at least 6.2 times as fast as old."),
        ("faster", 0.05, (None, 0.16), "new is at least 6.2 times as fast as old."),
        ("slower", 20.0, (6.1, None),
         "new is slower than old: it takes at least 6.1 times as long."),
        ("slower", 3.0, (1.4, 9.0),
         "new is slower than old, by at least 40.0 %; by how much more is not known yet."),
        ("faster", 0.3, (0.1, 0.8),
         "new is faster than old, by at least 20.0 %; by how much more is not known yet."),
        ("slower", 1.5, (1.1, 1.9), "new is slower than old: it takes 50.0 % longer."),
    ],
)  # fmt: skip
def test_an_imprecise_factor_is_named_by_the_end_nearer_to_1(
    verdict: Verdict, ratio: float, ratio_ci: Interval, sentence: str
) -> None:
    assert sentence_of(verdict, ratio, ratio_ci=ratio_ci) == sentence


def test_no_sentence_has_an_estimate_outside_its_interval() -> None:
    assert sentence_of("slower", 1.019, ratio_ci=(1.04, 1.078)) == (
        "new is slower than old, by 4.00 % to 7.80 %."
    )
    assert sentence_of("slower", 1.019, metric="max_rss_bytes", ratio_ci=(1.04, 1.078)) == (
        "max_rss_bytes of new against old has no single ratio (+4.00 % to +7.80 %)."
    )


def test_means_that_forbid_equivalent_are_a_description() -> None:
    assert sentence_of("undecided", 1.0, mean_ratio=1.35, means_forbid_equivalence=True) == (
        "A typical run of new takes the same time as one of old, within 1 %, but many runs "
        "together may differ: their means differ by +35.0 % (description, without an error rate)."
    )
    timed_out = sentence_of("undecided", 1.0, mean_ratio=None, means_forbid_equivalence=True)
    assert timed_out.endswith("their means have no finite ratio.")


@pytest.mark.parametrize(
    ("ratio", "ratio_ci", "sentence"),
    [
        (1.0079, (1.0041, 1.0117),
         "new is slower than old, by 0.41 % to 1.17 %; whether by more than 1 % is open"),
        (0.992, (0.985, 0.997),
         "new is faster than old, by 0.30 % to 1.50 %; whether by more than 1 % is open"),
        (1.009, (1.004, None),
         "new is slower than old, by at least 0.40 %; whether by more than 1 % is open"),
        (1.005, (1.002, 1.008),
         "new is slower than old, by 0.20 % to 0.80 %; whether many runs together differ is open"),
    ],
)  # fmt: skip
def test_an_undecided_comparison_names_the_certain_part(
    ratio: float, ratio_ci: Interval, sentence: str
) -> None:
    assert sentence_of("undecided", ratio, ratio_ci=ratio_ci, blocks=64, blocks_to_go=90) == (
        f"{sentence} after 64 blocks; about 90 more would probably decide it."
    )


def test_the_direction_of_a_rate_is_that_of_its_value() -> None:
    sentence = sentence_of(
        "undecided", 1.008, metric="rate", ratio_ci=(1.004, 1.012), more_is_better=True
    )
    assert sentence.startswith("rate of new is 0.79 % lower than that of old (0.40 % to 1.19 %); ")


def test_an_estimate_on_the_other_side_of_its_interval_has_no_direction() -> None:
    assert "is undecided" in sentence_of("undecided", 0.999, ratio_ci=(1.001, 1.02))
    assert "is undecided" in sentence_of("undecided", 1.002, ratio_ci=(0.99, 1.02))


def test_the_sentence_of_a_changing_ratio_names_its_changes() -> None:
    stretches = [RatioSegment(1, 1.031), RatioSegment(212, 0.98)]
    comparison = comparison_of("old", "new", 1.0, 400)
    assert changing_ratio_sentence(replace(comparison, ratio_segments=tuple(stretches))) == (
        "no constant ratio of new to old fits this campaign: "
        "before block 212 +3.10 %, from block 212 on -2.00 %"
    )
    many = tuple(RatioSegment(1 + 50 * place, 1.1) for place in range(8))
    assert changing_ratio_sentence(replace(comparison, ratio_segments=many)).endswith(
        "4 more changes"
    )
    assert changing_ratio_sentence(comparison).endswith("and no single block explains it")


def test_a_mixed_comparison_names_both_directions() -> None:
    assert sentence_of("mixed", 0.9, mean_ratio=1.31) == (
        "new and old differ both ways: a typical run takes 10.0 % less time, "
        "but many runs together take 31.0 % longer (description, without an error rate)."
    )


def test_an_undecided_comparison_has_a_forecast() -> None:
    assert sentence_of("undecided", 1.0, blocks=200, blocks_to_go=300) == (
        "new against old is undecided after 200 blocks; about 300 more would probably decide it."
    )
    assert "cannot be foreseen" in sentence_of("undecided", None, blocks=1)
    assert "after 1 block;" in sentence_of("undecided", None, blocks=1)


@pytest.mark.parametrize(
    ("metric", "verdict", "ratio", "ratio_ci", "sentence"),
    [
        ("max_rss_bytes", "slower", 5.04, (4.98, 5.11),
         "new uses 5.04 times the memory of old (4.98 to 5.11)."),
        ("max_rss_bytes", "faster", 0.9, (0.88, 0.91),
         "new uses 10.0 % less memory than old (9.00 % to 12.0 %)."),
        ("max_rss_bytes", "slower", 1.5, (0.9, 2.4),
         "new uses 50.0 % more memory than old (-10.0 % to +140.0 %)."),
        ("throughput_per_s", "slower", 0.78, (0.76, 0.8),
         "new serves 22.0 % less than old (20.0 % to 24.0 %)."),
        ("throughput_per_s", "faster", 2.3, (2.2, 2.4),
         "new serves 2.3 times as much as old (2.2 to 2.4)."),
        ("throughput_per_s", "equivalent", 1.0, (0.99, 1.01),
         "new and old serve the same amount in a typical run (within 1 %); "
         "outliers rarer than 1 in 3 may have been missed."),
        ("iteration_s", "slower", 1.031, (1.02, 1.04),
         "An iteration of new takes 3.10 % longer than one of old (2.00 % to 4.00 %)."),
        ("iteration_s", "faster", 0.25, (None, None),
         "An iteration of new is 4 times as fast as one of old."),
        ("iteration_s", "equivalent", 1.0, (0.99, 1.01),
         "An iteration of new and one of old take the same time in a typical run (within 1 %); "
         "outliers rarer than 1 in 3 may have been missed."),
        ("iteration_s", "undecided", 1.0, (None, None),
         "new against old is undecided for iteration_s after 10 blocks; "
         "how many more would decide it cannot be foreseen."),
        ("minor_faults", "faster", 0.9, (None, None),
         "new has 10.0 % fewer minor page faults than old."),
        ("major_faults", "slower", None, (1.5, None),
         "new has more major page faults than old (no finite ratio)."),
        ("latency_s", "slower", 1.031, (1.02, 1.04),
         "latency_s of new is 3.10 % higher than that of old (2.00 % to 4.00 %)."),
        ("latency_s", "faster", 0.25, (None, None), "latency_s of new is 0.25 times that of old."),
        ("user_s", "equivalent", 1.0, (0.99, 1.01),
         "new and old use the same user CPU time in a typical run (within 1 %); "
         "outliers rarer than 1 in 3 may have been missed."),
        ("minor_faults", "equivalent", 1.0, (0.99, 1.01),
         "new and old have the same minor page faults in a typical run (within 1 %); "
         "outliers rarer than 1 in 3 may have been missed."),
    ],
)  # fmt: skip
def test_other_metrics_have_their_own_words(
    metric: str, verdict: Verdict, ratio: float | None, ratio_ci: Interval, sentence: str
) -> None:
    assert sentence_of(verdict, ratio, metric=metric, ratio_ci=ratio_ci) == sentence


def test_a_metric_that_is_better_when_higher_is_shown_as_a_value_not_as_a_cost() -> None:
    sentence = sentence_of("faster", 0.5, metric="rate", ratio_ci=(0.4, 0.5), more_is_better=True)
    assert sentence == "rate of new is 2 times that of old (2 to 2.5)."


def test_other_metrics_that_are_not_decided_are_named() -> None:
    assert sentence_of("undecided", 1.0, metric="user_s", blocks=9) == (
        "new against old is undecided for user CPU time after 9 blocks; "
        "how many more would decide it cannot be foreseen."
    )
    assert sentence_of("mixed", 0.9, metric="max_rss_bytes", mean_ratio=1.31) == (
        "In a typical run new uses 10.0 % less memory than old, but over many runs together new "
        "uses 31.0 % more memory than old (description, without an error rate)."
    )


def test_a_difference_of_the_control_has_its_chance() -> None:
    assert "shows no difference from it" in control_sentence(excludes_one=False, alpha=0.05)
    assert "at most 5 % of campaigns" in control_sentence(excludes_one=True, alpha=0.05)


def ranked(
    name: str,
    ratio: float | None,
    *,
    slower: str = "",
    faster: str = "",
    tied: str = "",
    undecided: str = "",
) -> RankedCondition:
    """A condition of a ranking; each letter is the name of another one."""
    return RankedCondition(name, ratio, tuple(slower), tuple(faster), tuple(tied), tuple(undecided))


def ranking_of(
    contenders: str,
    *conditions: RankedCondition,
    metric: str = "wall_s",
    more_is_better: bool = False,
    stratum: dict[str, str] | None = None,
) -> str:
    return ranking_sentence(
        conditions,
        tuple(contenders),
        "g",
        metric,
        more_is_better=more_is_better,
        min_effect=1.0,
        stratum=stratum or {},
    )


def test_one_contender_is_named_as_the_fastest_with_its_lead() -> None:
    gzip, lz4 = ranked("g", 1.0, slower="zl"), ranked("l", 0.9, faster="g")
    sentence = "z is the fastest of 3: 12.0 % less time than g."
    assert ranking_of("z", ranked("z", 0.88, faster="gl"), lz4, gzip) == sentence
    assert ranking_of("z", ranked("z", 0.88, faster="gl"), lz4, gzip, stratum={"rows": "9"}) == (
        f"At rows 9: {sentence}"
    )


def test_several_contenders_are_all_named_and_one_leads() -> None:
    gzip = ranked("g", 1.0, slower="zl")
    zstd, lz4 = ranked("z", 0.45, faster="g", undecided="l"), ranked("l", 0.46, faster="g")
    assert ranking_of("zl", zstd, lz4, gzip) == (
        "z or l is the fastest of 3; z leads so far: 2.22 times as fast as g."
    )
    many = [ranked(name, 0.5, undecided="abcdefh".replace(name, "")) for name in "abcdefh"]
    assert ranking_of("abcdefh", *many, gzip) == (
        "a, b, c, d, e or one of 2 more is the fastest of 8; a leads so far."
    )


def test_a_contender_that_a_verdict_calls_slower_is_still_named() -> None:
    """The false-discovery rate of the verdicts does not bound the chance of a wrong name."""
    leader, second = ranked("z", 0.95, faster="gl"), ranked("l", 0.97, slower="z")
    assert ranking_of("zl", leader, second, ranked("g", 1.0, slower="z")) == (
        "z or l is the fastest of 3; z leads so far: 5.00 % less time than g."
    )
    # A condition that may be the fastest has no certain distance to the leader.
    assert ranking_of("zg", leader, ranked("g", 1.0, slower="z"), second) == (
        "z or g is the fastest of 3; z leads so far."
    )


def test_ties_are_called_ties() -> None:
    gzip = ranked("g", 1.0, slower="zl")
    lz4 = ranked("l", 0.45, faster="g", tied="z", undecided="b")
    assert ranking_of("zl", ranked("z", 0.45, faster="g", tied="l"), lz4, gzip) == (
        "z and l tie as the fastest of 3, within 1 %: 2.22 times as fast as g."
    )
    leader = ranked("z", 0.45, faster="g", tied="l", undecided="b")
    assert ranking_of("zlb", leader, lz4, ranked("b", 0.46, faster="g"), gzip) == (
        "z, l or b is the fastest of 4; z leads so far: 2.22 times as fast as g; "
        "l ties with it, within 1 %."
    )


def test_contenders_that_tie_with_the_leader_alone_may_differ_from_each_other() -> None:
    gzip = ranked("g", 1.0, slower="zlb")
    leader = ranked("z", 0.45, faster="g", tied="lb")
    others = ranked("l", 0.45, faster="g", tied="z"), ranked("b", 0.45, faster="g", tied="z")
    assert ranking_of("zlb", leader, *others, gzip) == (
        "z, l or b is the fastest of 4; z leads so far: 2.22 times as fast as g; "
        "l and b tie with it, within 1 %."
    )


def test_a_baseline_that_wins_leads_the_next() -> None:
    assert ranking_of("g", ranked("g", 1.0, faster="bc"), ranked("b", 1.3)) == (
        "g is the fastest of 2: b takes 30.0 % longer than g."
    )


def test_without_a_beaten_condition_no_winner_is_named() -> None:
    open_ones = ranked("g", 1.0, undecided="bc"), ranked("b", 1.1), ranked("c", None)
    assert ranking_of("gbc", *open_ones) == (
        "Which of 3 is the fastest is undecided: g, b or c; g leads so far."
    )
    beaten = (ranked("g", 1.0), ranked("b", 1.1))
    assert ranking_of("", *beaten) == "No condition is certainly the fastest of 2."


def test_a_ranking_has_the_words_of_its_metric() -> None:
    gzip, best = ranked("g", 1.0), ranked("z", 0.8, faster="g")
    for metric, sentence in (
        ("max_rss_bytes", "z uses the least memory of 2: 20.0 % less memory than g."),
        ("minor_faults",
         "z has the fewest minor page faults of 2: 20.0 % fewer minor page faults than g."),
        ("latency_p99_s", "z has the lowest latency_p99_s of 2: 20.0 % lower than that of g."),
    ):  # fmt: skip
        assert ranking_of("z", best, gzip, metric=metric) == sentence
    assert ranking_of("z", best, gzip, metric="throughput_per_s", more_is_better=True) == (
        "z has the highest throughput_per_s of 2: 25.0 % more than g."
    )


STATISTICS = ("minimum", *(f"p{10 * tenth}" for tenth in range(1, 10)), "mean")


def answers(*says: str, certain: bool = True) -> list[StatisticAnswer]:
    """Answers of all statistics, from the minimum up, by the letters f, s and e."""
    kinds = {"f": "faster", "s": "slower", "e": "equivalent"}
    return [
        StatisticAnswer(statistic, 1.0, kinds[letter], certain)  # type: ignore[arg-type]
        for statistic, letter in zip(STATISTICS, "".join(says), strict=True)
    ]


def test_statistics_with_different_winners_share_one_sentence() -> None:
    sentence = disagreement_sentence(answers("fff", "e", "sssssss"), "old", "new", verdict="slower")
    assert sentence == (
        "new is faster than old by the minimum and the 10th to 20th percentile and slower than old "
        "by the 40th to 90th percentile and the mean"
    )
    sentence = disagreement_sentence(
        answers("f", "eeee", "s", "eeeee"), "old", "new", verdict="slower"
    )
    assert sentence is not None
    assert sentence.endswith("slower than old by the median")


def test_statistics_that_disagree_have_the_words_of_their_metric() -> None:
    kinds = answers("fff", "e", "sssssss")
    sentence = disagreement_sentence(kinds, "old", "new", verdict="slower", metric="max_rss_bytes")
    assert sentence is not None
    assert sentence.startswith(
        "max_rss_bytes of new is lower than that of old by the minimum and the "
    )
    sentence = disagreement_sentence(
        kinds, "old", "new", verdict="slower", metric="throughput_per_s", more_is_better=True
    )
    assert sentence is not None
    assert sentence.startswith("throughput_per_s of new is higher than that of old by the minimum")


def test_statistics_that_agree_are_not_mentioned() -> None:
    assert disagreement_sentence(answers("e" * 4, "s" * 7), "old", "new", verdict="slower") is None
    assert disagreement_sentence(answers("e" * 11), "old", "new", verdict="equivalent") is None


def test_a_winner_among_equivalent_conditions_is_mentioned() -> None:
    sentence = disagreement_sentence(answers("f", "e" * 10), "old", "new", verdict="equivalent")
    assert sentence == ("new is faster than old by the minimum")


def test_only_certain_statistics_disagree() -> None:
    uncertain = answers("fff", "e", "sssssss", certain=False)
    for verdict in ("faster", "equivalent", "undecided"):
        assert disagreement_sentence(uncertain, "old", "new", verdict=verdict) is None
    # A single certain answer contradicts a verdict, but not an undecided comparison.
    slow_tail = answers("e" * 9, "s", "e")
    sentence = disagreement_sentence(slow_tail, "old", "new", verdict="faster")
    assert sentence == "new is slower than old by the 90th percentile"
    assert disagreement_sentence(slow_tail, "old", "new", verdict="undecided") is None


@pytest.mark.parametrize(
    ("typical", "interval", "more_is_better", "without"),
    [
        (1.02, (1.005, 1.04), False, "+2.00 % (+0.50 % to +4.00 %)"),
        (1.02, (None, 1.04), False, "+2.00 % (unknown to +4.00 %)"),
        (1.02, (1.0, 1.25), True, "-1.96 % (-20.0 % to +0.00 %)"),
        (None, (None, None), False, "unknown"),
        (13.866, (12.1, 15.04), False, "13.9 times (12.1 to 15)"),
        (1.0 / 4.0, (0.2, 0.5), True, "4 times (2 to 5)"),
    ],
)
def test_an_adjustment_names_its_covariate_its_saving_and_the_numbers_without_it(
    typical: float | None, interval: Interval, more_is_better: bool, without: str
) -> None:
    adjustment = Adjustment("steal_before", 41, 0.8, typical, interval, "")
    sentence = adjustment_sentence(adjustment, 50, typical, more_is_better=more_is_better)
    assert sentence == (
        "41 of 50 blocks were adjusted by steal_before, read before each trial, which saved about "
        f"36 % of the blocks; unadjusted: {without}"
    )


@pytest.mark.parametrize(("spread_ratio", "is_said"), [(0.99, True), (0.999, False), (1.2, False)])
def test_an_adjustment_that_saved_under_1_percent_of_the_blocks_is_not_mentioned(
    spread_ratio: float, is_said: bool
) -> None:
    adjustment = Adjustment("steal_before", 5, spread_ratio, 1.02, (1.0, 1.04), "")
    assert bool(adjustment_sentence(adjustment, 7, 1.02)) is is_said


@pytest.mark.parametrize(
    ("slow", "metric", "more_is_better", "sentence"),
    [
        (
            SlowRuns(1.5, 0, 2, 106, unseen_share(106, 0.05)),
            "wall_s",
            False,
            "2 of 106 runs of new and 0 of 106 runs of old took over 1.5 times their median; "
            "slow runs rarer than 1 in 35 may have been missed",
        ),
        (
            SlowRuns(1.5, 0, 0, 106, unseen_share(106, 0.05)),
            "wall_s",
            False,
            "no slow runs were seen; slow runs rarer than 1 in 35 may have been missed",
        ),
        (
            SlowRuns(2.0, 3, 1, 59, unseen_share(59, 0.05)),
            "max_rss_bytes",
            False,
            "3 of 59 runs of old and 1 of 59 runs of new had over 2 times their median; "
            "outliers rarer than 1 in 20 may have been missed",
        ),
        (
            SlowRuns(2.0, 0, 11, 59, unseen_share(59, 0.05), "candidate", 120.0, 0.01),
            "throughput_per_s",
            True,
            "11 of 59 runs of new and 0 of 59 runs of old had less than 1/2 of their median; "
            "new has outliers more often (tested at the level 1 %); outliers rarer than 1 in 20 "
            "may have been missed",
        ),
    ],
)
def test_slow_runs_are_counted_and_the_rarest_that_could_show_is_named(
    slow: SlowRuns, metric: str, more_is_better: bool, sentence: str
) -> None:
    words = slow_runs_sentence(slow, "old", "new", metric=metric, more_is_better=more_is_better)
    assert words == sentence
