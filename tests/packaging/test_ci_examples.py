"""The action and the examples for CI: they parse, and what they run exists."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from equipoise.cli.gate import command
from equipoise.studies.suite import read_suite

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples" / "ci"
ACTION = ROOT / "action.yml"
STAND_IN = '#!/bin/sh\nprintf "%s\\0" "$@" > "$SAID"\n'
USUAL = {
    "BASELINE": "main",
    "CANDIDATE": "HEAD",
    "BUILD": "",
    "KIND": "",
    "SUITE": "",
    "COMMAND": "./bench",
    "MIN_EFFECT": "2",
    "BUDGET": "120",
}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def gate_step() -> Any:
    (step,) = [one for one in loaded(ACTION)["runs"]["steps"] if one.get("name") == "Gate"]
    return step


def options_of(words: list[str]) -> dict[str, Any]:
    """What the command line makes of the words; it fails on an option that there is not."""
    assert words[0] == "gate"
    return command.make_context("gate", words[1:]).params


def gated(tmp_path: Path, **inputs: str) -> list[str]:
    """The words that the action's step gives to `equipoise`, a stand-in."""
    stand_in = tmp_path / "equipoise"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    said = tmp_path / "said"
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", gate_step()["run"]],
        env={**os.environ, **USUAL, **inputs, "PATH": path, "SAID": str(said)},
        cwd=tmp_path,
        check=True,
        timeout=60,
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
    assert str(options["suite_file"]) == "some suite.toml"


@pytest.mark.parametrize("name", list(USUAL))
def test_no_input_of_the_action_is_run_by_a_shell(name: str, tmp_path: Path) -> None:
    hostile = "$(touch ran) `touch ran`; touch ran"
    words = gated(tmp_path, **{name: hostile})
    assert not (tmp_path / "ran").exists()
    assert hostile in words or " ".join(words).endswith(hostile)


def test_every_input_of_the_action_reaches_its_step_by_the_environment() -> None:
    action, step = loaded(ACTION), gate_step()
    assert "${{" not in step["run"]
    used = {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert used == set(step["env"].values())
    assert step["env"].keys() == USUAL.keys()
    assert all(one["description"] for one in action["inputs"].values())


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    workflow = loaded(EXAMPLES / "github.yml")
    steps = workflow["jobs"]["gate"]["steps"]
    checkout, ours, _ = steps
    assert checkout["with"]["fetch-depth"] == 0
    assert ours["with"].keys() <= loaded(ACTION)["inputs"].keys()


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
