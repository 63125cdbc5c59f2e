"""`equipoise bisect` from a repository to the commit that made a program slower."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from equipoise.kinds.bisect.judge import read_searches
from equipoise.kinds.bisect.terms import BisectPlan
from equipoise.ledger import open_for_reading
from equipoise.model.record import RunRecord
from equipoise.report.json_document import schema
from equipoise.revisions.terms import benchmarks_of
from packages.equipoise.tests.cli.conftest import ENTRY, Answer, RunIn
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

FAST, SLOW = "sleep 0.002", "sleep 0.03"
"""Far apart, so that a busy host cannot hide it for long."""
COUNT, CULPRIT = 8, 6
LOGGED = 'make -s && echo built >> "$LOG"'
BUILT = ("--build", LOGGED, "--budget", "300")
QUIET = ("--quiet", "--ledger", "../ledger.db")


@pytest.fixture
def project(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    """A program that sleeps, longer from the sixth of eight commits after the good one on."""
    project = repository(tmp_path / "project")
    project.write("Makefile", "bench: source\n\t@cp source bench && chmod +x bench\n")
    project.write(".gitignore", "bench\n")
    project.write("source", f"#!/bin/sh\n{FAST}\n")
    project.commit("the good one")
    project.git("tag", "good")
    for number in range(1, COUNT + 1):
        project.write("source", f"#!/bin/sh\n# {number}\n{SLOW if number >= CULPRIT else FAST}\n")
        project.commit(f"change {number}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return project


Bisect = Callable[..., Answer]


@pytest.fixture
def bisect(project: MadeRepository, run_in: RunIn) -> Bisect:
    """Run one command in the repository, `bisect` unless it is named."""

    def call(*words: str, command: str = "bisect") -> Answer:
        return run_in(project.path, command, *words)

    return call


def builds(project: MadeRepository) -> int:
    return (project.path.parent / "log").read_text().count("built")


def recorded(project: MadeRepository) -> RunRecord:
    with open_for_reading(project.path.parent / "ledger.db") as ledger:
        return ledger.read_run()


def terms(record: RunRecord) -> BisectPlan:
    assert isinstance(record.plan.terms, BisectPlan)
    return record.plan.terms


def culprits_of(record: RunRecord) -> list[str]:
    """Return the subjects of the commits that are named."""
    commits = terms(record).commits
    return [
        commits[step.last].subject
        for step in read_searches(record)[0].bisection.state().named_steps
    ]


def test_the_commit_is_named_and_the_repository_stays_as_it_was(
    bisect: Bisect, project: MadeRepository
) -> None:
    before = everything_in(project.path)
    words = (*BUILT, *QUIET, "--json", "../result.json", "--", "./bench")
    answer = bisect("--good", "good", *words)
    assert (answer.status, answer.err) == (0, "")
    record = recorded(project)
    result = json.loads((project.path.parent / "result.json").read_text())
    jsonschema.validate(result, schema())
    search = result["bisect"]
    assert search["verdict"] == "culprit"
    commit = project.git("rev-parse", f"HEAD~{COUNT - CULPRIT}").strip()
    assert [culprit["commit"] for culprit in search["culprits"]] == [commit]
    assert search["culprits"][0]["ratio_ci"][0] > 1.0
    assert len(search["candidates"]) == COUNT
    assert culprits_of(record) == [f"change {CULPRIT}"]
    assert everything_in(project.path) == before
    assert builds(project) < COUNT + 1
    folders = {Path(condition.command[0]).parent for condition in record.plan.conditions}
    assert len(folders) == COUNT + 1
    assert len({len(str(folder)) for folder in folders}) == 1
    # The next bisection and the gate reuse the builds.
    built = builds(project)
    short = ("--build", LOGGED, "--blocks", "1", *QUIET, "--", "./bench")
    assert bisect("--good", "good", *short).status == 0
    gate = bisect("--baseline", f"{commit}~1", "--candidate", commit, *short, command="gate")
    assert gate.status == 0
    assert builds(project) == built


def test_its_command_line_runs_it_again(bisect: Bisect, project: MadeRepository) -> None:
    words = ("--build", LOGGED, "--blocks", "1", "--likely", "source", *QUIET)
    bisect("--good", "good", "--bad", "HEAD~1", *words, "--", "./bench", "a b")
    first = recorded(project).plan
    again = list(first.command_line)
    assert again[:2] == ["equipoise", "bisect"]
    assert project.git("rev-parse", "HEAD~1").strip() in again
    assert bisect(*QUIET, *again[2:]).status == 0
    second = recorded(project).plan
    assert sorted(second.command_line) == sorted(again)
    assert (second.conditions, second.measure, second.stopping, second.judgement, second.seed) == (
        *(first.conditions, first.measure, first.stopping, first.judgement, first.seed),
    )
    assert set(terms(recorded(project)).prior) == {10.0}


def test_the_working_tree_can_be_the_culprit(bisect: Bisect, project: MadeRepository) -> None:
    project.git("checkout", "--quiet", f"HEAD~{COUNT - CULPRIT + 1}")
    project.write("source", f"#!/bin/sh\n{SLOW}\n")
    project.write("left over", "")
    before = everything_in(project.path)
    answer = bisect("--good", "good", *BUILT, *QUIET, "--", "./bench")
    assert answer.status == 0
    record = recorded(project)
    assert terms(record).commits[-1].uncommitted
    assert culprits_of(record) == ["the working tree, with its changes"]
    assert [warning.code for warning in record.warnings if warning.code == "untracked_files"]
    assert everything_in(project.path) == before


def test_a_culprit_among_commits_that_do_not_build_is_named_with_them(
    bisect: Bisect, project: MadeRepository
) -> None:
    line = (
        f'if grep -q "# {CULPRIT - 1}" source; then echo broken; exit 2; fi; {LOGGED}; '
        f'if grep -q "# {CULPRIT}" source; then rm bench; fi'
    )
    answer = bisect("--good", "good", "--build", line, "--budget", "300", *QUIET, "--", "./bench")
    assert answer.status == 0
    record = recorded(project)
    (step,) = read_searches(record)[0].bisection.state().named_steps
    assert (step.first, step.last) == (CULPRIT - 1, CULPRIT + 1)
    codes = {warning.code: warning.summary for warning in record.warnings}
    assert "cannot be built: exit status 2" in codes["not_built"]
    assert "could not be started" in codes["not_run"]


def test_a_search_that_is_killed_goes_on_where_it_was(
    bisect: Bisect, project: MadeRepository, scratch: Path
) -> None:
    before = everything_in(project.path)
    words = ("--good", "good", *BUILT, *QUIET, "--", "./bench")
    started = subprocess.Popen([*ENTRY, "bisect", *words], cwd=project.path)
    log = project.path.parent / "log"
    while not log.exists() or builds(project) < 4:
        assert started.poll() is None
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.wait(600)
    killed, built = recorded(project), builds(project)
    assert everything_in(project.path) == before
    answer = bisect("last", "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 0, answer
    record = recorded(project)
    assert record.id == killed.id
    assert record.trials[: len(killed.trials)] == killed.trials
    assert culprits_of(record) == [f"change {CULPRIT}"]
    # Only the build that was in progress runs again.
    assert builds(project) <= COUNT + 2
    assert builds(project) >= built
    assert everything_in(project.path) == before
    # The search has ended, so not even the repository is needed.
    project.path.rename(project.path.with_name("away"))
    (project.path / "elsewhere").mkdir(parents=True)
    answer = bisect("last", "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 0, answer
    assert recorded(project).trials == record.trials


def test_an_interrupted_search_takes_its_builds_with_it(project: MadeRepository) -> None:
    log = project.path.parent / "log"
    line = 'echo built >> "$LOG"; sleep 300 & wait'
    started = subprocess.Popen(
        [*ENTRY, "bisect", "--good", "good", "--build", line, "--quiet", "--", "./bench"],
        cwd=project.path,
        stderr=subprocess.DEVNULL,
    )
    # Both ends are built side by side.
    while not log.exists() or builds(project) < 2:
        assert started.poll() is None
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    assert started.wait(600) == 130
    assert list((project.path.parent / "builds").glob("*/tree")) == []


def test_the_branch_of_a_named_merge_is_searched(bisect: Bisect, project: MadeRepository) -> None:
    project.git("checkout", "--quiet", "-b", "side", "good")
    for number in range(3):
        project.write("source", f"#!/bin/sh\n# side {number}\n{SLOW if number else FAST}\n")
        project.commit(f"side {number}")
    project.git("checkout", "--quiet", "-B", "main", "good")
    project.write("note", "")
    project.commit("a note")
    project.git("merge", "--quiet", "-m", "a merge", "side")
    project.write("note", "more")
    project.commit("more")
    words = ("--report", "../page.md", *BUILT, *QUIET, "--", "./bench")
    assert bisect("--good", "good", *words).status == 0
    record = recorded(project)
    assert [commit.subject for commit in terms(record).commits][1:] == ["a note", "a merge", "more"]
    assert culprits_of(record) == ["a merge"]
    (branch,) = read_searches(record)[0].bisection.lines()[1:]
    every = terms(record).commits_with_branches
    assert [every[branch.commits[step.last]].subject for step in branch.state.named_steps] == [
        "side 1"
    ]
    page = (project.path.parent / "page.md").read_text()
    assert f"In the branch of {every[2].short}, " in page
    assert "(side 1) made it take" in page


def test_each_block_runs_programs_of_one_layout(bisect: Bisect, project: MadeRepository) -> None:
    # Programs that differ only in their layout, as a linker would make them.
    link = f"{LOGGED} && mkdir layouts && cp bench layouts/1 && cp bench layouts/2"
    words = ("--build", link, "--layouts", "2", "--budget", "300", *QUIET)
    answer = bisect("--good", "good", *words, "--", "./layouts/{layout}")
    assert answer.status == 0, answer.err
    record = recorded(project)
    assert culprits_of(record) == [f"change {CULPRIT}"]
    assert {draw.layout for draw in record.draws if draw.phase == "measured"} == {1, 2}
    # A program that has just been linked is warmed up in each layout.
    warmed = {
        (condition, draw.layout)
        for draw in record.draws
        if draw.phase == "warmup"
        for condition in draw.order
    }
    ran = {trial.condition for trial in record.trials}
    assert warmed == {(condition, layout) for condition in ran for layout in (1, 2)}
    assert "--layouts" in record.plan.command_line
    # The next search knows how far layouts move the program.
    short = ("--build", LOGGED, "--blocks", "1", *QUIET, "--", "./bench")
    assert bisect("--good", "good", *short).status == 0
    spread = terms(recorded(project)).layout_spread
    assert spread is not None
    assert spread.run == record.id


def test_another_toolchain_does_not_go_on_with_a_search(
    bisect: Bisect, project: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--good", "good", "--build", LOGGED, "--blocks", "1", *QUIET)
    bisect(*words, "--", "./bench")
    monkeypatch.setenv("CFLAGS", "-O3")
    answer = bisect("last", "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 2
    assert "the toolchain or the environment of builds has changed" in answer.err
    assert "bisect again: equipoise bisect --good" in answer.err


def test_a_working_tree_that_has_changed_does_not_go_on_with_a_search(
    bisect: Bisect, project: MadeRepository
) -> None:
    project.write("source", f"#!/bin/sh\n# changed\n{SLOW}\n")
    bisect("--good", "good", "--build", LOGGED, "--blocks", "1", *QUIET, "--", "./bench")
    project.write("source", f"#!/bin/sh\n# changed again\n{SLOW}\n")
    answer = bisect("last", "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 2
    assert "the working tree has changed since the bisection began" in answer.err
    project.path.rename(project.path.with_name("away"))
    project.path.mkdir()
    answer = bisect("last", "--quiet", "--ledger", "../ledger.db", command="resume")
    assert answer.status == 2
    assert "of the bisection does not exist any more" in answer.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--good", "good"), 2, "a bisection needs exactly one of --bench"),
        (("--good", "nowhere", "--", "true"), 2, "--good nowhere: there is no such commit"),
        (("--good", "HEAD", "--bad", "good", "--", "true"), 2, "is older than good"),
        (("--good", "HEAD", "--", "true"), 2, "the same commit"),
        (("--good", "good", "--likely", "nothing", "--", "true"), 2, "no commit between"),
        (("--good", "good", "--metrics", "a,b", "--", "true"), 2, "uses one metric"),
        (("--good", "good", "--kind", "google-benchmark", "--", "true"), 2, "lists no benchmark"),
        (("--good", "good", "--", "./bench"), 2, "the good revision good ("),
        (("--good", "good", "--", "./{layout}"), 2, "is the number of a memory layout"),
        (("--good", "good", "--layouts", "1", "--", "true"), 2, "layouts"),
        (("--good", "good", "--build", "exit 3", "--", "true"), 3, "the good revision: commit"),
        (("--good", "good", "--", "false"), 3, "failed: exit status 1"),
        (("--", "true"), 2, "Missing option '--good'"),
    ],
)
def test_unusable_input_is_reported_in_two_lines(
    bisect: Bisect, words: tuple[str, ...], status: int, message: str
) -> None:
    answer = bisect(*words)
    assert answer.status == status, answer
    assert answer.out == ""
    assert message in answer.err
    assert "  hint: " in answer.err
    assert answer.err.count("\n") == 2


def test_a_benchmark_of_pytest_is_chosen_by_its_name(
    bisect: Bisect, project: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other installed plugins need not be loaded in each run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "equipoise.helpers.pytest_plugin")
    project.git("checkout", "--quiet", "good")
    project.write(
        "test_speed.py",
        "import time\n\n"
        "def test_one(equipoise_benchmark):\n    equipoise_benchmark(time.sleep, 0.001)\n\n"
        "def test_two(equipoise_benchmark):\n    equipoise_benchmark(time.sleep, 0.001)\n",
    )
    project.commit("benchmarks")
    project.git("tag", "--force", "good")
    project.write("note", "")
    project.commit("a note")
    words = ("--good", "good", "--kind", "pytest", "--blocks", "1", "--warmup", "0", *QUIET)
    command = ("--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    answer = bisect(*words, *command)
    assert answer.status == 0, answer
    both = [benchmark.name for benchmark in benchmarks_of(recorded(project).plan)]
    assert [name.rpartition("::")[2] for name in both] == ["test_one", "test_two"]
    answer = bisect(*words, "--metrics", both[1], *command)
    assert answer.status == 0, answer
    assert recorded(project).plan.judgement.primary_metric == f"{both[1]} time_s"
    assert terms(recorded(project)).benchmarks == ()


SUITE = """
build = 'make -s && echo built >> "$LOG"'
[benchmarks]
one = "./bench one"
two = "./bench two"
"""


def test_each_slow_benchmark_of_a_suite_is_bisected_in_one_search(
    bisect: Bisect, project: MadeRepository
) -> None:
    project.git("checkout", "--quiet", "good")
    for number in range(1, COUNT + 1):
        slow = [name for name, at in (("one", CULPRIT), ("two", 3)) if number >= at]
        times = f"case $1 in {'|'.join(slow) or '-'}) {SLOW};; *) {FAST};; esac"
        project.write("source", f"#!/bin/sh\n# {number}\n{times}\n")
        project.commit(f"change {number}")
    (project.path.parent / "suite.toml").write_text(SUITE)
    before = everything_in(project.path)
    # Remainders of a gap are compared until they are known within this.
    words = ("--suite", "../suite.toml", "--min-effect", "50", *QUIET)
    answer = bisect("--good", "good", *words, "--blocks", "12")
    assert (answer.status, answer.err) == (0, "")
    short = recorded(project)
    answer = bisect(
        *("last", "--quiet", "--ledger", "../ledger.db", "--json", "../result.json"),
        *("--blocks", "2000", "--budget", "300"),
        command="resume",
    )
    assert answer.status == 0, answer
    record = recorded(project)
    assert record.trials[: len(short.trials)] == short.trials
    result = json.loads((project.path.parent / "result.json").read_text())
    jsonschema.validate(result, schema())
    assert result["bisect"] is None
    commits = [commit.hash for commit in terms(record).commits]
    culprits = {
        search["benchmark"]: [culprit["commit"] for culprit in search["culprits"]]
        for search in result["bisects"]
    }
    assert culprits == {"one": [commits[CULPRIT]], "two": [commits[3]]}
    assert everything_in(project.path) == before
    assert builds(project) <= COUNT + 1
    assert "--suite" in record.plan.command_line


LISTS_TWO = """#!/bin/sh
case "$*" in
  *--benchmark_list_tests*^\\$) exit ;;
  *--benchmark_list_tests*) echo One; echo Two; exit ;;
