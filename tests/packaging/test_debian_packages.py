"""`make test` installs the Debian packages of live tests only where that disturbs nobody."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "debian_packages.sh"
LIST = """# what each is for

here  # installed
absent
absent-too
not-needed unless sh
needed unless no-such-program
"""
STAND_INS = {
    "dpkg-query": 'for last; do :; done\n[ "$last" = here ] && printf installed',
    "apt-get": 'echo "$@" >>"$HOME/apt-get"',
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the script, a list of packages, and stand-ins for what it calls."""
    for folder in ("scripts", "tests", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "tests" / "apt.txt").write_text(LIST)
    for program, body in STAND_INS.items():
        stand_in(tmp_path, program, body)
    return tmp_path


def stand_in(tree: Path, program: str, body: str) -> None:
    (tree / "bin" / program).write_text(f"#!/bin/sh\n{body}\n")
    (tree / "bin" / program).chmod(0o755)


def run(tree: Path, user: int) -> str:
    """What the script says to this user in a container."""
    stand_in(tree, "id", f"echo {user}")
    path = f"{tree / 'bin'}:{os.environ['PATH']}"
    done = finished(
        [tree / "scripts" / SCRIPT.name],
        env={"PATH": path, "HOME": str(tree), "container": "podman"},
        check=True,
    )
    return done.stdout


def test_as_root_in_a_container_it_announces_and_installs_what_is_missing(tree: Path) -> None:
    said = run(tree, user=0)
    assert said == "Installing the Debian packages that live tests need: absent absent-too needed\n"
    asked = (tree / "apt-get").read_text().splitlines()
    assert asked[0].startswith("update")
    assert asked[1].split()[-3:] == ["absent", "absent-too", "needed"]


def test_anybody_else_gets_one_line_to_run(tree: Path) -> None:
    said = run(tree, user=1000)
    assert said.count("\n") == 1
    assert said.endswith("apt-get install --no-install-recommends absent absent-too needed\n")
    assert not (tree / "apt-get").exists()


def test_where_nothing_is_missing_nothing_is_said(tree: Path) -> None:
    (tree / "tests" / "apt.txt").write_text("here\n")
    assert run(tree, user=0) == ""
    assert not (tree / "apt-get").exists()
