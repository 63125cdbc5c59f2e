"""One wheel holds everything, and works where there is no Rust.

The wheel is built from an sdist, so that the sdist is known to be whole.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python")
"""Our own pip, told which environment to work in: a new one need not get one first."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from an unpacked sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    backend = [sys.executable, "-m", "hatchling", "build"]
    subprocess.run([*backend, "-t", "sdist", "-d", str(folder)], cwd=ROOT, check=True)
    subprocess.run(["tar", "-xzf", next(folder.glob("*.tar.gz"))], cwd=folder, check=True)
    unpacked = next(path for path in folder.iterdir() if path.is_dir())
    # The crates of others need not be compiled once more.
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
    subprocess.run(
        [*backend, "-t", "wheel", "-d", str(folder)], cwd=unpacked, env=environment, check=True
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment with the wheel and its locked dependencies only."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment)
    # Only the modules that are imported need be compiled.
    install = (*PIP, environment / "bin" / "python", "install", "--quiet", "--no-compile")
    locked = ("--require-hashes", "-r", ROOT / "requirements.lock")
    if subprocess.run([*install, *locked], check=False).returncode != 0:
        answer = subprocess.run(
            [sys.executable, "-m", "pip", "index", "versions", "click"],
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            pytest.skip(f"misses a package registry: {answer.stderr.strip().splitlines()[-1]}")
        pytest.fail("pip reaches the registry and cannot install requirements.lock: see above")
    subprocess.run([*install, "--no-deps", wheel], check=True)
    return environment / "bin"


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment whose path holds ``true`` and ``false`` and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("true", "false"):
        found = shutil.which(program)
        assert found is not None
        (folder / program).symlink_to(found)
    return {"PATH": str(folder), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}


def test_the_wheel_fits_every_python_from_3_11_on(wheel: Path) -> None:
    assert wheel.name.startswith("equipoise-")
    assert "-cp311-abi3-linux_" in wheel.name


def test_the_wheel_holds_the_extension_the_programs_and_the_libraries(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    for program in ("equipoise-launcher", "equipoise-probe", "equipoise-workload"):
        assert inside[f"equipoise/_bin/{program}"] & 0o111
    assert "equipoise/_bin/libequipoise_dlmalloc.so" in inside
    assert "equipoise/_bin/libequipoise_file_order.so" in inside
    assert "equipoise/_bin/libequipoise_interventions.so" in inside
    assert "equipoise/_native.abi3.so" in inside
    assert "equipoise/py.typed" in inside


def test_the_wheel_names_the_crates_of_others_with_their_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        notices = archive.read("equipoise/THIRD-PARTY-NOTICES.txt").decode()
    for crate, licence in (("inferno", "CDDL-1.0"), ("pyo3", "MIT OR Apache-2.0")):
        assert re.search(
            rf"^{crate} [\d.]+  {licence}  https://crates.io/crates/{crate}/", notices, re.M
        )
    assert "COMMON DEVELOPMENT AND DISTRIBUTION LICENSE" in notices


def test_what_the_wheel_asks_for_is_locked(installed: Path) -> None:
    subprocess.run([*PIP, installed / "python", "check"], check=True)


def test_the_extension_is_imported_where_there_is_no_rust(
    installed: Path, bare: dict[str, str]
) -> None:
    program = "import equipoise._native as native; print(native.__file__)"
    done = subprocess.run(
        [installed / "python", "-c", program], env=bare, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().startswith(str(installed.parent))


def test_two_commands_are_compared_where_there_is_no_rust(
    installed: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    assert shutil.which("cargo", path=bare["PATH"]) is None
    # The environment is bare: other tests beside this one may hold the lock of this host.
    options = ["--ignore-failure", "--blocks", "2", "--min-blocks", "2", "--seed", "1"]
    options.append("--allow-concurrent")
    done = subprocess.run(
        [installed / "equipoise", "compare", "true", "false", *options, "--json", "-"],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "equipoise.result/1"
    assert [condition["name"] for condition in document["conditions"]] == ["true", "false"]
    assert [condition["trials"] for condition in document["conditions"]] == [2, 2]
    assert document["comparisons"][0]["verdict"] == "undecided"
