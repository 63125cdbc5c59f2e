"""`equipoise compare --layouts`: real programs, linked again, compared over their layouts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.schema import valid_result

LAYOUTS = 12
FUNCTIONS = 24

SOURCE = (
    """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline))
"""
    + "".join(
        f"APART uint64_t function_{n}(uint64_t x) {{ return {2 * n + 3} * x; }}\n"
        for n in range(FUNCTIONS)
    )
    + """
int main(int count, char **words) {
    uint64_t first = (uint64_t)function_0, last = (uint64_t)function_1;
    uint64_t apart = first < last ? last - first : first - last;
    FILE *door = fopen(getenv("EQUIPOISE_METRICS"), "a");
    if (count > 1) apart *= (uint64_t)atoi(words[1]);
    fprintf(door, "{\\"metric\\": \\"apart_bytes\\", \\"value\\": %lu}\\n", (unsigned long)apart);
    return fclose(door);
}
"""
)
"""How far apart two functions lie is chosen by the layout alone: the machine has no part in it."""


@pytest.fixture
def linked(equipoise: Equipoise, tmp_path: Path) -> Path:
    """The folder of twelve layouts of one program."""
    (tmp_path / "apart.c").write_text(SOURCE)
    answer = equipoise(
        *("layouts", "--count", str(LAYOUTS), "--", "cc", "-O1", "apart.c", "-o", "apart")
    )
    assert answer.status == 0, answer.err
    return tmp_path / "apart.layouts"


@pytest.mark.live("cc", package="gcc")
@pytest.mark.live("ld.lld", package="lld")
def test_a_program_relinked_in_twelve_layouts_shows_its_layout_variance(
    equipoise: Equipoise, linked: Path
) -> None:
    programs = [linked / f"layout-{layout}" for layout in range(1, LAYOUTS + 1)]
    assert len({program.read_bytes() for program in programs}) == LAYOUTS
    answer = equipoise(
        *("compare", "--layouts", str(LAYOUTS), "--seed", "2", "--blocks", str(2 * LAYOUTS)),
        *("--metrics", "apart_bytes", "--allow-concurrent", "--budget", "100", "--json", "-"),
        *("-n", "near", "-n", "far"),
        *("apart.layouts/layout-{layout}", "apart.layouts/layout-{layout} 3"),
    )
    assert answer.status == 0, answer.err
    result = valid_result(answer.out)
    measured = [row for row in result["trials"] if row["phase"] == "measured"]
    warmups = [row for row in result["trials"] if row["phase"] == "warmup"]
    # Every executable is warmed up, and each has a distance of its own, the same in each trial.
    assert {row["layout"] for row in warmups} == set(range(1, LAYOUTS + 1))
    apart = {
        (row["layout"], row["metrics"]["apart_bytes"])
        for row in measured
        if row["condition"] == "near"
    }
    assert len(apart) == LAYOUTS
    assert len({distance for _, distance in apart}) > LAYOUTS / 2
    near, _ = (
        condition["metrics"]["apart_bytes"]["by_level"] for condition in result["conditions"]
    )
    layout, trial = near["components"]
    assert (layout["level"], layout["units"], layout["share"]) == ("layout", LAYOUTS, 1.0)
    low, high = layout["variance_ci"]
    assert 0 < low < layout["variance"] < high
    assert trial["variance"] == pytest.approx(0.0, abs=1e-20)
    (comparison,) = result["comparisons"]
    # Three times as far in every layout: the ratio has no layout variance at all.
    assert comparison["by_level"]["geometric_mean"] == pytest.approx(3.0)
    least, most = comparison["by_level"]["across_ci"]
    # The resolution of the metric is all that is left open.
    assert least <= 3.0 <= most
    assert comparison["in_drawn_layouts"]["scope"].startswith("across processes, in these 12")
    shown = equipoise("show", "last", "--verbose").out
    assert "in these layouts alone: slower" in shown
    assert "these 12 layouts" in shown
    assert "across layouts" in shown


@pytest.mark.live("cc", package="gcc")
@pytest.mark.live("ld.lld", package="lld")
def test_a_study_has_layouts_by_a_key(equipoise: Equipoise, linked: Path) -> None:
    (linked.parent / "study.toml").write_text(
        '[study]\nname = "apart"\n[workload]\n'
        'command = ["apart.layouts/layout-{layout}", "{times}"]\nreports = ["apart_bytes"]\n'
        "[factors.times]\nlevels = [1, 2]\n"
        '[measure]\nmetrics = ["apart_bytes"]\nlayouts = 4\naslr = "on"\nblocks = 8\n'
    )
    answer = equipoise("run", "study.toml", "--allow-concurrent", "--json", "-")
    assert answer.status == 0, answer.err
    result = valid_result(answer.out)
    assert len(result["run"]["layouts"]) == 4
    assert all(row["random_addresses"] for row in result["run"]["layouts"])
    (comparison,) = result["comparisons"]
    assert comparison["by_level"]["geometric_mean"] == pytest.approx(2.0)


STACK = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    FILE *door = fopen(getenv("EQUIPOISE_METRICS"), "a");
    unsigned long below = 0x800000000000ul - (uint64_t)&door;
    fprintf(door, "{\\"metric\\": \\"below_bytes\\", \\"value\\": %lu}\\n", below);
    return fclose(door);
}
"""
"""Distance of its stack from the top of the addresses of a process."""


