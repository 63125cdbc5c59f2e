"""The verdict reads as a sentence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.analysis.wording import control_sentence, disagreement_sentence, verdict_sentence
from equipoise.model.interval import Interval
from equipoise.model.result import StatisticAnswer, Verdict
from tests.documents import comparison_of


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
        ("faster", 0.25, "new is faster than old: it takes 0.25 times as long."),
        ("equivalent", 1.001, "new and old take the same time, within 1 %."),
    ],
)
def test_a_decided_comparison(verdict: Verdict, ratio: float | None, sentence: str) -> None:
    assert sentence_of(verdict, ratio) == sentence


def test_a_mixed_comparison_tells_both_ways() -> None:
    assert sentence_of("mixed", 0.9, mean_ratio=1.31) == (
        "new and old differ both ways: a typical run takes 10.0 % less time, "
        "but many runs together take 31.0 % longer."
    )


def test_an_undecided_comparison_says_how_much_more_it_would_take() -> None:
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
        ("minor_faults", "faster", 0.9, (None, None),
         "new has 10.0 % fewer minor page faults than old."),
        ("major_faults", "slower", None, (1.5, None),
         "new has more major page faults than old (no finite ratio)."),
        ("latency_s", "slower", 1.031, (1.02, 1.04),
         "latency_s of new is 3.10 % higher than that of old (2.00 % to 4.00 %)."),
        ("latency_s", "faster", 0.25, (None, None), "latency_s of new is 0.25 times that of old."),
        ("user_s", "equivalent", 1.0, (0.99, 1.01),
         "new and old use the same user CPU time, within 1 %."),
        ("minor_faults", "equivalent", 1.0, (0.99, 1.01),
         "new and old have the same minor page faults, within 1 %."),
    ],
)  # fmt: skip
def test_other_metrics_have_their_own_words(
    metric: str, verdict: Verdict, ratio: float | None, ratio_ci: Interval, sentence: str
) -> None:
    assert sentence_of(verdict, ratio, metric=metric, ratio_ci=ratio_ci) == sentence


def test_what_is_better_when_it_is_more_is_told_as_its_value_not_as_its_cost() -> None:
    told = sentence_of("faster", 0.5, metric="rate", ratio_ci=(0.4, 0.5), more_is_better=True)
    assert told == "rate of new is 2 times that of old (2 to 2.5)."


def test_other_metrics_that_are_not_decided_are_named() -> None:
    assert sentence_of("undecided", 1.0, metric="user_s", blocks=9) == (
        "new against old is undecided for user CPU time after 9 blocks; "
        "how many more would decide it cannot be foreseen."
    )
    assert sentence_of("mixed", 0.9, metric="max_rss_bytes", mean_ratio=1.31) == (
        "In a typical run new uses 10.0 % less memory than old, but over many runs together new "
        "uses 31.0 % more memory than old."
    )


def test_a_control_that_differs_is_told_with_its_chance() -> None:
    assert "shows no difference from it" in control_sentence(excludes_one=False, alpha=0.05)
    assert "at most 5 % of campaigns" in control_sentence(excludes_one=True, alpha=0.05)


STATISTICS = ("minimum", *(f"p{10 * tenth}" for tenth in range(1, 10)), "mean")


def answers(*says: str) -> list[StatisticAnswer]:
    """f, s and e for what each statistic says, from the minimum up."""
    kinds = {"f": "faster", "s": "slower", "e": "equivalent"}
    return [
        StatisticAnswer(statistic, 1.0, kinds[one])  # type: ignore[arg-type]
        for statistic, one in zip(STATISTICS, "".join(says), strict=True)
    ]


def test_statistics_that_name_different_winners_are_told_in_one_sentence() -> None:
    said = disagreement_sentence(answers("fff", "e", "sssssss"), "old", "new", verdict="slower")
    assert said == (
        "new is faster than old by the minimum and the 10th to 20th percentile, slower than old by "
        "the 40th to 90th percentile and the mean and the same by the 30th percentile"
    )
    said = disagreement_sentence(answers("f", "eeee", "s", "eeeee"), "old", "new", verdict="slower")
    assert said is not None
    assert "slower than old by the median and" in said


def test_statistics_that_agree_are_not_told() -> None:
    assert disagreement_sentence(answers("e" * 4, "s" * 7), "old", "new", verdict="slower") is None
    assert disagreement_sentence(answers("e" * 11), "old", "new", verdict="equivalent") is None


def test_a_winner_among_equivalents_is_told() -> None:
    said = disagreement_sentence(answers("f", "e" * 10), "old", "new", verdict="equivalent")
    assert said == (
        "new is faster than old by the minimum and the same by the 10th to 90th percentile and "
        "the mean"
    )
