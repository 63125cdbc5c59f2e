"""The action and the examples for CI: they parse, and what they run exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from equipoise.cli.site import command as site
from equipoise.kinds.gate.command import command
from equipoise.kinds.gate.comment import command as comment
from equipoise.kinds.history.command import command as history
from equipoise.revisions.benchmarks import read_suite
from packages.equipoise.tests.repositories import repository

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples" / "ci"
ACTION = ROOT / "action.yml"
STAND_IN = '#!/bin/sh\nprintf "%s\\0" "$@" > "$SAID"\ntouch equipoise-history.md\n'
USUAL = {
    "FAIL_UNDECIDED": "false",
    "BASE_REF": "",
    "BEFORE": "",
    "DEFAULT_BRANCH": "main",
    "BASELINE": "main",
    "MERGE_BASE": "false",
    "CANDIDATE": "HEAD",
    "BUILD": "",
    "KIND": "",
    "SUITE": "",
    "COMMAND": "./bench",
    "METRICS": "",
    "MIN_EFFECT": "2",
    "BUDGET": "120",
    "SLICE": "",
}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def step_named(name: str) -> Any:
    (step,) = [one for one in loaded(ACTION)["runs"]["steps"] if one.get("name") == name]
    return step


def gate_step() -> Any:
    return step_named("Gate")


def options_of(words: list[str]) -> dict[str, Any]:
    """What the command line makes of the words; it fails on an option that there is not."""
    assert words[0] == "gate"
    return command.make_context("gate", words[1:]).params


def history_options(words: list[str]) -> dict[str, Any]:
    """What the command line makes of the words; it fails on an option that there is not."""
    assert words[0] == "history"
    return history.make_context("history", words[1:]).params


def gated(tmp_path: Path, **inputs: str) -> list[str]:
    """The words that the step of the gate gives to `equipoise`."""
    return said_by(gate_step(), tmp_path, inputs)


def said_by(
    step: Any, tmp_path: Path, inputs: Mapping[str, str], folder: Path | None = None
) -> list[str]:
    """The words that a step of the action gives to `equipoise`, a stand-in."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    stand_in = home / "bin" / "equipoise"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    python = home / "bin" / "python"
    python.unlink(missing_ok=True)
    python.symlink_to(sys.executable)
    said = tmp_path / "said"
    subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env={
            **os.environ,
            **USUAL,
            **inputs,
            "EQUIPOISE_HOME": str(home),
            "SAID": str(said),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        },
        cwd=folder or tmp_path,
        check=True,
        timeout=600,
    )
    return said.read_text().split("\0")[:-1]


def test_the_site_of_the_example_is_a_command_line() -> None:
    steps = loaded(EXAMPLES / "github-site.yml")["jobs"]["site"]["steps"]
    (line,) = [step["run"] for step in steps if "equipoise site" in step.get("run", "")]
    options = site.make_context("site", shlex.split(line)[2:]).params
    (pages,) = [step["with"] for step in steps if "upload-pages" in step.get("uses", "")]
    assert str(options["folder"]) == pages["path"]


def test_the_action_gives_every_input_to_the_gate(tmp_path: Path) -> None:
    options = options_of(gated(tmp_path, BUILD="make all", COMMAND="./bench 'two words'"))
    assert options["baseline"] == "main"
    assert options["candidate"] == "HEAD"
    assert options["build"] == "make all"
    assert options["argv"] == ("./bench", "two words")
    assert (options["min_effect"], options["budget"]) == (2.0, 120.0)
    options = options_of(gated(tmp_path, COMMAND="", KIND="go"))
    assert (options["kind"], options["argv"], options["build"]) == ("go", (), None)
    options = options_of(gated(tmp_path, COMMAND="", SUITE="some suite.toml"))
    assert str(options["suite"]) == "some suite.toml"
    assert not options["merge_base"]
    assert not options["fail_undecided"]
    assert options_of(gated(tmp_path, FAIL_UNDECIDED="true"))["fail_undecided"]
    options = options_of(gated(tmp_path, MERGE_BASE="true", METRICS="cpu_s"))
    assert (options["merge_base"], options["metrics"]) == (True, "cpu_s")