@pytest.mark.live("cc", package="gcc")
def test_a_layout_moves_the_stack_of_any_program_and_holds_it_there(equipoise: Equipoise) -> None:
    (equipoise.folder / "stack.c").write_text(STACK)
    program = str(equipoise.folder / "stack")
    subprocess.run(["cc", "-O1", "-o", program, str(equipoise.folder / "stack.c")], check=True)
    answer = equipoise(
        *("compare", "--layouts", "4", "--aslr", "off", "--seed", "3", "--blocks", "8"),
        *("--metrics", "below_bytes", "--allow-concurrent", "--json", "-", program, program),
    )
    assert answer.status == 0, answer.err
    result = valid_result(answer.out)
    places = {
        (row["layout"], row["metrics"]["below_bytes"])
        for row in result["trials"]
        if row["phase"] == "measured"
    }
    assert len(places) == len({place for _, place in places}) == 4
    # What moves the stack of one layout further down than that of another, to 16 bytes.
    longer = [row["environment_bytes"] + row["argument_bytes"] for row in result["run"]["layouts"]]
    depths = [place for _, place in sorted(places)]
    for layout in range(1, 4):
        expected = longer[layout] - longer[0]
        assert depths[layout] - depths[0] == pytest.approx(expected, abs=16)


def test_the_environment_and_the_path_differ_by_layout_and_the_arguments_do_not(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    (tmp_path / "seen.py").write_text(
        "import os, sys\n"
        "size = len(os.environ['EQUIPOISE_PADDING'])\n"
        "with open('seen', 'a') as file:\n"
        "    print(size, sys.argv, os.path.basename(sys.executable), file=file)\n"
    )
    answer = equipoise(
        *("compare", "--layouts", "3", "--seed", "4", "--blocks", "6", "--allow-concurrent"),
        *("--warmup", "0", "--json", "-", "python3 -S seen.py a", "python3 -S seen.py a "),
    )
    assert answer.status == 0, answer.err
    layouts = valid_result(answer.out)["run"]["layouts"]
    seen = (tmp_path / "seen").read_text().splitlines()
    sizes = sorted({int(line.split()[0]) for line in seen})
    assert sizes == sorted(layout["environment_bytes"] for layout in layouts)
    assert len({line.partition(" ")[2] for line in seen}) == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--layouts", "12", "--blocks", "20", "true", "true"), "--blocks 24"),
        (("--aslr", "off", "true", "true"), "--layouts 12"),
        (("--what-varies", "--layouts", "4", "true"), "leave out one of the two"),
        (("--layouts", "3", "./no-{layout}", "true"), "no-1"),
    ],
)
def test_commands_that_make_no_layouts_are_refused_with_a_hint(
    equipoise: Equipoise, options: tuple[str, ...], named: str
) -> None:
    answer = equipoise("compare", *options)
    assert answer.status == 2
    assert named in answer.err
