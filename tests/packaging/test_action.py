"""The action, step by step as a runner runs it, in a fresh folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.kinds.gate.terms import COMMENT_MARK
from packages.equipoise.tests.kinds.gate.test_comment import (
    ForgeServer,
    forge,
    github_variables,
)
from packages.equipoise.tests.repositories import MadeRepository, repository
from tests.packaging.action_runner import Job, Runner

__all__ = ["forge"]

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(sys.executable).parent / "equipoise"
HOSTILE = "$(touch ran) `touch ran`; touch ran \"'\n${{ github.token }}"
GO = """#!/bin/sh
case "$*" in
  version) echo "go version go1.26 linux/amd64" ;;
  *-bench*) printf 'pkg: m\\nBenchmarkSum-2\\t100\\t%s ns/op\\nPASS\\n' "$(cat speed)" ;;
  *) echo "$*" >> "$BUILDS_LOG" ;;
esac
"""
"""Stands for Go: its times are in a file, and it notes what it builds."""
PYTHON = f"""#!/bin/sh
if [ "$1" = -m ] && [ "$2" = venv ]; then
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/python"
  cp "$(dirname "$0")/stand_in" "$3/bin/equipoise"
elif [ "$1" = -m ] && [ "$2" = pip ]; then
  printf '%s\\n' "$@" >> "$PIP_LOG"
  case "$*" in *--only-binary*) exit "$INDEX_STATUS" ;; esac
else
  exec {sys.executable} "$@"
fi
"""
"""Stands for a Python whose environments install nothing, but have a stand-in for Equipoise."""
STAND_IN = """#!/bin/sh
printf '%s\\0' "$@" > said
for argument in "$@"; do
  if [ "$last" = --slice ]; then echo "a slice" > "$argument"; fi
  if [ "$last" = --json ]; then echo "{}" > "$argument"; fi
  last=$argument
