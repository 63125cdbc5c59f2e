"""The verdict reads as a sentence."""

from __future__ import annotations

import pytest

from equipoise.analysis.wording import control_words, disagreement_words, verdict_words
from equipoise.model.result import StatisticAnswer, Verdict


def words(
    verdict: Verdict,
    ratio: float | None,
    *,
    mean_ratio: float | None = None,
    blocks: int = 10,
    blocks_to_go: int | None = None,
    metric: str = "wall_s",
) -> str:
    return verdict_words(
        verdict,
        metric,
        "old",
        "new",
        ratio,
        min_effect=1.0,
        mean_ratio=mean_ratio,
        blocks=blocks,
        blocks_to_go=blocks_to_go,
    )


@pytest.mark.parametrize(
    ("verdict", "ratio", "sentence"),
    [
        ("slower", 1.031, "new is slower than old: it takes 3.10 % longer."),
        ("slower", 210.0, "new is slower than old: it takes 210 times as long."),
        ("slower", None, "new is slower than old: it takes longer than the timeout."),
        ("faster", 0.88, "new is faster than old: it takes 12.0 % less time."),
        ("faster", 0.25, "new is faster than old: it takes 1/4 of the time."),
        ("equivalent", 1.001, "new and old take the same time, within 1 %."),
    ],
)
def test_a_decided_comparison(verdict: Verdict, ratio: float | None, sentence: str) -> None:
    assert words(verdict, ratio) == sentence


def test_a_mixed_comparison_tells_both_ways() -> None:
    assert words("mixed", 0.9, mean_ratio=1.31) == (
        "new and old differ both ways: a typical run takes 10.0 % less time, "
        "but many runs together take 31.0 % longer."
    )


def test_an_undecided_comparison_says_how_much_more_it_would_take() -> None:
    assert words("undecided", 1.0, blocks=200, blocks_to_go=300) == (
        "new against old is undecided after 200 blocks; about 300 more would probably decide it."
    )
    assert "cannot be foreseen" in words("undecided", None, blocks=1)
    assert "after 1 block;" in words("undecided", None, blocks=1)


def test_other_metrics_are_named_with_what_they_cost() -> None:
    assert words("slower", 1.5, metric="max_rss_bytes") == (
        "new against old: max_rss_bytes costs 1.5 times as much."
    )
    assert words("undecided", 1.0, metric="user_s", blocks=9) == (
        "new against old, user_s, is undecided after 9 blocks; "
        "how many more would decide it cannot be foreseen."
    )


def test_a_control_that_differs_is_told_with_its_chance() -> None:
    assert "cannot be told from it" in control_words(excludes_one=False, alpha=0.05)
    assert "at most 5 % of campaigns" in control_words(excludes_one=True, alpha=0.05)


STATISTICS = ("minimum", *(f"p{10 * tenth}" for tenth in range(1, 10)), "mean")


def answers(*says: str) -> list[StatisticAnswer]:
    """f, s and e for what each statistic says, from the minimum up."""
    kinds = {"f": "faster", "s": "slower", "e": "equivalent"}
    return [
        StatisticAnswer(statistic, 1.0, kinds[one])  # type: ignore[arg-type]
        for statistic, one in zip(STATISTICS, "".join(says), strict=True)
    ]


def test_statistics_that_name_different_winners_are_told_in_one_sentence() -> None:
    said = disagreement_words(answers("fff", "e", "sssssss"), "old", "new", verdict="slower")
    assert said == (
        "new is faster than old by the minimum and the 10th to 20th percentile, slower than old by "
        "the 40th to 90th percentile and the mean and the same by the 30th percentile"
    )
    said = disagreement_words(answers("f", "eeee", "s", "eeeee"), "old", "new", verdict="slower")
    assert said is not None
    assert "slower than old by the median and" in said


def test_statistics_that_agree_are_not_told() -> None:
    assert disagreement_words(answers("e" * 4, "s" * 7), "old", "new", verdict="slower") is None
    assert disagreement_words(answers("e" * 11), "old", "new", verdict="equivalent") is None


def test_a_winner_among_equivalents_is_told() -> None:
    said = disagreement_words(answers("f", "e" * 10), "old", "new", verdict="equivalent")
    assert said == (
        "new is faster than old by the minimum and the same by the 10th to 90th percentile and "
        "the mean"
    )
