"""The Dockerfile: its stages, and its lines of shell where they can run without Docker."""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile with their arguments, without comments."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = lines.replace("\\\n", " ").splitlines()
    pairs = (line.partition(" ")[::2] for line in joined if line.strip())
    return [(name, " ".join(rest.split())) for name, rest in pairs]


def test_the_image_has_only_the_installed_wheel_and_runs_as_an_ordinary_user() -> None:
    stages = [rest for name, rest in instructions() if name == "FROM"]
    assert stages == ["python:${PYTHON}-slim AS install", "python:${PYTHON}-slim"]
    last = instructions()[instructions().index(("FROM", stages[1])) :]
    assert [rest for name, rest in last if name == "COPY"] == [
        "--from=install /opt/equipoise /opt/equipoise"
    ]
    assert ("USER", "1000") in last
    (entry,) = [rest for name, rest in last if name == "ENTRYPOINT"]
    assert json.loads(entry) == ["equipoise"]
    assert last.index(("USER", "1000")) > [name for name, _ in last].index("RUN")


def test_the_context_of_the_image_is_the_wheel_of_the_laboratory() -> None:
    (copied,) = [rest.split()[0] for name, rest in instructions() if rest.endswith(" ./")]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["*", f"!{copied}"]
    assert fnmatch.fnmatch("dist/equipoise-0.1.0-py3-none-manylinux_2_28_x86_64.whl", copied)
    assert not fnmatch.fnmatch("dist/equipoise_matching-0.1.0-py3-none-any.whl", copied)


def test_the_stage_that_installs_takes_the_wheel_and_compiles_nothing(tmp_path: Path) -> None:
    (line,) = [rest for name, rest in instructions() if name == "RUN" and "venv" in rest]
    tag = "0.0-py3-none-any"
    with zipfile.ZipFile(tmp_path / f"equipoise-{tag}.whl", "w") as wheel:
        folder = "equipoise-0.0.dist-info"
        wheel.writestr(f"{folder}/METADATA", "Metadata-Version: 2.1\nName: equipoise\nVersion: 0.0")
        wheel.writestr(
            f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any"
        )
        wheel.writestr(
            f"{folder}/entry_points.txt", "[console_scripts]\nequipoise = equipoise:main"
        )
        wheel.writestr("equipoise.py", "def main():\n    print('it runs')\n")
        wheel.writestr(f"{folder}/RECORD", "")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    installed = tmp_path / "opt"
    subprocess.run(
        ["sh", "-ec", line.replace("/opt/equipoise", str(installed))],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PIP_NO_INDEX": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shown = subprocess.run([installed / "bin" / "equipoise"], check=True, stdout=subprocess.PIPE)
    assert shown.stdout == b"it runs\n"
