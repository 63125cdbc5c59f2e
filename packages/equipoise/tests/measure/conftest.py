"""The real launcher, and shell scripts that it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import equipoise
from equipoise.measure.launcher import Containment, Launcher, Report, Request
from packages.equipoise.tests.measure.serving import Stage

Run = Callable[[str], Report]
Shell = Callable[[str], Request]


@pytest.fixture(scope="session")
def launcher_program() -> Path:
    package = Path(equipoise.__file__).resolve().parent
    places = [
        package / "_bin" / "equipoise-launcher",
        package.parents[3] / "target" / "release" / "equipoise-launcher",
    ]
    if named := os.environ.get("EQUIPOISE_LAUNCHER"):
        places.insert(0, Path(named))
    for place in places:
        if place.is_file():
            return place
    pytest.fail("no equipoise-launcher: build it with `cargo build --workspace --release --locked`")


def program(name: str) -> str:
    """Find the path of a program that every Linux has."""
    path = shutil.which(name)
    assert path is not None, f"{name} is on every Linux"
    return path


@pytest.fixture(params=["process-group", "cgroup"])
def containment(request: pytest.FixtureRequest) -> Containment:
    """Both kinds; without permission for a cgroup, the second one is a process group too."""
    chosen: Containment = request.param
    return chosen


@pytest.fixture
def launcher(launcher_program: Path, containment: Containment) -> Iterator[Launcher]:
    with Launcher(launcher_program, containment=containment) as running:
        yield running


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Makes the request of a trial that runs a shell script in the temporary folder."""
    return lambda script: Request(
        argv=(program("sh"), "-c", script),
        environment={"PATH": os.environ["PATH"]},
        working_folder=str(tmp_path),
        timeout_s=60.0,
    )


@pytest.fixture
def run(launcher: Launcher, shell: Shell) -> Run:
    """Runs a shell script."""
    return lambda script: launcher.run(shell(script))


@pytest.fixture
def stage(launcher_program: Path, tmp_path: Path) -> Iterator[Stage]:
    prepared = Stage(launcher_program, tmp_path)
    with prepared.servers, prepared.client:
        yield prepared
    assert prepared.nothing_is_left()
