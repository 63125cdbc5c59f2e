"""A runner that runs the steps of a composite action as GitHub's runner does, in a fresh folder.

It evaluates the conditions and the expressions of the steps, and runs the lines of shell with the
files of the runner (``GITHUB_ENV`` and others). It does itself what other actions do: caches and
artifacts are folders. See https://docs.github.com/actions/reference/workflows-and-actions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(r"'(?:[^']|'')*'|&&|\|\||!=|==|!|[()]|[A-Za-z_][\w.-]*|,|\s+")
_FILES = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")


@dataclass
class Job:
    """What one job did."""

    failed: bool = False
    steps: list[str] = field(default_factory=list)
    """Names of the steps that ran."""
    output: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """Content of the files of the runner after the job."""


@dataclass
class Runner:
    """Runs jobs whose only step is the action; caches and artifacts stay between the jobs."""

    folder: Path
    action: Path
    path: str
    """PATH of the jobs."""
    caches: dict[str, Path] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)
    runs: int = 0

    def run(
        self,
        workspace: Path,
        *,
        inputs: Mapping[str, str] | None = None,
        github: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Job:
        """Run the action in a workspace; each job has a new machine, with the same folders."""
        self.runs += 1
        own = self.folder / "machine"
        shutil.rmtree(own, ignore_errors=True)
        home, temp = own / "home", own / "temp"
        home.mkdir(parents=True)
        temp.mkdir()
        action = yaml.safe_load(self.action.read_text(encoding="utf-8"))
        unknown = (inputs or {}).keys() - action["inputs"].keys()
        assert not unknown, f"the action has no input {unknown}"
        contexts: dict[str, Any] = {
            "runner": {"temp": str(temp), "os": "Linux", "arch": "X64", "name": "runner"},
            "github": {
                "action_path": str(self.action.parent),
                "token": "secret",
                "job": "gate",
                "run_id": str(self.runs),
                "run_attempt": "1",
                "event": {},
                **(github or {}),
            },
            "env": dict(variables or {}),
        }
        job = Job()
        defaults = {
            name: _interpolate(str(one.get("default", "")), contexts, job)
            for name, one in action["inputs"].items()
        }
        contexts["inputs"] = {**defaults, **(inputs or {})}
        for name in _FILES:
            (own / name).touch()
        environment = {
            "PATH": self.path,
            "HOME": str(home),
            "TMPDIR": str(temp),
            "GITHUB_WORKSPACE": str(workspace),
            **{name: str(own / name) for name in _FILES},
            **(variables or {}),
        }
        for step in action["runs"]["steps"]:
            condition = str(step.get("if", "success()"))
            if not re.search(r"\b(always|failure|success)\(\)", condition):
                condition = f"success() && ({condition})"
            if not _evaluate(condition, contexts, job):
                continue
            job.steps.append(step["name"])
            if "uses" in step:
                values = {
                    name: _interpolate(str(value), contexts, job)
                    for name, value in step["with"].items()
                }
                name = step["uses"].partition("@")[0].replace("actions/", "")
                done = _ACTIONS[name](self, workspace, home, values)
                job.output += f"{name}: {done}\n"
            else:
                status, text = _run_shell(step, contexts, job, environment, workspace, own)
                job.output += text
                job.failed = job.failed or status != 0
        job.files = {name: (own / name).read_text() for name in _FILES}
        return job


def _run_shell(
    step: Mapping[str, Any],
    contexts: Mapping[str, Any],
    job: Job,
    environment: Mapping[str, str],
    workspace: Path,
    own: Path,
) -> tuple[int, str]:
    assert step["shell"] == "bash"
    script = own / "step.sh"
    script.write_text(_interpolate(step["run"], contexts, job))
    folder = _interpolate(step.get("working-directory", "."), contexts, job)
    added = {
        name: _interpolate(str(value), contexts, job) for name, value in step.get("env", {}).items()
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=workspace / folder,
        env={**environment, **added},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1800,
    )
    return done.returncode, done.stdout


def _interpolate(text: str, contexts: Mapping[str, Any], job: Job) -> str:
    return _EXPRESSION.sub(lambda match: str(_evaluate(match[1], contexts, job) or ""), text)


def _evaluate(expression: str, contexts: Mapping[str, Any], job: Job) -> Any:
    """Return the value of an expression of GitHub, through the same expression of Python."""
    expression = _EXPRESSION.sub(r"\1", expression)
    python, position = [], 0
    operators = {"&&": " and ", "||": " or ", "!": " not "}
    for match in _TOKEN.finditer(expression):
        assert match.start() == position, f"unknown in {expression!r}: {expression[position:]!r}"
        position = match.end()
        token = match[0]
        if token.startswith("'"):
            python.append(repr(token[1:-1].replace("''", "'")))
        elif re.match(r"[A-Za-z_]", token) and token not in _FUNCTIONS:
            python.append(f"get({token!r})")
        else:
            python.append(" " if token.isspace() else operators.get(token, token))
    assert position == len(expression), expression

    def get(name: str) -> Any:
        value: Any = contexts
        for part in name.split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        return value

    functions = {name: function(job) for name, function in _FUNCTIONS.items()}
    return eval("".join(python).strip(), {"__builtins__": {}}, {"get": get, **functions})


_FUNCTIONS: dict[str, Callable[[Job], Callable[..., Any]]] = {
    "always": lambda job: lambda: True,
    "success": lambda job: lambda: not job.failed,
    "failure": lambda job: lambda: job.failed,
    "format": lambda job: lambda text, *values: text.format(*values),
}


def _paths(values: Mapping[str, str], workspace: Path, home: Path) -> list[Path]:
    lines = filter(None, map(str.strip, values["path"].splitlines()))
    return [Path(os.path.normpath(workspace / line.replace("~", str(home), 1))) for line in lines]


def _restore(runner: Runner, workspace: Path, home: Path, values: Mapping[str, str]) -> str:
    prefix = values["restore-keys"].strip()
    assert values["key"] not in runner.caches
    keys = [key for key in runner.caches if key.startswith(prefix)]
    if not keys:
        return "no cache"
    packed = runner.caches[keys[-1]]
    for number, path in enumerate(_paths(values, workspace, home)):
        if (packed / str(number)).exists():
            shutil.copytree(packed / str(number), path, symlinks=True, dirs_exist_ok=True)
    return keys[-1]


def _save(runner: Runner, workspace: Path, home: Path, values: Mapping[str, str]) -> str:
    packed = runner.folder / f"cache{len(runner.caches)}"
    packed.mkdir()
    runner.caches[values["key"]] = packed
    for number, path in enumerate(_paths(values, workspace, home)):
        if path.exists():
            shutil.copytree(path, packed / str(number), symlinks=True)
    return values["key"]


def _upload(runner: Runner, workspace: Path, home: Path, values: Mapping[str, str]) -> str:
    files = [
        file for path in _paths(values, workspace, home) for file in path.parent.glob(path.name)
    ]
    if not files:
        return "no file"
    # The service refuses these characters.
    assert not re.search(r'[":<>|*?\r\n\\/]', values["name"]), values["name"]
    folder = runner.folder / "artifacts" / values["name"]
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    runner.artifacts[values["name"]] = folder
    return values["name"]


def _download(runner: Runner, workspace: Path, home: Path, values: Mapping[str, str]) -> str:
    (target,) = _paths(values, workspace, home)
    prefix = values["pattern"].removesuffix("*")
    names = [name for name in runner.artifacts if name.startswith(prefix)]
    for name in names:
        shutil.copytree(runner.artifacts[name], target / name)
    return ", ".join(names)


_ACTIONS: dict[str, Callable[[Runner, Path, Path, Mapping[str, str]], str]] = {
    "cache/restore": _restore,
    "cache/save": _save,
    "upload-artifact": _upload,
    "download-artifact": _download,
}