done
"""


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with stand-ins for Go, for Python's environments and for Equipoise."""
    programs = tmp_path / "programs"
    program(programs, "go", GO)
    program(programs, "python3", PYTHON)
    program(programs, "stand_in", STAND_IN)
    return Runner(tmp_path / "runner", ROOT / "action.yml", f"{programs}:/usr/bin:/bin")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Variables of the stand-ins; the index has a wheel."""
    logs = {name: str(tmp_path / name) for name in ("PIP_LOG", "BUILDS_LOG")}
    return {**logs, "INDEX_STATUS": "0"}


def pip_lines(variables: dict[str, str]) -> list[str]:
    return Path(variables["PIP_LOG"]).read_text().splitlines()


def said(folder: Path) -> list[str]:
    return (folder / "said").read_text().split("\0")[:-1]


def shallow_clone(origin: MadeRepository, branch: str, folder: Path) -> Path:
    """As actions/checkout leaves it: one commit, and no branch of the baseline."""
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", "-b", branch, f"file://{origin.path}", str(folder)],
        check=True,
    )
    return folder


def pull_request(base: str = "main") -> dict[str, Any]:
    event = {
        "pull_request": {"head": {"repo": {"full_name": "owner/name"}}},
        "repository": {"default_branch": "main"},
    }
    return {
        "event_name": "pull_request",
        "base_ref": base,
        "repository": "owner/name",
        "event": event,
    }


@pytest.fixture
def origin(tmp_path: Path) -> MadeRepository:
    """A repository with one suite, whose branch `change` is slower than its branch `main`."""
    origin = repository(tmp_path / "origin")
    origin.write("go.mod", "module m\n\ngo 1.22\n")
    origin.write("sum_test.go", "package m\n\nfunc BenchmarkSum(b *testing.B) {}\n")
    origin.write("speed", "1000\n")
    origin.commit()
    origin.git("branch", "-M", "main")
    origin.git("checkout", "-q", "-b", "change")
    origin.write("speed", "9000\n")
    origin.commit("a slow commit")
    origin.git("checkout", "-q", "main")
    origin.write("later", "on main\n")
    origin.commit()
    return origin


def test_the_action_without_inputs_gates_a_pull_request_and_keeps_builds_and_ledger(
    runner: Runner,
    variables: dict[str, str],
    origin: MadeRepository,
    forge: ForgeServer,
    tmp_path: Path,
) -> None:
    stand_in = f'#!/bin/sh\nexec {PROGRAM} "$@"\n'
    program(tmp_path / "programs", "stand_in", stand_in)
    variables |= github_variables(forge, tmp_path)
    jobs: list[Job] = []
    workspace = tmp_path / "workspace"
    for _ in range(2):
        shutil.rmtree(workspace, ignore_errors=True)
        shallow_clone(origin, "change", workspace)
        # Only a budget that is enough on a slow host.
        inputs = {"budget": "3000"}
        jobs.append(
            runner.run(workspace, inputs=inputs, github=pull_request(), variables=variables)
        )
    listed = subprocess.run(
        [PROGRAM, "list", "--json", "-"], cwd=workspace, check=True, stdout=subprocess.PIPE
    )
    assert len(json.loads(listed.stdout)) == 2, "the ledger goes on"
    for job in jobs:
        assert job.failed, job.output
        assert "go.mod, and sum_test.go has a benchmark" in job.output
        assert "❌ slower" in job.files["GITHUB_STEP_SUMMARY"]
        assert job.files["GITHUB_ENV"] == job.files["GITHUB_PATH"] == ""
    builds = Path(variables["BUILDS_LOG"]).read_text().splitlines()
    assert len(builds) == 2, "the second job has the builds of the first one"
    assert len(forge.bodies()) == 1
    assert forge.bodies()[0].endswith(f"{COMMENT_MARK}\n")
    check = forge.checks()[-1]
    (annotation,) = check["output"]["annotations"]
    assert (check["conclusion"], annotation["path"], annotation["start_line"]) == (
        "failure",
        "sum_test.go",
        3,
    )
    assert sorted(path.name for path in runner.artifacts["equipoise-gate"].iterdir()) == [
        "equipoise-gate.json",
        "equipoise-gate.md",
    ]


def test_the_action_installs_the_wheel_of_its_own_version_from_the_index(
    runner: Runner, variables: dict[str, str], origin: MadeRepository
) -> None:
    job = runner.run(origin.path, variables=variables)
    assert not job.failed, job.output
    version = (ROOT / "Cargo.toml").read_text().partition('\nversion = "')[2].partition('"')[0]
    assert pip_lines(variables)[-3:] == ["--only-binary", ":all:", f"equipoise=={version}"]
    assert "::notice::" not in job.output


def test_without_a_wheel_the_action_compiles_its_sources_and_says_so(
    runner: Runner, variables: dict[str, str], origin: MadeRepository
) -> None:
    variables["INDEX_STATUS"] = "1"
    job = runner.run(origin.path, variables=variables)
    assert not job.failed, job.output
    assert "::notice::The package index has no wheel of Equipoise" in job.output
    assert pip_lines(variables)[-1] == f"{ROOT}/packages/equipoise"
    # Another version than that of the sources is not compiled.
    job = runner.run(origin.path, inputs={"version": "9.9"}, variables=variables)
    assert job.failed
    assert "::error::The package index has no wheel" in job.output


@pytest.mark.parametrize(
    ("inputs", "installed"),
    [
        ({"wheel": "/given.whl"}, "/given.whl"),
        ({"wheel": "https://example.com/x.whl"}, "equipoise @ https://example.com/x.whl"),
        ({"wheel": "/given.whl", "history-from": "main"}, "/given.whl[report]"),
        ({"version": "0.7"}, "equipoise==0.7"),
    ],
)
def test_an_input_names_the_wheel(
    inputs: dict[str, str],
    installed: str,
    runner: Runner,
    variables: dict[str, str],
    origin: MadeRepository,
) -> None:
    job = runner.run(origin.path, inputs=inputs, variables=variables)
    assert job.steps[0] == "Install Equipoise"
    assert pip_lines(variables)[-1] == installed


def test_slices_of_several_runners_are_joined_by_the_last_job(
    runner: Runner, variables: dict[str, str], origin: MadeRepository, tmp_path: Path
) -> None:
    github = pull_request()
    for name in ("a", "b", "c"):
        job = runner.run(
            origin.path,
            inputs={"slice": name, "command": "./b"},
            github=github,
            variables=variables,
        )
        assert not job.failed, job.output
        words = said(origin.path)
        assert words[-6:] == ["--slice", "equipoise-slice.db", "--host", name, "--", "./b"]
        assert "Comment" not in job.steps
    assert sorted(runner.artifacts) == [f"equipoise-slice-{name}" for name in ("a", "b", "c")]
    assert len({key.rsplit("-", 2)[0] for key in runner.caches}) == 3
    last = tmp_path / "last"
    last.mkdir()
    job = runner.run(last, inputs={"join": "true"}, variables=variables)
    assert not job.failed, job.output
    assert job.steps == ["Install Equipoise", "Download the slices", "Join", "Upload the result"]
    words = said(last)
    assert words[0] == "gate"
    assert words[words.index("--join") + 1 :] == [
        f"equipoise-slices/equipoise-slice-{name}/equipoise-slice.db" for name in ("a", "b", "c")
    ]


def test_a_join_without_slices_says_what_is_missing(
    runner: Runner, variables: dict[str, str], tmp_path: Path
) -> None:
    job = runner.run(tmp_path, inputs={"join": "true"}, variables=variables)
    assert job.failed
    assert "::error::No slice was found" in job.output


@pytest.mark.parametrize(
    "name",
    ["baseline", "candidate", "build", "kind", "suite", "metrics", "min-effect", "budget"],
)
def test_no_input_is_run_by_a_shell(
    name: str, runner: Runner, variables: dict[str, str], tmp_path: Path
) -> None:
    made = repository(tmp_path / "project")
    made.write("file", "1\n")
    made.commit()
    job = runner.run(made.path, inputs={name: HOSTILE}, variables=variables)
    assert not job.failed, job.output
    assert HOSTILE in said(made.path)
    assert list(tmp_path.rglob("ran")) == []


@pytest.mark.parametrize("name", ["wheel", "version"])
def test_no_input_of_the_installation_is_run_by_a_shell(
    name: str, runner: Runner, variables: dict[str, str], tmp_path: Path
) -> None:
    runner.run(tmp_path, inputs={name: HOSTILE}, variables=variables)
    assert HOSTILE in Path(variables["PIP_LOG"]).read_text()
    assert list(tmp_path.rglob("ran")) == []


def test_commits_that_cannot_be_fetched_are_named(
    runner: Runner, variables: dict[str, str], origin: MadeRepository, tmp_path: Path
) -> None:
    workspace = shallow_clone(origin, "change", tmp_path / "workspace")
    origin.path.rename(tmp_path / "gone")
    job = runner.run(workspace, variables=variables)
    assert "::warning::The earlier commits could not be fetched" in job.output
    assert not job.failed, "the gate names what is missing"
