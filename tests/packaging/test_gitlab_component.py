"""The component of GitLab: the documented structure, and its lines of shell in a fresh folder."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from equipoise.kinds.gate.command import command as gate_command
from equipoise.kinds.gate.comment import command as comment_command

ROOT = Path(__file__).resolve().parent.parent.parent
COMPONENT = ROOT / "templates" / "gate.yml"
_INPUT = re.compile(r"\$\[\[ inputs\.([\w-]+) \]\]")
HOSTILE = "$(touch ran) `touch ran`; touch ran \"' $HOME"
PYTHON = """#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\nprintf "%%s\\\\0" "$@" > installed\\n' > "$3/bin/python"
printf '#!/bin/sh\\nprintf "%%s\\\\0" "$@" "\\n" >> said\\ntouch equipoise-gate.json\\n' \\
  > "$3/bin/equipoise"
chmod +x "$3/bin/python" "$3/bin/equipoise"
"""
"""Stands for a Python whose environments have stand-ins of pip and of Equipoise."""


def parts() -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs and the jobs of the component."""
    header, jobs = yaml.safe_load_all(COMPONENT.read_text(encoding="utf-8"))
    assert header.keys() == {"spec"} and header["spec"].keys() == {"inputs"}
    return header["spec"]["inputs"], jobs


def test_the_component_has_the_structure_that_gitlab_documents() -> None:
    inputs, jobs = parts()
    for definition in inputs.values():
        assert definition.keys() <= {"default", "description", "options", "regex", "type"}
        assert definition["description"]
        number = definition.get("type", "string") == "number"
        assert isinstance(definition["default"], int if number else str)
    assert set(_INPUT.findall(json.dumps(jobs))) == set(inputs)
    gate, baseline = jobs.values()
    known = {"stage", "image", "rules", "variables", "cache", "before_script", "script"}
    assert gate.keys() <= known | {"after_script", "artifacts"}
    for job in (gate, baseline):
        assert job["artifacts"]["reports"] == {"codequality": "gl-code-quality-report.json"}
    assert gate["cache"]["when"] == gate["artifacts"]["when"] == "always"
    lines = [*gate["before_script"], *gate["script"], *gate["after_script"], *baseline["script"]]
    assert not [line for line in lines if "$[[" in line]
    text_inputs = [
        variable for variable in gate["variables"].values() if isinstance(variable, dict)
    ]
    assert len(text_inputs) == 6
    assert {variable["expand"] for variable in text_inputs} == {False}


def run_job(folder: Path, **inputs: str) -> None:
    """Run the lines of the gate's job as GitLab's runner does, with stand-ins."""
    definitions, jobs = parts()
    values = {name: str(definition["default"]) for name, definition in definitions.items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    gate = next(iter(jobs.values()))
    variables = {
        name: _INPUT.sub(
            lambda match: values[match[1]], one["value"] if isinstance(one, dict) else one
        )
        for name, one in gate["variables"].items()
    }
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python3").write_text(PYTHON)
    (programs / "python3").chmod(0o755)
    project = folder / "project"
    (project / ".equipoise-builds").mkdir(parents=True)
    environment = {
        **variables,
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "1" * 40,
        "GITLAB_TOKEN": "secret",
    }
    # GitLab runs `after_script` in another shell.
    for lines in ([*gate["before_script"], *gate["script"]], gate["after_script"]):
        subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(lines).replace("/tmp/", f"{folder}/")],
            cwd=project,
            env=environment,
            check=True,
        )


def said(folder: Path) -> list[list[str]]:
    """The words of each call of Equipoise."""
    calls = (folder / "project" / "said").read_text().split("\n\0")[:-1]
    return [call.split("\0")[:-1] for call in calls]


def test_the_job_gates_then_reports_and_keeps_the_builds(tmp_path: Path) -> None:
    run_job(tmp_path, command="./bench 'two words'", build="make", version="0.1.0")
    gate, report, note = said(tmp_path)
    options = gate_command.make_context("gate", gate[1:]).params
    assert gate[0] == "gate"
    assert (options["baseline"], options["build"]) == ("1" * 40, "make")
    assert (options["min_effect"], options["budget"]) == (2.0, 120.0)
    assert "benchmark=./bench 'two words'" in gate
    options = comment_command.make_context("comment", report[1:]).params
    assert options["code_quality"] == Path("gl-code-quality-report.json")
    assert comment_command.make_context("comment", note[1:]).params["gitlab"]
    assert (tmp_path / "project" / "installed").read_text().split("\0")[-2] == "equipoise==0.1.0"
    assert (tmp_path / "project" / ".equipoise-builds").is_dir()


@pytest.mark.parametrize("name", ["wheel", "version", "build", "kind", "command", "metrics"])
def test_no_input_of_the_component_is_run_by_a_shell(name: str, tmp_path: Path) -> None:
    run_job(tmp_path, **{name: HOSTILE})
    said_words = [word for call in said(tmp_path) for word in call]
    installed = (tmp_path / "project" / "installed").read_text().split("\0")
    assert [word for word in (*said_words, *installed) if word.endswith(HOSTILE)]
    assert list(tmp_path.rglob("ran")) == []
