"""A plan over layouts: its options and their errors."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.design.layouts import longer_path, parse_compilation, with_layouts
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Server, Stopping
from packages.equipoise.tests.plans import plan_of


def test_every_layout_gets_two_blocks_before_a_verdict_may_end_the_campaign() -> None:
    plan = with_layouts(plan_of(), 12)
    assert len(plan.layouts) == 12
    assert plan.stopping.min_blocks == 24
    assert not plan.stopping.min_blocks_explicit


def test_a_chosen_least_number_of_blocks_is_kept() -> None:
    stopping = Stopping(min_blocks=6, min_blocks_explicit=True)
    assert with_layouts(plan_of(stopping=stopping), 12).stopping == stopping


def test_too_few_blocks_are_refused_with_the_number_that_is_needed() -> None:
    with pytest.raises(UnusableInput, match="20 blocks are too few for 12 layouts") as caught:
        with_layouts(plan_of(stopping=Stopping(blocks=20)), 12)
    assert "blocks=24" in str(caught.value.hint)


def test_a_server_has_no_layouts() -> None:
    plan = plan_of()
    served = msgspec.structs.replace(plan.conditions[0], server=Server(("/bin/serve",)))
    with pytest.raises(UnusableInput, match="a is a server"):
        with_layouts(msgspec.structs.replace(plan, conditions=(served,)), 4)


def test_separate_programs_are_warmed_up_in_each_layout() -> None:
    plan = plan_of()
    assert with_layouts(plan, 6).warmup_blocks == 1
    linked = Condition("p", ("/p/layout-{layout}",))
    plan = msgspec.structs.replace(plan, conditions=(linked, plan.conditions[1]))
    assert plan.warmup_blocks == 1
    assert with_layouts(plan, 6).warmup_blocks == 6


@pytest.mark.parametrize("more", [0, 1, 255])
def test_a_longer_path_names_the_same_file_and_has_the_exact_length(
    tmp_path: Path, more: int
) -> None:
    file = tmp_path / "program"
    file.write_text("")
    path = longer_path(str(file), more)
    assert len(path) == len(str(file)) + more
    assert os.path.samefile(path, file)
    assert os.path.basename(path) == "program"


def test_a_program_at_the_root_keeps_its_place() -> None:
    assert longer_path("/program", 2) == "///program"


LINE = ("cc", "-O2", "-I", "include", "main.c", "list.c", "old.o", "-lm", "-o", "program")


def test_each_source_is_compiled_into_its_own_sections() -> None:
    lines = parse_compilation(LINE).compile_lines(["0.o", "1.o"])
    assert [line[-3:] for line in lines] == [("main.c", "-o", "0.o"), ("list.c", "-o", "1.o")]
    for line in lines:
        assert {"-O2", "-c", "-ffunction-sections"} <= set(line)
        assert line[line.index("-I") + 1] == "include"
        assert "-lm" not in line


def test_a_link_has_every_object_and_the_libraries_last() -> None:
    line = parse_compilation(LINE).link_line(["0.o", "1.o"], "layout-7", "lld", 7)
    assert line[-6:] == ("0.o", "1.o", "old.o", "-lm", "-o", "layout-7")
    assert "-Wl,--shuffle-sections=.text*=7" in line


def test_without_a_shuffling_linker_the_seed_draws_the_order_of_the_objects() -> None:
    compilation = parse_compilation(LINE)
    orders = {compilation.link_line(["0.o", "1.o"], "p", "objects", seed) for seed in range(30)}
    assert len(orders) == 6
    assert compilation.link_line(["0.o"], "p", "objects", 3) == compilation.link_line(
        ["0.o"], "p", "objects", 3
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "does not name a compiler"),
        (("cc", "-O2"), "no source"),
        (("cc", "-c", "main.c"), "-c"),
        (("cc", "main.c", "stray"), "stray"),
    ],
)
def test_a_line_that_makes_no_program_is_refused(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(UnusableInput, match=named):
        parse_compilation(words)