esac
for word; do case $word in
  --benchmark_out=*) out=${word#*=} ;;
  --benchmark_filter=*) name=${word#*^}; name=${name%?} ;;
esac; done
echo '{"context": {}, "benchmarks": [{"name": "'$name'", "real_time": 5, "cpu_time": 4,
  "iterations": 3, "time_unit": "ns"}]}' > "$out"
"""


def test_each_benchmark_that_a_program_lists_is_searched_in_its_own_processes(
    bisect: Bisect, project: MadeRepository
) -> None:
    project.git("checkout", "--quiet", "good")
    project.write("bin/program", LISTS_TWO, executable=True)
    project.commit("benchmarks")
    project.git("tag", "--force", "good")
    project.write("note", "")
    project.commit("a note")
    words = ("--good", "good", "--kind", "google-benchmark", "--blocks", "1", *QUIET)
    answer = bisect(*words, "--", "bin/program")
    assert answer.status == 0, answer
    plan = recorded(project).plan
    result = [
        (benchmark.name, benchmark.metric, benchmark.command_index)
        for benchmark in benchmarks_of(plan)
    ]
    assert result == [("One", "time_s", 0), ("Two", "time_s", 1)]
    (draw,) = (draw for draw in recorded(project).draws if draw.phase == "measured")
    assert sorted(draw.order) == [0, 1, 2, 3]
    assert [set(draw.order[at : at + 2]) in ({0, 1}, {2, 3}) for at in (0, 2)] == [True, True]
    answer = bisect(*words, "--metrics", "Two", "--", "bin/program")
    assert answer.status == 0, answer
    assert recorded(project).plan.conditions[0].command[-1] == "--benchmark_filter=^Two$"
