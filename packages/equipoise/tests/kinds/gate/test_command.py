"""`equipoise gate` from two revisions of a repository to an exit status."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from equipoise.kinds.gate.terms import COMMENT_MARK
from equipoise.report.json_document import schema
from packages.equipoise.tests.cli.conftest import ENTRY, Answer, Equipoise, Gate, RunIn
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.report.forms import breakable
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

FAST, SLOW = "sleep 0.002", "sleep 0.02"
"""Far apart, so that a busy host cannot hide it for long."""
SOON = ("--blocks", "80", "--warmup", "0")


@pytest.fixture
def project(tmp_path: Path, scratch: Path) -> MadeRepository:
    """A repository whose build makes a program that sleeps; the later revision sleeps longer."""
    project = repository(tmp_path / "project")
    project.write("Makefile", "bench: source\n\t@cp source bench && chmod +x bench\n")
    project.write(".gitignore", "bench\n.equipoise\n")
    project.write("source", f"#!/bin/sh\n{FAST}\n")
    project.commit()
    project.git("tag", "fast")
    project.write("source", f"#!/bin/sh\n{SLOW}\n")
    project.commit()
    project.git("tag", "slow")
    return project


@pytest.fixture
def gate(project: MadeRepository, gate: Gate) -> Gate:
    """Run one gate in the repository."""
    return partial(gate, project)


def document(answer: Answer) -> Any:
    assert answer.out, answer.err
    result = json.loads(answer.out)
    jsonschema.validate(result, schema())
    return result


BUILT = ("--build", "make -s", *SOON)


def test_a_slower_revision_fails_and_the_extent_is_reported(
    gate: Gate, project: MadeRepository
) -> None:
    before = everything_in(project.path)
    answer = gate("--baseline", "fast", *BUILT, "--ledger", "../ledger.db", "--", "./bench")
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
    assert everything_in(project.path) == before


def test_the_same_revision_passes_with_a_warning(gate: Gate) -> None:
    answer = gate("--baseline", "slow", *BUILT, "--blocks", "3", "--", "./bench")
    assert answer.status == 0
    assert answer.out.startswith("## Equipoise gate: ❔ undecided\n")
    assert "baseline and candidate are the same commit" in answer.out


def test_a_faster_revision_passes(gate: Gate) -> None:
    answer = gate("--baseline", "slow", "--candidate", "fast", *BUILT, "--", "./bench")
    assert answer.status == 0
    assert "./bench is not slower by more than 2 %" in breakable(answer.out)
    assert answer.out.count("✅ passes") == 2


def test_an_undecided_gate_passes_except_with_fail_undecided(gate: Gate, tmp_path: Path) -> None:
    one_block = ("--build", "make -s", "--blocks", "1", "--warmup", "0", "--", "./bench")
    answer = gate("--baseline", "fast", "--json", str(tmp_path / "undecided.json"), *one_block)
    assert answer.status == 0
    assert "is not known after 1 block" in answer.out
    assert answer.out.startswith("## Equipoise gate: ❔ undecided\n")
    assert "✅" not in answer.out
    needed = re.search(r"Measured too little: 1 block .*; needs at least (\d+) blocks", answer.out)
    assert needed is not None
    # The reason is also on stderr, because readers of a CI log look at its end.
    assert breakable(needed[0]) in answer.err
    assert "--budget " in answer.err.partition("hint: ")[2]
    shortage = json.loads((tmp_path / "undecided.json").read_text())["gate"]["shortage"]
    assert (shortage["undecided"], shortage["blocks"]) == (1, 1)
    answer = gate("--baseline", "fast", "--fail-undecided", *one_block)
    assert answer.status == 1
    assert answer.out.startswith("## Equipoise gate: ❌ fails: undecided\n")
    assert "❔ undecided" in answer.out


def test_the_default_candidate_is_the_working_tree_with_its_changes(
    gate: Gate, project: MadeRepository
) -> None:
    project.git("checkout", "--quiet", "fast")
    project.write("source", f"#!/bin/sh\n{SLOW}\n")
    project.write("left\x1b[31m out", "")
    answer = gate("--baseline", "fast", *BUILT, "--", "./bench")
    assert answer.status == 1
    assert "the working tree (" in answer.out
    assert "with uncommitted changes" in answer.out
    assert "neither revision has these untracked files: " in answer.out
    assert "\x1b" not in answer.out


def test_with_merge_base_later_commits_of_the_baseline_do_not_count(
    gate: Gate, project: MadeRepository
) -> None:
    left = project.git("rev-parse", "slow").strip()
    project.git("checkout", "--quiet", "-b", "feature")
    project.write("feature", "")
    project.commit()
    project.git("checkout", "--quiet", "main")
    project.write("source", f"#!/bin/sh\n{FAST}\n")
    project.commit()
    project.git("checkout", "--quiet", "feature")
    words = ("--merge-base", *BUILT, "--blocks", "1", "--json", "-", "--", "./bench")
    result = document(gate("--baseline", "main", *words))
    baseline = {"typed_name": "the fork point from main", "commit": left, "uncommitted": False}
    assert result["gate"]["baseline"] == baseline
    assert shlex.split(result["run"]["command_line"])[2:4] == ["--baseline", left]


def test_a_warning_names_changes_in_submodules_as_left_out(
    gate: Gate, project: MadeRepository, tmp_path: Path
) -> None:
    library = repository(tmp_path / "library")
    library.write("part", "")
    library.commit()
    allowed = ("-c", "protocol.file.allow=always")
    project.git(*allowed, "submodule", "--quiet", "add", str(library.path), "lib\x1b[31m")
    project.commit()
    project.write("lib\x1b[31m/part", "changed")
    answer = gate("--baseline", "HEAD", "--blocks", "1", "--warmup", "0", "--", "true")
    assert answer.status == 0
    assert "neither revision has the changes in these submodules: lib" in answer.out
    assert "\x1b" not in answer.out


def test_the_document_has_the_gate_and_the_ledger_reproduces_it(
    gate: Gate, project: MadeRepository
) -> None:
    words = ("--baseline", "fast", *BUILT, "--json", "-", "--", "./bench")
    result = document(gate(*words))
    verdict = result["gate"]
    assert verdict["passed"] is False
    assert verdict["baseline"]["typed_name"] == "fast"
    assert verdict["baseline"]["commit"] == project.git("rev-parse", "fast").strip()
    (row,) = verdict["rows"]
    assert row["outcome"] == "slower"
    assert row["ratio_ci"][0] > 1 + verdict["min_effect"] / 100
    search = shlex.split(verdict["bisect_lines"]["./bench"])
    assert search[:4] == ["equipoise", "bisect", "--good", verdict["baseline"]["commit"]]
    assert search[-2:] == ["--", "./bench"]
    folders = [Path(condition["command"][0]).parent for condition in result["conditions"]]
    assert len(str(folders[0])) == len(str(folders[1]))
    assert folders[0] != folders[1]
    repeated = subprocess.run(
        [*ENTRY, "show", "last", "--json", "-"], cwd=project.path, capture_output=True, check=True
    )
    assert json.loads(repeated.stdout)["gate"] == verdict


def test_its_command_line_runs_it_again(gate: Gate) -> None:
    quick = ("--build", "make -s", "--blocks", "2", "--json", "-")
    first = document(gate("--baseline", "fast", *quick, "--", "./bench"))
    words = shlex.split(first["run"]["command_line"])
    assert words[:4] == ["equipoise", "gate", "--baseline", first["gate"]["baseline"]["commit"]]
    repeated = document(gate(*words[2:4], "--json", "-", *words[4:]))
    assert repeated["run"]["command_line"] == first["run"]["command_line"]
    assert str(repeated["run"]["seed"]) in words


def test_builds_are_kept_for_the_next_gate(
    gate: Gate, project: MadeRepository, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    line = 'make -s; echo built >> "$LOG"'
    words = ("--build", line, "--blocks", "1", "--warmup", "0", "--", "./bench")
    for candidate, builds in (("slow", 2), ("slow", 2), ("fast", 2)):
        answer = gate("--baseline", "fast", "--candidate", candidate, *words, LOG=str(log))
        assert answer.status == 0, answer
        assert log.read_text().count("built") == builds
    project.write("source", f"#!/bin/sh\n{FAST} # changed\n")
    gate("--baseline", "fast", *words, LOG=str(log))
    assert log.read_text().count("built") == 3


def test_several_benchmarks_are_judged_together(gate: Gate) -> None:
    name = "</td>|`<script>"
    benches = ("--bench", f"{name}=./bench", "--bench", "same=sleep 0.002")
    answer = gate("--baseline", "fast", *BUILT, *benches)
    assert answer.status == 1, answer
    assert "1 of 2 benchmarks is slower by more than 2 %" in breakable(answer.out)
    (row,) = [line for line in answer.out.splitlines() if line.endswith("❌ slower |")]
    assert row.startswith(r"| &lt;/td&gt;\|\`&lt;script&gt; | ")
    assert row.endswith("❌ slower |")


def test_a_suite_is_a_file_and_may_have_the_build_line(gate: Gate, project: MadeRepository) -> None:
    project.write(
        "suite.toml", 'build = "make -s"\n[benchmarks]\nsleeps = "./bench"\nlists = ["ls", "/"]\n'
    )
    words = ("--baseline", "fast", "--suite", "suite.toml", *SOON, "--json", "-")
    result = document(gate(*words))
    outcomes = {row["benchmark"]: row["outcome"] for row in result["gate"]["rows"]}
    assert outcomes.keys() == {"sleeps", "lists"}
    assert outcomes["sleeps"] == "slower"
    levels = [condition["levels"]["benchmark"] for condition in result["conditions"]]
    assert levels == ["sleeps", "sleeps", "lists", "lists"]


def test_the_summary_goes_to_a_file_and_is_appended_to_the_job_summary(
    gate: Gate, tmp_path: Path
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n")
    short = ("--blocks", "1", "--quiet", "--markdown", "../gate.md")
    words = ("--baseline", "slow", *BUILT, *short, "--", "./bench")
    answer = gate(*words, GITHUB_STEP_SUMMARY=str(step))
    assert (answer.status, answer.out) == (0, "")
    summary = (tmp_path / "gate.md").read_text()
    assert summary.startswith("## Equipoise gate: ❔ undecided")
    assert "before\n" + summary == step.read_text() + f"\n{COMMENT_MARK}\n"
    answer = gate(*words, GITHUB_STEP_SUMMARY=str(tmp_path))
    assert answer.status == 0
    assert "cannot append to GITHUB_STEP_SUMMARY" in answer.err


def test_a_failed_build_is_reported_with_the_end_of_its_output(gate: Gate) -> None:
    line = 'echo first; echo "no such thing" >&2; exit 4'
    answer = gate("--baseline", "fast", "--build", line, "--", "./bench")
    assert answer.status == 3
    assert answer.out == ""
    assert answer.err.startswith("equipoise: the baseline fast (")
    assert "cannot be built: exit status 4 of the line `echo first" in answer.err
    assert "its output: first / no such thing" in answer.err
    assert answer.err.count("\n") == 2


def test_a_failed_benchmark_gives_no_verdict(gate: Gate) -> None:
    answer = gate("--baseline", "fast", "--", "sh", "-c", "echo why >&2; exit 5")
    assert answer.status == 3
    assert "failed: exit status 5; stderr: why" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--baseline", "nowhere", "--", "true"), "--baseline nowhere: there is no such commit"),
        (("--baseline=--help", "--", "true"), "--baseline --help: there is no such commit"),
        (("--baseline", "fast", "--candidate", "$(touch x)", "--", "true"), "no such commit"),
        (("--baseline", "fast"), "there is no suite of asv, cargo, "),
        (
            ("--baseline", "fast", "--bench", "a=b", "--", "true"),
            "a gate needs exactly one of --bench",
        ),
        (("--baseline", "fast", "--bench", "nothing"), "is not of the form NAME=CMD"),
        (("--baseline", "fast", "--bench", "a=b", "--bench", "a=c"), "two benchmarks are called"),
        (("--baseline", "fast", "--suite", "no.toml"), "cannot read no.toml: no such file"),
        (("--baseline", "fast", "--", "./bench"), "has no program ./bench"),
        (("--baseline", "fast", "--", "no-such-program"), "there is no program"),
        (("--baseline", "fast", "--markdown", "no/where", "--", "true"), "there is no folder"),
    ],
)
def test_unusable_input_is_reported_in_two_lines(
    gate: Gate, project: MadeRepository, words: tuple[str, ...], message: str
) -> None:
    answer = gate(*words)
    assert answer.status == 2
    assert answer.out == ""
    assert message in answer.err
    assert "  hint: " in answer.err
    assert answer.err.count("\n") == 2
    assert not (project.path / "x").exists()


def test_the_users_own_program_is_not_run_as_both_revisions(
    gate: Gate, project: MadeRepository
) -> None:
    project.write("bench", "#!/bin/sh\n", executable=True)
    answer = gate("--baseline", "fast", "--", str(project.path / "bench"))
    assert answer.status == 2
    assert "is a program of your own working tree" in answer.err
    assert "./bench" in answer.err


def test_outside_of_a_repository_the_hint_says_where_to_run(
    equipoise: Equipoise, scratch: Path
) -> None:
    answer = equipoise("gate", "--baseline", "main", "--", "true")
    assert answer.status == 2
    assert "is not in a readable git working tree" in answer.err


def test_a_gate_in_a_folder_of_the_repository_runs_in_that_folder(
    run_in: RunIn, project: MadeRepository
) -> None:
    project.write("inside/check", "#!/bin/sh\ntest -f beside\n", executable=True)
    project.write("inside/beside", "")
    project.commit()
    inside, words = project.path / "inside", ("--blocks", "1", "--", "./check")
    answer = run_in(inside, "gate", "--baseline", "HEAD", *words)
    assert answer.status == 0
    answer = run_in(inside, "gate", "--baseline", "fast", *words)
    assert answer.status == 2
    assert "has no folder inside" in answer.err


FOR_EVER = "sleep 300 & touch {begun}; wait"


def gate_that_builds(project: MadeRepository) -> subprocess.Popen[bytes]:
    """A gate whose build has begun."""
    return begun_gate(project, FOR_EVER, "./bench")


def gate_that_measures(project: MadeRepository) -> subprocess.Popen[bytes]:
    """A gate whose first trial has begun."""
    return begun_gate(project, "make -s", f"sh -c {shlex.quote(FOR_EVER)}")


def begun_gate(project: MadeRepository, build: str, benchmark: str) -> subprocess.Popen[bytes]:
    """A gate once one of both lines has made the file that it calls ``begun``."""
    begun = project.path.parent / "begun"
    build, benchmark = (line.format(begun=begun) for line in (build, benchmark))
    started = subprocess.Popen(
        [*ENTRY, "gate", "--baseline", "fast", "--build", build, "--", *shlex.split(benchmark)],
        cwd=project.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not begun.exists():
        assert started.poll() is None
        time.sleep(0.02)
    return started


def running_builds(project: MadeRepository) -> list[psutil.Process]:
    """Return the processes that still run in the builds of a test's gates."""
    kept = project.path.parent / "builds"
    processes = []
    for process in psutil.process_iter():
        try:
            inside = process.environ().get("EQUIPOISE_BUILD", "").startswith(str(kept))
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
        if inside and process.status() != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes


