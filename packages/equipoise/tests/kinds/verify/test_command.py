"""`equipoise verify`: each answer, with its exit status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.kinds.verify.blocks import seed_of_input
from packages.equipoise.tests.kinds.verify.conftest import (
    FEW_BLOCKS,
    SLOW,
    Project,
    Verify,
    result_in,
)

Ask = Callable[..., tuple[int, Any]]


def test_a_true_speed_up_is_certified(answer_to: Ask) -> None:
    status, result = answer_to(f"{SLOW}\necho right", "echo right")
    assert (status, result["answer"]) == (0, "certified"), result
    assert result["ratio_ci"][1] < 0.99
    # Blocks end once the verdict is clear, at the earliest after six.
    assert 6 <= result["compared_blocks"] <= 9
    assert result["objections"] == []
    assert result["inputs_changed"] is False
    assert list(result["builds"][0]["files"]) == ["program"]
    assert result["builds"][0] != result["builds"][1]


def test_a_slower_change_is_not_faster(answer_to: Ask) -> None:
    status, result = answer_to("echo right", f"{SLOW}\necho right")
    assert (status, result["answer"]) == (1, "not faster"), result


def test_a_change_of_nothing_is_never_certified(answer_to: Ask) -> None:
    status, result = answer_to("echo right", "echo right # again")
    assert result["answer"] in ("not faster", "cannot say"), result
    assert status == {"not faster": 1, "cannot say": 3}[result["answer"]]


def test_a_wrong_output_ends_the_campaign_and_is_shown(answer_to: Ask) -> None:
    lines = r"printf 'one\ntwo\nthree\n'"
    status, result = answer_to(f"{SLOW}\n{lines}", r"printf 'one\ntw\033o\nthree\n'")
    assert (status, result["answer"]) == (1, "wrong output"), result
    difference = result["difference"]
    assert (difference["phase"], difference["block"], difference["line"]) == ("measured", 1, 2)
    assert difference["expected"] == "two"
    assert "\x1b" not in difference["actual"]
    assert "tw" in result["summary"]


def test_a_shorter_output_is_wrong(answer_to: Ask) -> None:
    _, result = answer_to(f"{SLOW}\necho one; echo two", "echo one")
    assert result["answer"] == "wrong output"
    assert result["difference"]["line"] == 2


def test_a_failing_candidate_has_a_wrong_output(answer_to: Ask) -> None:
    status, result = answer_to(f"{SLOW}\necho right", "echo right; exit 4")
    assert (status, result["answer"]) == (1, "wrong output"), result
    assert result["difference"]["expected"] == "exit status 0"
    assert result["difference"]["actual"] == "exit status 4"


def test_a_failing_baseline_is_an_error(verify: Verify, changed: Project) -> None:
    made = changed("exit 5", "exit 5")
    answer = verify(made, "--baseline", "old", *FEW_BLOCKS, "--", "./program")
    assert answer.status == 3
    assert "baseline old" in answer.err
    assert "exit status 5" in answer.err


def test_an_output_that_varies_needs_a_check(verify: Verify, changed: Project) -> None:
    made = changed(f"{SLOW}\necho $$", "echo $$")
    words = ("--baseline", "old", *FEW_BLOCKS, "--json", "-")
    refused = verify(made, *words, "--", "./program")
    assert refused.status == 2
    assert "two runs of the baseline print different outputs in line 1" in refused.err
    assert "--check CMD" in refused.err
    are_numbers = 'grep -qx "[0-9]*" "$EQUIPOISE_EXPECTED" "$EQUIPOISE_ACTUAL"'
    accepted = verify(made, *words, "--check", are_numbers, "--", "./program")
    assert (accepted.status, result_in(accepted)["answer"]) == (0, "certified")


def test_a_check_that_fails_gives_its_last_line_as_the_reason(answer_to: Ask) -> None:
    line = 'diff "$EQUIPOISE_EXPECTED" "$EQUIPOISE_ACTUAL" > /dev/null || { echo too far; exit 1; }'
    status, result = answer_to(f"{SLOW}\necho 1.5", "echo 2.5", "--check", line)
    assert (status, result["answer"]) == (1, "wrong output"), result
    assert result["difference"]["actual"] == "too far"


def test_one_check_is_chosen(verify: Verify, changed: Project) -> None:
    made = changed("true", "true")
    words = ("--baseline", "old", "--same-output", "--check", "true", "--", "./program")
    assert verify(made, *words).status == 2


def test_inputs_are_drawn_again_for_each_block(answer_to: Ask, tmp_path: Path) -> None:
    log = tmp_path / "seeds"
    line = f'echo "$EQUIPOISE_SEED" | tee -a {log}'
    reads = "read seed; echo got $seed"
    status, result = answer_to(f"{SLOW}\n{reads}", reads, "--input-command", line, "--seed", "7")
    assert (status, result["answer"]) == (0, "certified"), result
    assert result["inputs_changed"] is True
    # The first input is that of the untimed runs.
    seeds = list(map(int, log.read_text().split()))[1:]
    blocks = range(1, result["compared_blocks"] + 1)
    assert seeds == [seed_of_input(7, "measured", block) for block in blocks]
    assert len(set(seeds)) == len(blocks) >= 6


def test_a_result_of_one_input_alone_is_wrong_with_others(answer_to: Ask) -> None:
    line = "echo $((EQUIPOISE_SEED % 1000))"
    status, result = answer_to(
        f"{SLOW}\nread x; echo $x", "read x; echo 17", "--input-command", line
    )
    assert (status, result["answer"]) == (1, "wrong output"), result
    assert result["difference"]["actual"] == "17"


def test_an_input_command_that_fails_is_named(verify: Verify, changed: Project) -> None:
    made = changed("true", "true")
    words = ("--baseline", "old", "--input-command", "echo no >&2; exit 6", *FEW_BLOCKS)
    answer = verify(made, *words, "--", "./program")
    assert answer.status == 3
    assert "--input-command failed" in answer.err
    assert "exit status 6; stderr: no" in answer.err


def test_trials_have_no_variable_of_equipoise(answer_to: Ask, tmp_path: Path) -> None:
    log = tmp_path / "environments"
    writes = f"env >> {log}; echo right"
    _, result = answer_to(writes, f"{writes} # again", "--blocks=2")
    assert result["compared_blocks"] == 2
    names = [line.partition("=")[0] for line in log.read_text().splitlines()]
    # Two untimed and three observed runs, and two blocks.
    assert names.count("PADDING") == 9
    assert [name for name in names if name.startswith("EQUIPOISE")] == []


PROGRAM = """\
#include <stdio.h>
#include <time.h>
int first(int x) { return 3 * x + 1; }
int second(int x) { return x ^ 5; }
int main(void) {
    struct timespec pause = {0, PAUSE};
    nanosleep(&pause, NULL);
    return printf("%d\\n", first(second(1))) < 0;
}
"""


@pytest.mark.skipif(
    shutil.which("ld.lld") is None and shutil.which("rustc") is None,
    reason="misses ld.lld (package lld)",
)
def test_both_revisions_are_linked_again(verify: Verify, changed: Project) -> None:
    made = changed("true", "true")
    for tag, pause in (("slow", 150_000_000), ("quick", 0)):
        made.write("program.c", f"#define PAUSE {pause}\n{PROGRAM}")
        made.commit()
        made.git("tag", tag)
    build = "cc -c program.c && cc -o built program.o"
    words = ("--baseline", "slow", "--build", build, "--relink", "6", *FEW_BLOCKS, "--json", "-")
    answer = verify(made, *words, "--", "./built")
    result = result_in(answer)
    assert (answer.status, result["answer"]) == (0, "certified"), answer
    assert result["relinking"]["files"] == [["built"], ["built"]]
    assert [list(build["files"]) for build in result["builds"]] == [["built"], ["built"]]


def test_it_needs_a_baseline_and_a_command(verify: Verify, changed: Project) -> None:
    made = changed("true", "true")
    assert "needs --baseline" in verify(made, "--", "./program").err
    assert "needs a command" in verify(made, "--baseline", "old").err


def test_the_answer_is_the_first_line_of_every_form(
    verify: Verify, changed: Project, tmp_path: Path
) -> None:
    made = changed(f"{SLOW}\necho right", "echo right")
    page = tmp_path / "page.html"
    words = ("--baseline", "old", *FEW_BLOCKS, "--report", str(page), "--", "./program")
    answer = verify(made, *words)
    first, *_, last = answer.out.splitlines()
    assert first == "Certified: it is faster, and every output was equal."
    assert last.startswith("run ")
    assert "the input never changed (--input-command)" in answer.out
    text = page.read_text()
    assert "really faster" in text
    assert "What was checked" in text


@pytest.mark.parametrize("option", [("--relink", "3"), ("--candidate", "absent")])
def test_unusable_options_are_refused(
    verify: Verify, changed: Project, option: tuple[str, ...]
) -> None:
    made = changed("true", "true")
    assert verify(made, "--baseline", "old", *option, "--", "./program").status == 2


def test_the_answer_is_computed_again_from_the_ledger(
    verify: Verify, changed: Project, run_in: Callable[..., Any]
) -> None:
    made = changed(f"{SLOW}\necho one", "echo two")
    words = ("--baseline", "old", *FEW_BLOCKS, "--json", "-", "--", "./program")
    first = json.loads(verify(made, *words).out)
    again = json.loads(run_in(made.path, "show", first["run"]["id"], "--json", "-").out)
    assert again["verify"] == first["verify"]
    assert again["verify"]["answer"] == "wrong output"
