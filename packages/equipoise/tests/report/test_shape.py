"""Modes and changes of state read as a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign as result_of
from equipoise.model.result import MetricSummary, Mode, ModeAssociation, State, StatisticAnswer
from equipoise.report.builders.shape import (
    iteration_sentences,
    modes_sentence,
    shape_section,
    states_sentence,
)
from equipoise.report.document import Section, Table
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.iterated import FloatArray, record_of, restless, short, steady
from packages.equipoise.tests.report.forms import screen

TWO = (Mode(0.0081, 0.7), Mode(0.0096, 0.3))


def summary(*modes: Mode, mode_associations: tuple[ModeAssociation, ...] = ()) -> MetricSummary:
    """A summary with these modes."""
    wall = document_of().conditions[0].metrics["wall_s"]
    return replace(wall, modes=modes, mode_associations=mode_associations)


def test_one_mode_needs_no_sentence() -> None:
    assert modes_sentence("wall_s", summary(Mode(0.0081, 1.0))) is None


@pytest.mark.parametrize(
    ("companion", "words"),
    [
        (ModeAssociation(1, "cpu", 1.0, 0.9, 0.001), "the slow one goes with CPU 1"),
        (
            ModeAssociation(1, "position", 0.0, 0.9, 0.001),
            "the slow one goes with position 1 in the block",
        ),
        (ModeAssociation(1, "time", None, 0.9, 0.001), "the slow one goes with the later trials"),
        (ModeAssociation(1, "load", None, -0.9, 0.001), "the slow one goes with low load"),
        (ModeAssociation(0, "node", 3.0, 0.9, 0.001), "the fast one goes with node 3"),
        (
            ModeAssociation(1, "environment_bytes", None, -0.9, 0.001),
            "the slow one goes with a small environment",
        ),
    ],
)
def test_the_sentence_of_two_modes_names_what_they_go_with(
    companion: ModeAssociation, words: str
) -> None:
    sentence = modes_sentence("wall_s", summary(*TWO, mode_associations=(companion,)))
    assert sentence == f"2 modes: 8.10 ms (70 %) and 9.60 ms (30 %); {words}"


def test_only_the_strongest_companion_of_each_mode_is_named() -> None:
    strong, weak = (
        ModeAssociation(1, "cpu", 1.0, 0.9, 0.001),
        ModeAssociation(1, "load", None, 0.5, 0.001),
    )
    sentence = modes_sentence("wall_s", summary(*TWO, mode_associations=(strong, weak)))
    assert sentence is not None
    assert "load" not in sentence


def test_statistics_of_a_metric_of_which_more_is_better_are_shown_as_its_values() -> None:
    document = document_of()
    (comparison,) = document.comparisons
    answers = (StatisticAnswer("minimum", 1.25, "slower"), StatisticAnswer("p50", 0.5, "faster"))
    served = replace(comparison, metric="served", answers=answers)
    shape = shape_section(replace(document, more_is_better=("served",)), (served,))
    (statistics,) = (part for part in shape.parts if isinstance(part, Section))
    (table,) = (part for part in statistics.parts if isinstance(part, Table))
    assert [(change, said) for _, change, said in table.rows] == [
        ("-20.0 %", "less"),
        ("×2.00", "more"),
    ]
    assert "the minimum is its highest value" in table.notes[1]


def test_three_modes_are_named_by_their_values() -> None:
    modes = (*TWO, Mode(0.02, 0.1))
    sentence = modes_sentence(
        "wall_s", summary(*modes, mode_associations=(ModeAssociation(2, "cpu", 0, 0.9, 0.0),))
    )
    assert sentence is not None
    assert sentence.startswith("3 modes: 8.10 ms (70 %), 9.60 ms (30 %) and 20.0 ms (10 %); ")
    assert sentence.endswith("the one at 20.0 ms goes with CPU 0")


def test_modes_of_memory_are_bytes_and_high_or_low() -> None:
    companion = ModeAssociation(1, "cpu", 1.0, 0.9, 0.001)
    modes = (Mode(1e6, 0.5), Mode(2e6, 0.5))
    sentence = modes_sentence("max_rss_bytes", summary(*modes, mode_associations=(companion,)))
    assert sentence == "2 modes: 1.00 MB (50 %) and 2.00 MB (50 %); the high one goes with CPU 1"


def test_a_change_of_state_names_its_first_trial() -> None:
    states = (State(0, 0.0081), State(40, 0.0096))
    sentence = states_sentence("wall_s", replace(summary(*TWO), states=states))
    assert sentence == "8.10 ms at first, 9.60 ms (+18.5 %) from trial 41 on"
    many = tuple(State(10 * number, 0.01 + 0.001 * number) for number in range(7))
    sentence = states_sentence("wall_s", replace(summary(*TWO), states=many))
    assert sentence is not None
    assert sentence.endswith("from trial 31 on, and 3 more changes")


@pytest.mark.parametrize("states", [None, (), (State(0, 1.0),)])
def test_a_campaign_of_one_state_needs_no_sentence(states: tuple[State, ...] | None) -> None:
    assert states_sentence("wall_s", replace(summary(*TWO), states=states)) is None


def test_the_screen_has_a_line_for_each_condition_with_several_modes() -> None:
    document = document_of()
    first = document.conditions[0]
    wall = replace(first.metrics["wall_s"], modes=TWO, states=(State(0, 0.0081), State(9, 0.009)))
    changed = replace(first, metrics={**first.metrics, "wall_s": wall})
    document = replace(document, conditions=(changed, *document.conditions[1:]))
    lines = screen(document).splitlines()
    assert [line for line in lines if "2 modes" in line] == [
        f"{first.name}: 2 modes: 8.10 ms (70 %) and 9.60 ms (30 %)"
    ]
    assert sum(line.startswith("change of state: ") for line in lines) == 1


def test_disagreeing_statistics_are_shown_unless_a_warning_shows_them() -> None:
    document = document_of()
    first = replace(document.comparisons[0], disagreement="b is both", minimum_misleads=False)
    assert "statistics disagree: b is both" in screen(replace(document, comparisons=(first,)))
    warned = replace(first, minimum_misleads=True)
    assert "statistics disagree" not in screen(replace(document, comparisons=(warned,)))


def test_the_sentence_of_iterations_has_their_class_and_their_steady_state() -> None:
    document = result_of(record_of(steady(0.01), short))
    assert [list(iteration_sentences(condition)) for condition in document.conditions] == [
        [
            "iterations of request_s: warm-up in all 20 trials, steady from iteration 11 on "
            "(median); 10.0 ms in the steady state (mean over trials)"
        ],
        [],
    ]


def test_trials_that_were_not_classed_are_counted() -> None:
    def some(generator: np.random.Generator, block: int) -> FloatArray:
        return (short if block < 3 else steady(0.01))(generator, block)

    document = result_of(record_of(steady(0.01), some))
    (words,) = iteration_sentences(document.conditions[1])
    assert words.endswith("; 2 not classed: too few iterations")


def test_a_steady_state_has_its_interval_or_the_reason_why_there_is_none() -> None:
    document = result_of(record_of(steady(0.01), steady(0.0105), restless))
    printed = " ".join(screen(document).split())
    sentence = "In the steady state: request_s of b is 5."
    assert sentence in printed
    told = printed[printed.index(sentence) :]
    assert "interval +" in told
    assert "(95 % over the comparisons reported)" in told
    assert "c against a: no comparison of request_s in the steady state: c: it has no " in printed
    assert "a: iterations of request_s: warm-up in all 20 trials" in printed
