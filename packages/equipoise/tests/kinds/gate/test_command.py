"""`equipoise gate` from two revisions of a repository to an exit status."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from equipoise.kinds.gate.command import MARK
from equipoise.report.json_document import schema
from packages.equipoise.tests.cli.conftest import ENTRY, Answer, Equipoise, Gate
from packages.equipoise.tests.report.forms import breakable
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

FAST, SLOW = "sleep 0.002", "sleep 0.02"
"""Far apart, so that a busy host cannot hide it for long."""
SOON = ("--blocks", "80", "--warmup", "0")


@pytest.fixture
def made(tmp_path: Path, scratch: Path) -> MadeRepository:
    """A repository whose build makes a program that sleeps; the later revision sleeps longer."""
    made = repository(tmp_path / "project")
    made.write("Makefile", "bench: source\n\t@cp source bench && chmod +x bench\n")
    made.write(".gitignore", "bench\n.equipoise\n")
    made.write("source", f"#!/bin/sh\n{FAST}\n")
    made.commit()
    made.git("tag", "fast")
    made.write("source", f"#!/bin/sh\n{SLOW}\n")
    made.commit()
    made.git("tag", "slow")
    return made


def document(answer: Answer) -> Any:
    assert answer.out, answer.err
    result = json.loads(answer.out)
    jsonschema.validate(result, schema())
    return result


BUILT = ("--build", "make -s", *SOON)


def test_a_slower_revision_fails_and_says_by_how_much(gate: Gate, made: MadeRepository) -> None:
    before = everything_in(made.path)
    answer = gate(made, "--baseline", "fast", *BUILT, "--ledger", "../ledger.db", "--", "./bench")
    assert answer.status == 1, answer
    assert answer.err == ""
    heading, _, words, _, *table = breakable(answer.out).splitlines()
    assert heading == "## Equipoise gate: ❌ fails"
    assert words.startswith("HEAD (")
    assert "./bench is slower by more than 2 %, by at least" in words
    headings = "| benchmark | baseline | candidate | change | interval | equivalence interval |"
    assert table[0] == f"{headings} outcome |"
    assert table[2].startswith("| ./bench | ")
    assert table[2].endswith("| ❌ slower |")
    assert everything_in(made.path) == before


def test_the_same_revision_passes_and_is_said_to_be_the_same(
    gate: Gate, made: MadeRepository
) -> None:
    answer = gate(made, "--baseline", "slow", *BUILT, "--blocks", "3", "--", "./bench")
    assert answer.status == 0
    assert answer.out.startswith("## Equipoise gate: ❔ undecided\n")
    assert "baseline and candidate are the same commit" in answer.out


def test_a_faster_revision_passes(gate: Gate, made: MadeRepository) -> None:
    answer = gate(made, "--baseline", "slow", "--candidate", "fast", *BUILT, "--", "./bench")
    assert answer.status == 0
    assert "./bench is not slower by more than 2 %" in breakable(answer.out)
    assert answer.out.count("✅ passes") == 2


def test_what_is_not_known_passes_unless_it_is_told_to_fail(
    gate: Gate, made: MadeRepository, tmp_path: Path
) -> None:
    one_block = ("--build", "make -s", "--blocks", "1", "--warmup", "0", "--", "./bench")
    answer = gate(
        made, "--baseline", "fast", "--json", str(tmp_path / "undecided.json"), *one_block
    )
    assert answer.status == 0
    assert "is not known after 1 block" in answer.out
    assert answer.out.startswith("## Equipoise gate: ❔ undecided\n")
    assert "✅" not in answer.out
    needed = re.search(r"Measured too little: 1 block .*; needs at least (\d+) blocks", answer.out)
    assert needed is not None
    # What happened is said on stderr, too, where the end of a CI log is read.
    assert breakable(needed[0]) in answer.err
    assert "--budget " in answer.err.partition("hint: ")[2]
    shortage = json.loads((tmp_path / "undecided.json").read_text())["gate"]["shortage"]
    assert (shortage["undecided"], shortage["blocks"]) == (1, 1)
    answer = gate(made, "--baseline", "fast", "--fail-undecided", *one_block)
    assert answer.status == 1
    assert answer.out.startswith("## Equipoise gate: ❌ fails: undecided\n")
    assert "❔ undecided" in answer.out


def test_the_candidate_is_the_working_tree_with_what_was_changed(
    gate: Gate, made: MadeRepository
) -> None:
    made.git("checkout", "--quiet", "fast")
    made.write("source", f"#!/bin/sh\n{SLOW}\n")
    made.write("left\x1b[31m out", "")
    answer = gate(made, "--baseline", "fast", *BUILT, "--", "./bench")
    assert answer.status == 1
    assert "the working tree (" in answer.out
    assert "with uncommitted changes" in answer.out
    assert "untracked files of the working tree are in neither revision" in answer.out
    assert "\x1b" not in answer.out


def test_what_others_did_meanwhile_is_no_matter_of_the_branch_if_one_asks_for_its_fork_point(
    gate: Gate, made: MadeRepository
) -> None:
    left = made.git("rev-parse", "slow").strip()
    made.git("checkout", "--quiet", "-b", "feature")
    made.write("feature", "")
    made.commit()
    made.git("checkout", "--quiet", "main")
    made.write("source", f"#!/bin/sh\n{FAST}\n")
    made.commit()
    made.git("checkout", "--quiet", "feature")
    words = ("--merge-base", *BUILT, "--blocks", "1", "--json", "-", "--", "./bench")
    result = document(gate(made, "--baseline", "main", *words))
    assert result["gate"]["baseline"] == {
        "asked": "the fork point from main",
        "commit": left,
        "uncommitted": False,
    }
    assert shlex.split(result["run"]["command_line"])[2:4] == ["--baseline", left]


def test_changes_in_submodules_are_said_to_be_in_neither_revision(
    gate: Gate, made: MadeRepository, tmp_path: Path
) -> None:
    library = repository(tmp_path / "library")
    library.write("part", "")
    library.commit()
    allowed = ("-c", "protocol.file.allow=always")
    made.git(*allowed, "submodule", "--quiet", "add", str(library.path), "lib\x1b[31m")
    made.commit()
    made.write("lib\x1b[31m/part", "changed")
    answer = gate(made, "--baseline", "HEAD", "--blocks", "1", "--warmup", "0", "--", "true")
    assert answer.status == 0
    assert "changes in submodules are in neither revision: 1, lib" in answer.out
    assert "\x1b" not in answer.out


def test_the_document_tells_the_gate_and_the_ledger_gives_it_again(
    gate: Gate, made: MadeRepository
) -> None:
    words = ("--baseline", "fast", *BUILT, "--json", "-", "--", "./bench")
    result = document(gate(made, *words))
    verdict = result["gate"]
    assert verdict["passed"] is False
    assert verdict["baseline"]["asked"] == "fast"
    assert verdict["baseline"]["commit"] == made.git("rev-parse", "fast").strip()
    (row,) = verdict["rows"]
    assert row["outcome"] == "slower"
    assert row["ratio_ci"][0] > 1 + verdict["min_effect"] / 100
    search = shlex.split(verdict["bisect"]["./bench"])
    assert search[:4] == ["equipoise", "bisect", "--good", verdict["baseline"]["commit"]]
    assert search[-2:] == ["--", "./bench"]
    folders = [Path(one["command"][0]).parent for one in result["conditions"]]
    assert len(str(folders[0])) == len(str(folders[1]))
    assert folders[0] != folders[1]
    repeated = subprocess.run(
        [*ENTRY, "show", "last", "--json", "-"], cwd=made.path, capture_output=True, check=True
    )
    assert json.loads(repeated.stdout)["gate"] == verdict


def test_its_line_runs_it_again(gate: Gate, made: MadeRepository) -> None:
    quick = ("--build", "make -s", "--blocks", "2", "--json", "-")
    first = document(gate(made, "--baseline", "fast", *quick, "--", "./bench"))
    words = shlex.split(first["run"]["command_line"])
    assert words[:4] == ["equipoise", "gate", "--baseline", first["gate"]["baseline"]["commit"]]
    repeated = document(gate(made, *words[2:4], "--json", "-", *words[4:]))
    assert repeated["run"]["command_line"] == first["run"]["command_line"]
    assert str(repeated["run"]["seed"]) in words


def test_builds_are_kept_for_the_next_gate(
    gate: Gate, made: MadeRepository, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    line = 'make -s; echo built >> "$LOG"'
    words = ("--build", line, "--blocks", "1", "--warmup", "0", "--", "./bench")
    for candidate, builds in (("slow", 2), ("slow", 2), ("fast", 2)):
        answer = gate(made, "--baseline", "fast", "--candidate", candidate, *words, LOG=str(log))
        assert answer.status == 0, answer
        assert log.read_text().count("built") == builds
    made.write("source", f"#!/bin/sh\n{FAST} # changed\n")
    gate(made, "--baseline", "fast", *words, LOG=str(log))
    assert log.read_text().count("built") == 3


def test_several_benchmarks_are_judged_together(gate: Gate, made: MadeRepository) -> None:
    name = "</td>|`<script>"
    benches = ("--bench", f"{name}=./bench", "--bench", "same=sleep 0.002")
    answer = gate(made, "--baseline", "fast", *BUILT, *benches)
    assert answer.status == 1, answer
    assert "1 of 2 benchmarks is slower by more than 2 %" in breakable(answer.out)
    (row,) = [line for line in answer.out.splitlines() if line.endswith("❌ slower |")]
    assert row.startswith(r"| &lt;/td&gt;\|\`&lt;script&gt; | ")
    assert row.endswith("❌ slower |")


def test_a_suite_is_a_file_and_may_say_how_to_build(gate: Gate, made: MadeRepository) -> None:
    made.write(
        "suite.toml", 'build = "make -s"\n[benchmarks]\nsleeps = "./bench"\nlists = ["ls", "/"]\n'
    )
    words = ("--baseline", "fast", "--suite", "suite.toml", *SOON, "--json", "-")
    result = document(gate(made, *words))
    outcomes = {row["benchmark"]: row["outcome"] for row in result["gate"]["rows"]}
    assert outcomes.keys() == {"sleeps", "lists"}
    assert outcomes["sleeps"] == "slower"
    assert [one["levels"]["benchmark"] for one in result["conditions"]] == [
        *("sleeps", "sleeps"),
        *("lists", "lists"),
    ]


def test_the_summary_goes_to_a_file_and_behind_what_the_job_has_said(
    gate: Gate, made: MadeRepository, tmp_path: Path
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n")
    words = (
        "--baseline",
        "slow",
        *BUILT,
        "--blocks",
        "1",
        "--quiet",
        "--markdown",
        "../gate.md",
        "--",
        "./bench",
    )
    answer = gate(made, *words, GITHUB_STEP_SUMMARY=str(step))
    assert (answer.status, answer.out) == (0, "")
    summary = (tmp_path / "gate.md").read_text()
    assert summary.startswith("## Equipoise gate: ❔ undecided")
    assert "before\n" + summary == step.read_text() + f"\n{MARK}\n"
    answer = gate(made, *words, GITHUB_STEP_SUMMARY=str(tmp_path))
    assert answer.status == 0
    assert "cannot append to GITHUB_STEP_SUMMARY" in answer.err


def test_a_build_that_fails_is_told_with_the_end_of_what_it_said(
    gate: Gate, made: MadeRepository
) -> None:
    line = 'echo first; echo "no such thing" >&2; exit 4'
    answer = gate(made, "--baseline", "fast", "--build", line, "--", "./bench")
    assert answer.status == 3
    assert answer.out == ""
    assert answer.err.startswith("equipoise: the baseline fast (")
    assert "cannot be built: exit status 4: echo first" in answer.err
    assert "its output: first / no such thing" in answer.err
    assert answer.err.count("\n") == 2


def test_a_benchmark_that_fails_is_no_verdict(gate: Gate, made: MadeRepository) -> None:
    answer = gate(made, "--baseline", "fast", "--", "sh", "-c", "echo why >&2; exit 5")
    assert answer.status == 3
    assert "failed: exit status 5; stderr: why" in answer.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--baseline", "nowhere", "--", "true"), "--baseline nowhere: there is no such commit"),
        (("--baseline=--help", "--", "true"), "--baseline --help: there is no such commit"),
        (("--baseline", "fast", "--candidate", "$(touch x)", "--", "true"), "no such commit"),
        (("--baseline", "fast"), "a gate needs one thing to run"),
        (("--baseline", "fast", "--bench", "a=b", "--", "true"), "a gate needs one thing to run"),
        (("--baseline", "fast", "--bench", "nothing"), "is not of the form NAME=CMD"),
        (("--baseline", "fast", "--bench", "a=b", "--bench", "a=c"), "two benchmarks are called"),
        (("--baseline", "fast", "--suite", "no.toml"), "cannot read no.toml: no such file"),
        (("--baseline", "fast", "--", "./bench"), "has no program ./bench"),
        (("--baseline", "fast", "--", "no-such-program"), "there is no program"),
        (("--baseline", "fast", "--markdown", "no/where", "--", "true"), "there is no folder"),
        (("--", "true"), "Missing option '--baseline'"),
    ],
)
def test_what_cannot_be_used_is_told_in_two_lines(
    gate: Gate, made: MadeRepository, words: tuple[str, ...], told: str
) -> None:
    answer = gate(made, *words)
    assert answer.status == 2
    assert answer.out == ""
    assert told in answer.err
    assert "  hint: " in answer.err
    assert answer.err.count("\n") == 2
    assert not (made.path / "x").exists()


def test_the_users_own_program_is_not_run_as_both_revisions(
    gate: Gate, made: MadeRepository
) -> None:
    made.write("bench", "#!/bin/sh\n", executable=True)
    answer = gate(made, "--baseline", "fast", "--", str(made.path / "bench"))
    assert answer.status == 2
    assert "is a program of your own working tree" in answer.err
    assert "./bench" in answer.err


def test_outside_of_a_repository_it_says_where_to_run(
    equipoise: Equipoise, tmp_path: Path, scratch: Path
) -> None:
    answer = equipoise("gate", "--baseline", "main", "--", "true")
    assert answer.status == 2
    assert "is not in a readable git working tree" in answer.err


def test_a_gate_in_a_folder_of_the_repository_runs_in_that_folder(
    gate: Gate, made: MadeRepository
) -> None:
    made.write("inside/check", "#!/bin/sh\ntest -f beside\n", executable=True)
    made.write("inside/beside", "")
    made.commit()
    inside = MadeRepository(made.path / "inside")
    answer = gate(inside, "--baseline", "HEAD", "--blocks", "1", "--", "./check")
    assert answer.status == 0
    answer = gate(inside, "--baseline", "fast", "--blocks", "1", "--", "./check")
    assert answer.status == 2
    assert "has no folder inside" in answer.err


FOR_EVER = "sleep 300 & touch {begun}; wait"


def builds_for_ever(made: MadeRepository) -> subprocess.Popen[bytes]:
    """A gate whose build has begun."""
    return begun_gate(made, FOR_EVER, "./bench")


def measures_for_ever(made: MadeRepository) -> subprocess.Popen[bytes]:
    """A gate whose first trial has begun."""
    return begun_gate(made, "make -s", f"sh -c {shlex.quote(FOR_EVER)}")


def begun_gate(made: MadeRepository, build: str, benchmark: str) -> subprocess.Popen[bytes]:
    """A gate once one of both lines has made the file that it calls ``begun``."""
    begun = made.path.parent / "begun"
    build, benchmark = (line.format(begun=begun) for line in (build, benchmark))
    started = subprocess.Popen(
        [*ENTRY, "gate", "--baseline", "fast", "--build", build, "--", *shlex.split(benchmark)],
        cwd=made.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not begun.exists():
        assert started.poll() is None
        time.sleep(0.02)
    return started


def running_builds(made: MadeRepository) -> list[psutil.Process]:
    """What still runs of the builds of the gates of a test."""
    kept = made.path.parent / "builds"
    found = []
    for process in psutil.process_iter():
        try:
            inside = process.environ().get("EQUIPOISE_BUILD", "").startswith(str(kept))
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
        if inside and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def test_an_interrupted_gate_takes_its_build_with_it(made: MadeRepository) -> None:
    started = builds_for_ever(made)
    assert running_builds(made)
    started.send_signal(signal.SIGINT)
    assert started.wait(600) == 130
    assert running_builds(made) == []
    assert list((made.path.parent / "builds").glob("*/tree")) == []


def test_what_a_killed_gate_left_is_cleared_away_by_the_doctor(
    made: MadeRepository, scratch: Path
) -> None:
    started = builds_for_ever(made)
    started.kill()
    started.wait(600)
    (left,) = scratch.iterdir()
    (half,) = (made.path.parent / "builds").glob("*/tree/project/source")
    assert running_builds(made)
    cleared_by_the_doctor(made, left)
    assert running_builds(made) == []
    # Half a build is used by nobody, and the next gate removes it.
    done = subprocess.run(
        [*ENTRY, "gate", "--baseline", "fast", "--build", "true", "--", "./none"],
        cwd=made.path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert not half.exists()


def test_a_gate_that_is_killed_while_it_measures_leaves_no_trial_and_no_worktree(
    made: MadeRepository, scratch: Path
) -> None:
    started = measures_for_ever(made)
    trials = psutil.Process(started.pid).children(recursive=True)
    # The launcher, the trial and what that waits for.
    assert len(trials) >= 3
    started.kill()
    started.wait(600)
    _, alive = psutil.wait_procs(trials, timeout=600)
    assert alive == []
    cleared_by_the_doctor(made, next(scratch.iterdir()))


def cleared_by_the_doctor(made: MadeRepository, left: Path) -> None:
    """It names what is left, and neither the disk nor the repository knows of it afterwards."""
    done = subprocess.run(
        [*ENTRY, "doctor"], cwd=made.path, capture_output=True, text=True, check=True
    )
    assert str(left) in done.stderr
    assert not left.exists()
    # The repository knows nothing of it.
    assert made.git("worktree", "list").count("\n") == 1
    assert made.git("status", "--porcelain") == ""
