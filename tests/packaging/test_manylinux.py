"""The wheel that `make wheel` built runs where it says, and installs where there is no compiler.

`make wheel` runs these tests. `make test` skips them while there is no such wheel, and builds none:
it takes a linker for older systems (requirements-wheel.lock) and every crate compiled once more.
What a wheel holds, and that it works without Rust, `test_wheel.py` tests there each time.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = Path(sys.executable).parent
NEEDED = ("true", "sleep", "uname")


def built(package: str) -> Path:
    wheels = list((ROOT / "dist").glob(f"{package}-*-manylinux_*.whl"))
    if not wheels:
        pytest.skip("there is no manylinux wheel in dist/: `make wheel` builds and tests them")
    (found,) = wheels
    return found


@pytest.fixture(scope="module")
def wheel() -> Path:
    return built("equipoise")


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment without a compiler, and the installers in a folder of their own."""
    folder = tmp_path / "programs"
    folder.mkdir()
    found = {name: shutil.which(name) for name in NEEDED}
    for name, program in {**found, "uv": TOOLS / "uv", "pipx": TOOLS / "pipx"}.items():
        assert program is not None
        (folder / name).symlink_to(program)
    assert shutil.which("cc", path=str(folder)) is None
    # How the registry is reached is the caller's.
    return {
        **os.environ,
        "PATH": f"{folder}:{tmp_path / 'bin'}",
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_LINK_MODE": "copy",
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
    }


@pytest.fixture
def call(bare: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        # The path is that of the environment, also for the program itself.
        program = shutil.which(words[0], path=bare["PATH"]) or words[0]
        return finished([program, *words[1:]], env=bare, cwd=tmp_path, stdin=subprocess.DEVNULL)

    return run


@pytest.mark.parametrize(
    ("package", "python"),
    [
        ("equipoise", "cp311-abi3"),
        ("equipoise_matching", "cp311-abi3"),
        ("equipoise_studies", "py3-none"),
    ],
)
def test_the_tag_of_the_wheel_is_true(package: str, python: str) -> None:
    wheel = built(package)
    shown = finished([TOOLS / "auditwheel", "show", "--json", wheel], check=True)
    audited = json.loads(shown.stdout)
    assert audited["external_libs"] == {}
    assert audited["overall_tag"] == audited["sym_tag"]
    assert wheel.stem.endswith(f"-{python}-{audited['overall_tag']}")


@pytest.mark.parametrize(
    "install", [("uv", "tool", "install"), ("pipx", "install")], ids=lambda words: words[0]
)
def test_it_installs_without_a_compiler_compares_and_its_hints_work_as_printed(
    install: tuple[str, ...],
    wheel: Path,
    call: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    installed = call(*install, "--python", Path(sys.executable).resolve(), wheel)
    assert installed.returncode == 0, installed.stderr
    compared = call(
        *("equipoise", "compare", "true", "sleep 0.05", "--allow-concurrent", "--json", "out.json")
    )
    assert compared.returncode == 0, compared.stderr
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert document["comparisons"][0]["verdict"] == "slower"
    # Figures need an extra: the hint says how to get it.
    refused = call("equipoise", "report", "last", "-o", "result.html")
    assert refused.returncode == 2
    hint = refused.stderr.partition("hint: ")[2].strip()
    assert "equipoise[report]" in hint
    done = call(*shlex.split(hint))
    assert done.returncode == 0, f"{hint}: {done.stderr}"
    reported = call("equipoise", "report", "last", "-o", "result.html")
    assert reported.returncode == 0, reported.stderr
    assert "<svg" in (tmp_path / "result.html").read_text(encoding="utf-8")
