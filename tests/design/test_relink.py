"""A compiler's command line, taken apart and put together again for each layout."""

from __future__ import annotations

import pytest

from equipoise.design.relink import taken_apart
from equipoise.model.errors import UnusableInput

LINE = ("cc", "-O2", "-I", "include", "main.c", "list.c", "old.o", "-lm", "-o", "program")


def test_sources_are_compiled_each_into_sections_of_their_own() -> None:
    lines = taken_apart(LINE).compile_lines(["0.o", "1.o"])
    assert [line[-3:] for line in lines] == [("main.c", "-o", "0.o"), ("list.c", "-o", "1.o")]
    for line in lines:
        assert {"-O2", "-c", "-ffunction-sections"} <= set(line)
        assert line[line.index("-I") + 1] == "include"
        assert "-lm" not in line


def test_a_link_has_every_object_and_the_libraries_last() -> None:
    line = taken_apart(LINE).link_line(["0.o", "1.o"], "layout-7", "lld", 7)
    assert line[-6:] == ("0.o", "1.o", "old.o", "-lm", "-o", "layout-7")
    assert "-Wl,--shuffle-sections=.text*=7" in line


def test_without_a_shuffling_linker_the_seed_draws_the_order_of_the_objects() -> None:
    compilation = taken_apart(LINE)
    orders = {compilation.link_line(["0.o", "1.o"], "p", "objects", seed) for seed in range(30)}
    assert len(orders) == 6
    assert compilation.link_line(["0.o"], "p", "objects", 3) == compilation.link_line(
        ["0.o"], "p", "objects", 3
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "no compiler"),
        (("cc", "-O2"), "no source"),
        (("cc", "-c", "main.c"), "-c"),
        (("cc", "main.c", "stray"), "stray"),
    ],
)
def test_a_line_that_makes_no_program_is_refused(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(UnusableInput, match=named):
        taken_apart(words)