def test_an_interrupted_gate_takes_its_build_with_it(project: MadeRepository) -> None:
    started = gate_that_builds(project)
    assert running_builds(project)
    started.send_signal(signal.SIGINT)
    assert started.wait(600) == 130
    assert running_builds(project) == []
    assert list((project.path.parent / "builds").glob("*/tree")) == []


def test_doctor_removes_the_leftovers_of_a_killed_gate(
    project: MadeRepository, scratch: Path
) -> None:
    started = gate_that_builds(project)
    started.kill()
    started.wait(600)
    (left,) = scratch.iterdir()
    (half,) = (project.path.parent / "builds").glob("*/tree/project/source")
    assert running_builds(project)
    cleared_by_the_doctor(project, left)
    assert running_builds(project) == []
    # An incomplete build is never used, and the next gate removes it.
    done = subprocess.run(
        [*ENTRY, "gate", "--baseline", "fast", "--build", "true", "--", "./none"],
        cwd=project.path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert not half.exists()


def test_a_gate_that_is_killed_while_it_measures_leaves_no_trial_and_no_worktree(
    project: MadeRepository, scratch: Path
) -> None:
    started = gate_that_measures(project)
    trials = psutil.Process(started.pid).children(recursive=True)
    # The launcher, the trial and what that waits for.
    assert len(trials) >= 3
    started.kill()
    started.wait(600)
    _, alive = psutil.wait_procs(trials, timeout=600)
    assert alive == []
    cleared_by_the_doctor(project, next(scratch.iterdir()))


def cleared_by_the_doctor(project: MadeRepository, left: Path) -> None:
    """Let the doctor name the leftovers, and check that disk and repository lose them."""
    done = finished([*ENTRY, "doctor"], cwd=project.path, check=True)
    assert str(left) in done.stderr
    assert not left.exists()
    # The repository has no reference to it.
    assert project.git("worktree", "list").count("\n") == 1
    assert project.git("status", "--porcelain") == ""
