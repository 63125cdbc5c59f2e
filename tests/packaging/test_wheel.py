"""Each package is one wheel, alone and beside the others, and works where there is no Rust.

A wheel is built from an sdist, so that the sdist is known to be whole.
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

from packages.equipoise.tests.programs import finished

ROOT = Path(__file__).resolve().parent.parent.parent
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python")
"""Our own pip, told which environment to work in: a new one need not get one first."""


def built(package: Path, folder: Path) -> Path:
    """Build a wheel from an unpacked sdist."""
    backend = [sys.executable, "-m", "hatchling", "build"]
    subprocess.run([*backend, "-t", "sdist", "-d", str(folder)], cwd=package, check=True)
    subprocess.run(["tar", "-xzf", next(folder.glob("*.tar.gz"))], cwd=folder, check=True)
    unpacked = next(path for path in folder.iterdir() if path.is_dir())
    # The crates of others need not be compiled once more.
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
    subprocess.run(
        [*backend, "-t", "wheel", "-d", str(folder)], cwd=unpacked, env=environment, check=True
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the laboratory."""
    return built(ROOT / "packages/equipoise", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def matching_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of equipoise-matching."""
    return built(ROOT / "packages/matching", tmp_path_factory.mktemp("matching"))


@pytest.fixture(scope="session")
def studies_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of equipoise-studies."""
    return built(ROOT / "packages/studies", tmp_path_factory.mktemp("studies"))


def install(environment: Path, *words: str | Path) -> None:
    """Install into an environment; skip the test where no registry answers."""
    # Only the modules that are imported need be compiled.
    command = (*PIP, environment / "bin" / "python", "install", "--quiet", "--no-compile", *words)
    if subprocess.run(command, check=False).returncode != 0:
        answer = finished([sys.executable, "-m", "pip", "index", "versions", "click"])
        if answer.returncode != 0:
            pytest.skip(f"misses a package registry: {answer.stderr.strip().splitlines()[-1]}")
        pytest.fail(f"pip reaches the registry and cannot install {words[-1]}: see above")


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment with the wheel and its locked dependencies only."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment)
    install(environment, "--require-hashes", "-r", ROOT / "requirements.lock")
    install(environment, "--no-deps", wheel)
    return environment / "bin"


@pytest.fixture(scope="session")
def constraints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked versions of everything that is developed with, without their hashes."""
    locked = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    versions = [line.rstrip(" \\") for line in locked if "==" in line and line[0].isalnum()]
    file = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    file.write_text("\n".join(versions), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def matching_alone(
    matching_wheel: Path, constraints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The ``bin`` folder of an environment with equipoise-matching and its dependencies only."""
    environment = tmp_path_factory.mktemp("alone")
    venv.create(environment)
    install(environment, "--constraint", constraints, matching_wheel)
    return environment / "bin"


@pytest.fixture(scope="session")
def together(
    wheel: Path, matching_wheel: Path, constraints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The ``bin`` folder of an environment with both packages."""
    environment = tmp_path_factory.mktemp("together")
    venv.create(environment)
    install(environment, "--constraint", constraints, f"{wheel}[matching]", matching_wheel)
    return environment / "bin"


@pytest.fixture(scope="session")
def with_studies(
    wheel: Path, studies_wheel: Path, constraints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The ``bin`` folder of an environment with the laboratory and the studies."""
    environment = tmp_path_factory.mktemp("with_studies")
    venv.create(environment)
    install(environment, "--constraint", constraints, f"{wheel}[studies]", studies_wheel)
    return environment / "bin"


@pytest.fixture(scope="session")
def everything(
    wheel: Path,
    matching_wheel: Path,
    studies_wheel: Path,
    constraints: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The ``bin`` folder of an environment with all packages and all extras."""
    environment = tmp_path_factory.mktemp("everything")
    venv.create(environment)
    wheels = (f"{wheel}[all]", matching_wheel, studies_wheel)
    install(environment, "--constraint", constraints, *wheels)
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
    for program in ("equipoise-launcher", "equipoise-evidence"):
        assert inside[f"equipoise/_bin/{program}"] & 0o111
    assert "equipoise/_bin/libequipoise_file_order.so" in inside
    assert "equipoise/_bin/libequipoise_interventions.so" in inside
    assert "equipoise/_native.abi3.so" in inside
    assert "equipoise/py.typed" in inside
    assert "equipoise/shared/errors.py" in inside
    others = ("equipoise_matching", "equipoise_studies")
    assert not [name for name in inside if name.startswith(others)]
    assert not [name for name in inside if re.search("equipoise-(probe|workload)|dlmalloc", name)]


def test_the_wheel_of_matching_holds_its_extension_and_what_is_shared(matching_wheel: Path) -> None:
    assert matching_wheel.name.startswith("equipoise_matching-")
    assert "-cp311-abi3-linux_" in matching_wheel.name
    with zipfile.ZipFile(matching_wheel) as archive:
        inside = archive.namelist()
    assert "equipoise_matching/_native.abi3.so" in inside
    assert "equipoise_matching/shared/errors.py" in inside
    assert "equipoise_matching/py.typed" in inside
    assert not [name for name in inside if name.startswith("equipoise/") or "_bin/" in name]


def test_the_wheel_of_the_studies_holds_its_programs_and_studies(studies_wheel: Path) -> None:
    assert studies_wheel.name.startswith("equipoise_studies-")
    # Programs alone, which run beside any Python.
    assert "-py3-none-linux_" in studies_wheel.name
    with zipfile.ZipFile(studies_wheel) as archive:
        inside = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        notices = archive.read("equipoise_studies/THIRD-PARTY-NOTICES.txt").decode()
    for program in ("equipoise-probe", "equipoise-workload"):
        assert inside[f"equipoise_studies/_bin/{program}"] & 0o111
    assert "equipoise_studies/_bin/libequipoise_dlmalloc.so" in inside
    assert "equipoise_studies/builtin/sekhon2006/study.toml" in inside
    assert not [name for name in inside if name.startswith(("equipoise/", "equipoise_matching"))]
    assert re.search(r"^dlmalloc [\d.]+  MIT/Apache-2.0  https://crates.io/", notices, re.M)


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
    done = finished([installed / "python", "-c", program], env=bare, check=True)
    assert done.stdout.strip().startswith(str(installed.parent))


def test_two_commands_are_compared_where_there_is_no_rust(
    installed: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    assert shutil.which("cargo", path=bare["PATH"]) is None
    # The environment is bare: other tests beside this one may hold the lock of this host.
    options = ["--ignore-failure", "--blocks", "2", "--min-blocks", "2", "--seed", "1"]
    options.append("--allow-concurrent")
    done = finished(
        [installed / "equipoise", "compare", "true", "false", *options, "--json", "-"],
        env=bare,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "equipoise.result/1"
    assert [condition["name"] for condition in document["conditions"]] == ["true", "false"]
    assert [condition["trials"] for condition in document["conditions"]] == [2, 2]
    assert document["comparisons"][0]["verdict"] == "undecided"


PEOPLE = "treat,age,wage\n" + "".join(
    f"{row % 2},{20 + row},{100 + 3 * row + 10 * (row % 2)}\n" for row in range(40)
)
MATCH = """
import sys
from equipoise_matching import genoud
from equipoise_matching.tables import match
result = match("people.csv", "wage", "treat", ["age"])
assert result.estimate == result.pairs.estimate
print(result.summary().splitlines()[0])
assert genoud(lambda point: float(point[0] ** 2), 1, seed=1).value < 1e-6
assert not [name for name in sys.modules if name.partition(".")[0] == "equipoise"]
"""
ARGUMENTS = ("people.csv", "--treatment", "treat", "--outcome", "wage", "--covariates", "age")


def called(
    command: tuple[str | Path, ...], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that holds a table."""
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return finished(command, env=environment, cwd=folder)


def test_matching_alone_matches_and_loads_nothing_of_the_laboratory(
    matching_alone: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([*PIP, matching_alone / "python", "check"], check=True)
    done = called((matching_alone / "python", "-c", MATCH), tmp_path, bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("treat raises wage by ")


def test_the_laboratory_alone_names_the_line_that_installs_matching(
    installed: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    done = called((installed / "equipoise", "match", *ARGUMENTS), tmp_path, bare)
    assert done.returncode == 2
    assert "pip install 'equipoise[matching]'" in done.stderr
    program = "import equipoise as eq\ntry:\n    eq.match\nexcept eq.EquipoiseError as error:\n"
    done = called((installed / "python", "-c", f"{program}    print(error.hint)"), tmp_path, bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "pip install 'equipoise[matching]'"


def test_both_together_match_on_the_command_line(
    together: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([*PIP, together / "python", "check"], check=True)
    command = (together / "equipoise", "match", *ARGUMENTS, "--json", "-")
    done = called(command, tmp_path, bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == "equipoise.match/1"


STUDY = ("run", "tratt2019", "--quick", "--blocks", "1", "--min-blocks", "1")
ROWS = ("os", "--quick", "--only", "null_call", "--blocks", "2", "--min-blocks", "2")
MEASURED = ("--allow-concurrent", "--json", "-")


def test_the_laboratory_alone_names_the_line_that_installs_the_studies(
    installed: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    for words in (STUDY, ROWS):
        done = called((installed / "equipoise", *words), tmp_path, bare)
        assert (done.returncode, done.stdout) == (2, "")
        assert "is in equipoise-studies, which is not installed" in done.stderr
        assert "pip install equipoise-studies" in done.stderr


def test_with_the_studies_primitives_are_measured_and_workloads_compared(
    with_studies: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([*PIP, with_studies / "python", "check"], check=True)
    done = called((with_studies / "equipoise", *ROWS, *MEASURED), tmp_path, bare)
    assert done.returncode == 0, done.stderr
    assert "latency_s" in json.loads(done.stdout)["conditions"][0]["metrics"]
    workload = "equipoise-workload spin --work 10"
    compared = ("compare", workload, workload, "--blocks", "1", "--min-blocks", "1")
    done = called((with_studies / "equipoise", *compared, *MEASURED), tmp_path, bare)
    assert done.returncode == 0, done.stderr


def test_everything_together_matches_measures_and_runs_a_study(
    everything: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([*PIP, everything / "python", "check"], check=True)
    for words in (("match", *ARGUMENTS, "--json", "-"), (*ROWS, *MEASURED), (*STUDY, *MEASURED)):
        done = called((everything / "equipoise", *words), tmp_path, bare)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["schema"].startswith("equipoise.")


WITHIN_TOOLS = ("equipoise.helpers.pytest_counting", "equipoise.helpers.pytest_plugin")
"""Modules that only the environment of a benchmark tool imports."""
EVERY_MODULE = f"""
import importlib, pkgutil, equipoise
for module in pkgutil.walk_packages(equipoise.__path__, "equipoise."):
    if module.name not in {WITHIN_TOOLS} and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_every_module_is_imported_where_there_is_no_benchmark_tool(
    everything: Path, bare: dict[str, str]
) -> None:
    done = finished([everything / "python", "-c", EVERY_MODULE], env=bare)
    assert (done.returncode, done.stderr) == (0, "")
