"""`equipoise compare --what-varies`: which source of chance the spread comes from."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Answer, Equipoise, result_of

WALK = """
import json, os
words = {f"word {number}" for number in range(1000)}
steps = next(place for place, word in enumerate(words, 1) if word == "word 7")
with open(os.environ["EQUIPOISE_METRICS"], "a") as door:
    print(json.dumps({"metric": "steps", "value": steps}), file=door)
"""
"""As long as the seed of Python's hash makes it: free of the machine's noise."""


@pytest.fixture
def walk(tmp_path: Path) -> str:
    (tmp_path / "walk.py").write_text(WALK)
    return f"{shlex.quote(sys.executable)} -S walk.py"


def looked(equipoise: Equipoise, command: str, *options: str) -> Answer:
    return equipoise(
        *("compare", "--what-varies", command, "--metrics", "steps", "--blocks", "14"),
        *("--allow-concurrent", "--budget", "100", "--seed", "5", *options),
        # Whoever runs the tests may have held it.
        environment={"PYTHONHASHSEED": "random"},
    )


def test_a_script_whose_spread_comes_from_pythons_hash_seed_is_attributed_to_it(
    equipoise: Equipoise, walk: str
) -> None:
    result = result_of(looked(equipoise, walk, "--json", "-"))
    causes = {cause["cause"]: cause for cause in result["why"]}
    seed = causes["hash seed of Python"]
    assert seed["status"] == "source"
    assert seed["share_of_gap"] == 1.0
    assert seed["evidence"]["spread"] > 0.2
    assert causes["everything"]["evidence"]["spread_held"] == 0.0
    assert all(
        one["share_of_gap"] < 1.0
        for cause, one in causes.items()
        if cause not in ("hash seed of Python", "everything")
    )
    shown = equipoise("show", "last")
    assert "Hash seed of Python spreads the times: with it held" in shown.out


def test_a_program_without_chance_has_no_source(equipoise: Equipoise) -> None:
    line = 'echo \'{"metric": "steps", "value": 3}\' >> "$EQUIPOISE_METRICS"'
    answer = looked(equipoise, f"sh -c {shlex.quote(line)}")
    assert answer.status == 0, answer.err
    assert "No source that was held makes the times spread" in answer.out


SEARCH = """
import json, os
names = os.listdir("papers")
steps = next(place for place, name in enumerate(names, 1) if name.startswith("25"))
with open(os.environ["EQUIPOISE_METRICS"], "a") as door:
    print(json.dumps({"metric": "steps", "value": steps}), file=door)
"""
MAKE_ANEW = """
import os, random, shutil
with open("made", "a+") as made:
    made.write("x")
    random.seed(made.tell())
shutil.rmtree("papers", ignore_errors=True)
os.mkdir("papers")
for number in random.sample(range(10, 50), 40):
    open(f"papers/{number}-{random.getrandbits(64)}", "w").close()
"""
"""A folder that is made again: neither its names nor the order in which they came is the same.

What is drawn is the same whenever the tests run, as is the coin."""
SELDOM_WRONG = ("--alpha", "0.005")
"""That nothing else is called a source is a matter of chance, on each file system once."""


def test_a_script_whose_spread_comes_from_the_order_of_files_is_attributed_to_it(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    (tmp_path / "search.py").write_text(SEARCH)
    (tmp_path / "make_anew.py").write_text(MAKE_ANEW)
    python = shlex.quote(sys.executable)
    prepare = ("--prepare", f"{python} -S make_anew.py", "--warmup", "0", "--json", "-")
    result = result_of(looked(equipoise, f"{python} -S search.py", *prepare, *SELDOM_WRONG))
    causes = {cause["cause"]: cause for cause in result["why"]}
    assert causes["file order"]["status"] == "source"
    assert causes["file order"]["share_of_gap"] == 1.0
    assert causes["file order"]["evidence"]["spread"] > 0.2
    assert [cause for cause, one in causes.items() if one["status"] == "source"] == ["file order"]


@pytest.mark.live("cc", package="gcc")
def test_of_a_program_that_is_linked_statically_the_order_of_files_is_not_tried(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    (tmp_path / "alone.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { FILE *door = fopen(getenv("
        '"EQUIPOISE_METRICS"), "a"); fputs("{\\"metric\\": \\"steps\\", \\"value\\": 3}\\n", door);'
        " return fclose(door); }\n"
    )
    program = str(tmp_path / "alone")
    subprocess.run(["cc", "-static", "-o", program, str(tmp_path / "alone.c")], check=True)
    result = result_of(looked(equipoise, program, "--json", "-"))
    assert "file order" not in [cause["cause"] for cause in result["why"]]
    (warning,) = [
        warning
        for warning in result["warnings"]
        if warning["summary"].startswith("file order is not tested")
    ]
    assert "linked statically" in warning["summary"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("true", "false"), "one command, not 2"),
        ((), "compare needs a command"),
        (("true", "--blocks", "3"), "3 blocks"),
        (("true", "--ranking", "on"), "--ranking on ranks several"),
    ],
)
def test_options_that_it_cannot_examine_are_refused(
    equipoise: Equipoise, arguments: tuple[str, ...], named: str
) -> None:
    answer = equipoise("compare", "--what-varies", *arguments)
    assert answer.status == 2
    assert named in answer.err