def test_the_action_gives_its_inputs_to_the_history(tmp_path: Path) -> None:
    inputs = {"FROM": "v1.0", "NEW": "true", "RUNNER": "github Linux X64", "BUILD": "make all"}
    options = history_options(said_by(step_named("History"), tmp_path, inputs))
    assert (options["from_revision"], options["to_revision"], options["only_new"]) == (
        "v1.0",
        "HEAD",
        True,
    )
    assert (options["host"], options["build"]) == ("github Linux X64", "make all")
    assert (options["argv"], options["budget"]) == (("./bench",), 120.0)
    assert str(options["report_file"]) == "equipoise-history.md"
    suite = {**inputs, "COMMAND": "", "SUITE": "some suite.toml"}
    options = history_options(said_by(step_named("History"), tmp_path, suite))
    assert (str(options["suite"]), options["argv"]) == ("some suite.toml", ())
    hostile = "$(touch ran) `touch ran`; touch ran"
    for name in ("FROM", "RUNNER", "BUILD", "SUITE", "METRICS"):
        words = said_by(step_named("History"), tmp_path, {**inputs, "NEW": "", name: hostile})
        assert hostile in words and "--new" not in words
    assert not (tmp_path / "ran").exists()


def test_every_input_of_the_action_is_used_and_reaches_a_shell_by_the_environment() -> None:
    action = loaded(ACTION)
    steps = action["runs"]["steps"]
    shell_steps = [step for step in steps if "run" in step]
    assert not [step["name"] for step in shell_steps if "${{" in step["run"]]
    for step in shell_steps[1:]:
        assert step["working-directory"] == "${{ inputs.working-directory }}"
    text = json.dumps(steps)
    assert not [name for name in action["inputs"] if f"inputs.{name}" not in text]
    assert all(one["description"] for one in action["inputs"].values())
    own = {"EQUIPOISE_HOME", "EQUIPOISE_BUILDS_GIB"}
    assert gate_step()["env"].keys() == USUAL.keys() | own


@pytest.mark.parametrize(("file", "job"), [("github", "gate"), ("github-history", "history")])
def test_the_workflow_gives_the_action_inputs_that_it_has(file: str, job: str) -> None:
    workflow = loaded(EXAMPLES / f"{file}.yml")
    steps = workflow["jobs"][job]["steps"]
    _, source = steps[:2]
    (ours,) = (one for one in steps if one.get("uses", "").startswith("./"))
    assert ours["uses"] == f"./{source['with']['path']}"
    assert ours["with"].keys() <= loaded(ACTION)["inputs"].keys()


def test_the_action_s_own_steps_gate_a_repository_and_find_the_commit_that_made_it_slower(
    tmp_path: Path,
) -> None:
    made = repository(tmp_path / "project")
    made.write("bench", "#!/bin/sh\nsleep 0.002\n", executable=True)
    made.commit()
    # As actions/checkout leaves it.
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    made.write("note", "innocent\n")
    made.commit("an innocent commit")
    made.write("bench", "#!/bin/sh\nsleep 0.02\n", executable=True)
    made.commit("a slow commit")
    inputs = loaded(ACTION)["inputs"]
    given = {"baseline": "origin/main", "command": "./bench"}
    names = {name: name.replace("-", "_").upper() for name in inputs}
    environment = {
        names[name]: given.get(name, str(one["default"])) for name, one in inputs.items()
    }
    summary = tmp_path / "summary.md"

    def status_of(step: Any) -> int:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={
                **os.environ,
                **environment,
                **dict.fromkeys(("BASE_REF", "BEFORE", "DEFAULT_BRANCH"), ""),
                "EQUIPOISE_HOME": str(Path(sys.executable).parent.parent),
                "TMPDIR": str(tmp_path),
                "GITHUB_STEP_SUMMARY": str(summary),
            },
            cwd=made.path,
            check=False,
        ).returncode

    search = step_named("Bisect")
    assert status_of(search) == 0, "a gate that could not be run leaves nothing to search"
    assert not summary.exists()
    assert status_of(gate_step()) == 1
    comment = (made.path / "equipoise-gate.md").read_text()
    assert "❌ slower" in comment
    assert comment.startswith(summary.read_text())
    assert json.loads((made.path / "equipoise-gate.json").read_text())["gate"]["passed"] is False
    assert status_of(search) == 0
    answer = (made.path / "equipoise-bisect.md").read_text()
    assert "a slow commit" in answer
    assert summary.read_text().endswith(answer)


@pytest.mark.parametrize("status", [0, 74])
def test_the_action_comments_on_the_result_of_the_gate(status: int, tmp_path: Path) -> None:
    step = step_named("Comment")
    assert "${{" not in step["run"]
    home, said = tmp_path / "home", tmp_path / "said"
    (home / "bin").mkdir(parents=True)
    stand_in = home / "bin" / "equipoise"
    stand_in.write_text(f"#!/bin/sh\necho \"$@\" > '{said}'\nexit {status}\n")
    stand_in.chmod(0o755)
    line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environment = {**os.environ, "EQUIPOISE_HOME": str(home)}
    # A gate that could not be run has written nothing.
    subprocess.run(line, env=environment, cwd=tmp_path, check=True)
    assert not said.exists()
    (tmp_path / "equipoise-gate.json").write_text("{}")
    # A comment that cannot be written does not fail the job.
    done = subprocess.run(line, env=environment, cwd=tmp_path, check=True, capture_output=True)
    program, *words = ["equipoise", *said.read_text().split()]
    assert comment.make_context(program, words[1:]).params["github"] is True
    assert words[0] == "comment"
    assert (b"::warning::" in done.stdout) == (status != 0)


