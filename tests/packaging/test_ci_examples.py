"""The action and the examples for CI: they parse, and what they run exists."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from equipoise.cli.gate import MARK, command
from equipoise.cli.history import command as history
from equipoise.revisions.benchmarks import read_suite
from tests.repositories import repository

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples" / "ci"
ACTION = ROOT / "action.yml"
STAND_IN = '#!/bin/sh\nprintf "%s\\0" "$@" > "$SAID"\ntouch equipoise-history.md\n'
USUAL = {
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
    return said_by(gate_step(), tmp_path, **inputs)


def said_by(step: Any, tmp_path: Path, **inputs: str) -> list[str]:
    """The words that a step of the action gives to `equipoise`, a stand-in."""
    stand_in = tmp_path / "equipoise"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    said = tmp_path / "said"
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env={
            **os.environ,
            **USUAL,
            **inputs,
            "PATH": path,
            "SAID": str(said),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        },
        cwd=tmp_path,
        check=True,
        timeout=600,
    )
    return said.read_text().split("\0")[:-1]


def test_the_action_gives_every_input_to_the_gate(tmp_path: Path) -> None:
    options = options_of(gated(tmp_path, BUILD="make all", COMMAND="./bench 'two words'"))
    assert options["baseline"] == "main"
    assert options["candidate"] == "HEAD"
    assert options["build"] == "make all"
    assert options["words"] == ("./bench", "two words")
    assert (options["min_effect"], options["budget"]) == (2.0, 120.0)
    options = options_of(gated(tmp_path, COMMAND="", KIND="go"))
    assert (options["kind"], options["words"], options["build"]) == ("go", (), None)
    options = options_of(gated(tmp_path, COMMAND="", SUITE="some suite.toml"))
    assert str(options["suite"]) == "some suite.toml"
    assert not options["merge_base"]
    options = options_of(gated(tmp_path, MERGE_BASE="true", METRICS="cpu_s"))
    assert (options["merge_base"], options["metrics"]) == (True, "cpu_s")


@pytest.mark.parametrize("name", [name for name in USUAL if name != "MERGE_BASE"])
def test_no_input_of_the_action_is_run_by_a_shell(name: str, tmp_path: Path) -> None:
    hostile = "$(touch ran) `touch ran`; touch ran"
    words = gated(tmp_path, **{name: hostile})
    assert not (tmp_path / "ran").exists()
    assert hostile in words or " ".join(words).endswith(hostile)


def test_the_action_gives_its_inputs_to_the_history(tmp_path: Path) -> None:
    inputs = {"FROM": "v1.0", "NEW": "true", "RUNNER": "github Linux X64", "BUILD": "make all"}
    options = history_options(said_by(step_named("History"), tmp_path, **inputs))
    assert (options["first"], options["last"], options["only_new"]) == ("v1.0", "HEAD", True)
    assert (options["host"], options["build"]) == ("github Linux X64", "make all")
    assert (options["words"], options["budget"]) == (("./bench",), 120.0)
    assert str(options["report_file"]) == "equipoise-history.md"
    suite = {**inputs, "COMMAND": "", "SUITE": "some suite.toml"}
    options = history_options(said_by(step_named("History"), tmp_path, **suite))
    assert (str(options["suite"]), options["words"]) == ("some suite.toml", ())
    hostile = "$(touch ran) `touch ran`; touch ran"
    for name in ("FROM", "RUNNER", "BUILD", "SUITE", "METRICS"):
        words = said_by(step_named("History"), tmp_path, **{**inputs, "NEW": "", name: hostile})
        assert hostile in words and "--new" not in words
    assert not (tmp_path / "ran").exists()


def test_every_input_of_the_action_reaches_its_step_by_the_environment() -> None:
    action, gate, search = loaded(ACTION), gate_step(), step_named("Bisect")
    night = step_named("History")
    assert "${{" not in gate["run"] + search["run"] + night["run"]
    used = {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert search["if"] == "failure() && inputs.bisect-on-failure == 'true'"
    assert gate["if"] == "inputs.history-from == ''"
    assert night["if"] == "inputs.history-from != ''"
    in_condition = {"${{ inputs.bisect-on-failure }}"}
    named = {*gate["env"].values(), *search["env"].values(), *night["env"].values()}
    of_runner = {night["env"]["RUNNER"]}
    assert used == (named - of_runner) | in_condition
    assert gate["env"].keys() == USUAL.keys()
    assert all(one["description"] for one in action["inputs"].values())


@pytest.mark.parametrize(("file", "job"), [("github", "gate"), ("github-history", "history")])
def test_the_workflow_gives_the_action_inputs_that_it_has(file: str, job: str) -> None:
    workflow = loaded(EXAMPLES / f"{file}.yml")
    steps = workflow["jobs"][job]["steps"]
    checkout, source = steps[:2]
    (ours,) = (one for one in steps if one.get("uses", "").startswith("./"))
    assert ours["uses"] == f"./{source['with']['path']}"
    assert checkout["with"]["fetch-depth"] == 0
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
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
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


GITHUB = """#!/bin/sh
printf '%s ' "$@" >> "$SAID"
echo >> "$SAID"
case "$*" in *--paginate*) cat "$FOUND";; esac
"""


@pytest.mark.parametrize("found", ["", "7\n9\n"])
def test_the_comment_of_an_earlier_run_is_replaced(found: str, tmp_path: Path) -> None:
    (step,) = [
        one
        for one in loaded(EXAMPLES / "github.yml")["jobs"]["gate"]["steps"]
        if one.get("name") == "Comment"
    ]
    assert "${{" not in step["run"]
    assert MARK in step["run"]
    stand_in, said, ids = tmp_path / "gh", tmp_path / "said", tmp_path / "ids"
    stand_in.write_text(GITHUB)
    stand_in.chmod(0o755)
    ids.write_text(found)
    line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_REPOSITORY": "ada/project",
        "NUMBER": "12",
        "SAID": str(said),
        "FOUND": str(ids),
    }
    # A gate that could not be run has written nothing.
    subprocess.run(line, env=environment, cwd=tmp_path, check=True)
    assert not said.exists()
    (tmp_path / "equipoise-gate.md").write_text("said")
    subprocess.run(line, env=environment, cwd=tmp_path, check=True)
    asked, told = said.read_text().splitlines()
    assert asked.startswith("api --paginate repos/ada/project/issues/12/comments --jq ")
    assert (
        told.split()
        == (
            "api --silent --method PATCH repos/ada/project/issues/comments/9 "
            "--field body=@equipoise-gate.md"
            if found
            else "pr comment 12 --body-file equipoise-gate.md"
        ).split()
    )


def test_the_line_of_gitlab_is_a_command_line_of_ours() -> None:
    job = loaded(EXAMPLES / "gitlab-ci.yml")["performance"]
    (line,) = job["script"]
    program, *words = shlex.split(line)
    assert program == "equipoise"
    options = options_of(words)
    assert options["words"] == ("./bench", "--size", "1000")
    assert job["variables"]["GIT_DEPTH"] == "0"


def test_the_suite_is_one() -> None:
    suite = read_suite(EXAMPLES / "suite.toml")
    assert suite.build == "make"
    assert [one.name for one in suite.benchmarks] == ["parse", "render"]
