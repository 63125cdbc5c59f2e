"""The verdict reads as a sentence."""

from __future__ import annotations

import pytest

from equipoise.campaign.words import verdict_words
from equipoise.model.result import Verdict


def words(
    verdict: Verdict,
    ratio: float | None,
    *,
    mean_ratio: float | None = None,
    blocks: int = 10,
    blocks_to_go: int | None = None,
) -> str:
    return verdict_words(
        verdict,
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