def test_the_second_job_runs_a_command_line_of_ours() -> None:
    (job,) = loaded(EXAMPLES / "github-forks.yml")["jobs"].values()
    run = job["steps"][-1]["run"]
    assert "${{" not in run
    words = shlex.split(run)
    assert words[1] == "comment"
    assert comment.make_context("comment", words[2:]).params["file"] == Path("equipoise-gate.json")


def test_the_line_of_gitlab_is_a_command_line_of_ours() -> None:
    job = loaded(EXAMPLES / "gitlab-ci.yml")["performance"]
    (line,) = job["script"]
    program, *words = shlex.split(line)
    assert program == "equipoise"
    options = options_of(words)
    assert options["argv"] == ("./bench", "--size", "1000")
    assert job["variables"]["GIT_DEPTH"] == "0"


def test_the_jobs_of_three_runners_write_the_slices_that_the_last_job_joins() -> None:
    github = loaded(EXAMPLES / "github-runners.yml")["jobs"]
    runs = [step.get("run", "") for job in github.values() for step in job["steps"]]
    assert not [run for run in runs if "${{" in run]
    lines = [shlex.split(run.replace("\\\n", ""))[1:] for run in runs if " gate " in run]
    gitlab = loaded(EXAMPLES / "gitlab-runners.yml")
    lines += (shlex.split(gitlab[job]["script"][0])[1:] for job in ("slice", "performance"))
    for slice_words, join_words in zip(lines[::2], lines[1::2], strict=True):
        assert options_of(slice_words)["argv"] == ("./bench", "--size", "1000")
        written = Path(options_of(slice_words)["slice_file"]).name
        joined = options_of(join_words)
        (pattern,) = joined["argv"]
        assert joined["join"]
        assert fnmatch(written, Path(pattern).name)
    assert len(github["slice"]["strategy"]["matrix"]["runner"]) == gitlab["slice"]["parallel"] == 3
    assert github["gate"]["needs"] == gitlab["performance"]["needs"][0] == "slice"
    upload = github["slice"]["steps"][-1]["with"]
    download = github["gate"]["steps"][0]["with"]
    assert fnmatch(upload["name"], download["pattern"])
    assert download["path"] == "slices"
    assert gitlab["slice"]["artifacts"]["paths"] == list(options_of(lines[3])["argv"])


def test_the_suite_is_one() -> None:
    suite = read_suite(EXAMPLES / "suite.toml")
    assert suite.build == "make"
    assert [one.name for one in suite.benchmarks] == ["parse", "render"]


@pytest.mark.parametrize(
    ("inputs", "on_branch", "baseline"),
    [
        ({"BASE_REF": "release"}, True, "origin/release"),
        ({"BEFORE": "{first}"}, True, "{first}"),
        ({"BEFORE": "0" * 40}, True, "origin/main"),
        ({}, True, "origin/main"),
        ({}, False, "HEAD~1"),
        ({"BEFORE": "1" * 40}, False, "HEAD~1"),
        ({"BASELINE": "v1", "BASE_REF": "release"}, True, "v1"),
    ],
    ids=["pull request", "push", "new branch", "schedule", "schedule on main", "force", "given"],
)
def test_the_baseline_of_the_action_fits_the_event(
    inputs: dict[str, str], on_branch: bool, baseline: str, tmp_path: Path
) -> None:
    made = repository(tmp_path / "project")
    made.write("file", "1\n")
    made.commit()
    made.write("file", "2\n")
    made.commit()
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    if on_branch:
        made.write("file", "3\n")
        made.commit()
    first = made.git("rev-list", "--max-parents=0", "HEAD").strip()
    given = {"BASELINE": "", **{key: value.format(first=first) for key, value in inputs.items()}}
    words = said_by(gate_step(), tmp_path, given, made.path)
    assert options_of(words)["baseline"] == baseline.format(first=first)


def test_every_action_of_others_is_pinned_by_its_hash() -> None:
    pages = [ACTION, *EXAMPLES.glob("*.yml"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    used = [
        line.partition("uses:")[2].strip()
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.strip().removeprefix("- ").startswith("uses:")
    ]
    others = [one for one in used if not one.startswith("./")]
    assert others
    assert [
        one for one in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", one)
    ] == []
