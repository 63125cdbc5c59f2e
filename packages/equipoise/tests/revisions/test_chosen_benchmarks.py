"""Benchmarks of a tool that `--metrics` names."""

from __future__ import annotations

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.revisions.benchmarks import TOOLS
from equipoise.revisions.commit_plans import chosen_benchmarks

NAMES = ("Sum<int, 4>", "Sum<int>", "Same", "int")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (None, NAMES),
        ("Same", ("Same",)),
        ("Same,Sum<int>", ("Same", "Sum<int>")),
        ("Sum<int, 4>,Same", ("Sum<int, 4>", "Same")),
        ("Sum<int,4>", ("Sum<int, 4>",)),
        ("Same,Same", ("Same",)),
    ],
)
def test_names_may_have_commas(text: str | None, chosen: tuple[str, ...]) -> None:
    assert chosen_benchmarks(TOOLS["google-benchmark"], text, NAMES) == chosen


@pytest.mark.parametrize("text", ["Nothing", "Same,Nothing", "Sum<int", "", "Same,"])
def test_what_is_no_name_is_refused_with_the_names(text: str) -> None:
    with pytest.raises(UnusableInput, match="has no benchmark") as refused:
        chosen_benchmarks(TOOLS["google-benchmark"], text, NAMES)
    assert "it has Sum<int, 4>, Sum<int>" in refused.value.what
