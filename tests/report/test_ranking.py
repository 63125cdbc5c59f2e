"""A ranking in every form: one sentence on the screen, a table elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.model.result import RankedCondition, Ranking
from tests.documents import document_of
from tests.report.forms import print_result, to_latex, to_markdown

SENTENCE = "a is the fastest of 3."


def ranked() -> Ranking:
    """The first of three is certainly the fastest."""
    return Ranking(
        "a",
        (
            RankedCondition("a", 1.0, True, (), ("b", "c"), (), ()),
            RankedCondition("b", 1.1, False, ("a",), (), (), ("c",)),
            RankedCondition("c", None, False, ("a",), (), (), ("b",)),
        ),
        (),
        0.05,
        SENTENCE,
    )


def test_the_ranking_is_a_sentence_on_the_screen_and_a_table_elsewhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = replace(document_of("a", "b", "c", blocks=10), ranking=(ranked(),))
    print_result(document, [], Path("ledger.db"), color=False)
    screen = capsys.readouterr().out
    assert SENTENCE in screen
    assert "Certainly slower than" not in screen
    markdown = to_markdown(document)
    assert "| 1 | a | baseline | – | – | – |" in markdown
    assert "| 2 to 3 | b | +10.0 % | a | – | c |" in markdown
    assert SENTENCE in to_latex(document)
