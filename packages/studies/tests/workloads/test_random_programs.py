"""`equipoise-workload hashwalk` and `wordsearch`: programs whose time is drawn in each process."""

from __future__ import annotations

import pytest

from .conftest import Measured

WORDS = ("--dictionary", "made", "--words", "3000")


@pytest.mark.parametrize(
    "program", [("hashwalk", "--walks", "100"), ("wordsearch", "--algorithm", "linear")]
)
def test_each_process_draws_different_steps(measured: Measured, program: tuple[str, ...]) -> None:
    steps = [measured(*program, *WORDS).metrics["steps"] for _ in range(20)]
    assert max(steps) > 1.5 * min(steps)


@pytest.mark.parametrize(
    ("program", "few", "many"),
    [
        (("hashwalk", "--map-seed", "1"), ("--walks", "10"), ("--walks", "10000")),
        (
            ("wordsearch", "--algorithm", "linear"),
            ("--word-seed", "0"),
            ("--word-seed", str(2**64 - 1)),
        ),
    ],
)
def test_more_work_takes_more_steps(
    measured: Measured, program: tuple[str, ...], few: tuple[str, ...], many: tuple[str, ...]
) -> None:
    shorter, longer = (measured(*program, *options, *WORDS).metrics for options in (few, many))
    assert longer["steps"] > 100 * shorter["steps"]


def test_the_seed_of_the_map_decides_its_steps(measured: Measured) -> None:
    held = [
        measured("hashwalk", "--walks", "10", *WORDS, "--map-seed", seed).metrics["steps"]
        for seed in ("1", "1", "2")
    ]
    assert held[0] == held[1] != held[2]


def test_a_binary_search_takes_few_steps_wherever_the_word_is(measured: Measured) -> None:
    for seed in (0, 2**63, 2**64 - 1):
        options = ("--searches", "10", "--word-seed", str(seed))
        linear, binary = (
            measured("wordsearch", "--algorithm", algorithm, *WORDS, *options).metrics["steps"]
            for algorithm in ("linear", "binary")
        )
        # 3000 words are within 12 halvings.
        assert binary <= 130
        assert linear == pytest.approx(10 * (1 + seed * 3000 // 2**64))


def test_the_list_is_named(measured: Measured) -> None:
    assert measured("hashwalk", "--walks", "1", *WORDS).facts == {"words_from": "made"}
