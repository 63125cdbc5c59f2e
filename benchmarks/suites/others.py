"""Suites of other projects, unchanged: each is gated between two releases from its registry.

::

    python -m benchmarks.suites.others            # all
    python -m benchmarks.suites.others itoa       # one

A repository is made of two commits, each with all files of a release and nothing else. Prints, for
each project, the command that was typed, the seconds of the gate with its builds, and its answer.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environments import python_with

GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.com")
GATE_STATUSES = (0, 1)
"""Exit statuses of a gate that was measured."""


def get(url: str) -> bytes:
    """Return what an address of a registry has."""
    with urllib.request.urlopen(url, timeout=120) as response:
        content: bytes = response.read()
        return content


def unpack_tar(content: bytes, folder: Path) -> None:
    """Unpack an archive whose files are all in one folder."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive.getmembers():
            member.name = member.name.partition("/")[2]
            if member.name:
                archive.extract(member, folder, filter="data")


def fetch_crate(name: str, version: str, folder: Path) -> None:
    """Unpack a release from crates.io."""
    unpack_tar(get(f"https://static.crates.io/crates/{name}/{name}-{version}.crate"), folder)


def fetch_sdist(name: str, version: str, folder: Path) -> None:
    """Unpack the sources of a release from PyPI."""
    index = f"https://pypi.org/simple/{name}/"
    pattern = rf'href="([^"#]*-{re.escape(version)}\.tar\.gz)'
    found = re.search(pattern, get(index).decode())
    if found is None:
        raise SystemExit(f"PyPI has no sources of {name} {version}")
    unpack_tar(get(urllib.parse.urljoin(index, found[1])), folder)


def fetch_go_module(name: str, version: str, folder: Path) -> None:
    """Unpack a version of a module from Go's proxy."""
    prefix = f"{name}@v{version}/"
    with zipfile.ZipFile(
        io.BytesIO(get(f"https://proxy.golang.org/{name}/@v/v{version}.zip"))
    ) as archive:
        for member in archive.infolist():
            member.filename = member.filename.removeprefix(prefix)
            archive.extract(member, folder)


def fetch_npm_package(name: str, version: str, folder: Path) -> None:
    """Unpack a release from npm."""
    base = name.rpartition("/")[2]
    unpack_tar(get(f"https://registry.npmjs.org/{name}/-/{base}-{version}.tgz"), folder)


def fetch_maven_artifact(name: str, version: str, folder: Path) -> None:
    """Put the project file and the sources of a release from Maven Central where Maven has them."""
    group, artifact = name.split(":")
    base = f"https://repo1.maven.org/maven2/{group.replace('.', '/')}/{artifact}/{version}"
    (folder / "pom.xml").write_bytes(get(f"{base}/{artifact}-{version}.pom"))
    with zipfile.ZipFile(io.BytesIO(get(f"{base}/{artifact}-{version}-sources.jar"))) as archive:
        # The jar also has files that the compiler generated.
        sources = [
            name
            for name in archive.namelist()
            if not name.startswith("META-INF") and "jmh_generated" not in name
        ]
        archive.extractall(folder / "src/main/java", sources)


@dataclass(frozen=True)
class Project:
    """A project, two of its releases, and what its maintainer would type."""

    name: str
    fetch: Callable[[str, str, Path], None]
    releases: tuple[str, str]
    options: tuple[str, ...] = ()
    """Arguments of `equipoise gate` besides ``--baseline`` and ``--budget``."""
    packages: tuple[str, ...] = ()
    """Packages of PyPI that the suite needs."""


PROJECTS = (
    Project("itoa", fetch_crate, ("1.0.16", "1.0.17")),
    Project(
        "attrs",
        fetch_sdist,
        ("25.3.0", "25.4.0"),
        ("--kind", "pytest", "--", "python", "-m", "pytest", "-q", "bench"),
        packages=("pytest==9.2.0", "pytest-codspeed==5.0.4", "hypothesis==6.131.0"),
    ),
    Project(
        "pluggy",
        fetch_sdist,
        ("1.5.0", "1.6.0"),
        ("--kind", "pytest", "--", "python", "-m", "pytest", "-q", "testing/benchmark.py"),
        packages=("pytest==9.2.0", "pytest-benchmark==5.3.1"),
    ),
    Project("github.com/rivo/uniseg", fetch_go_module, ("0.4.6", "0.4.7")),
    Project("fast-json-stringify", fetch_npm_package, ("7.3.6", "7.3.10")),
    Project(
        "org.openjdk.jmh:jmh-samples",
        fetch_maven_artifact,
        ("1.36", "1.37"),
        (
            # The licence plugin of its parent needs files that no registry has.
            *("--build", "mvn -q -B -DskipTests -Dlicense.skip package"),
            *("--kind", "jmh", "--", "java", "-jar", "target/benchmarks.jar", "JMHSample_(08|10)"),
        ),
    ),
)


@dataclass(frozen=True)
class Answer:
    """How a gate ended."""

    typed: str
    seconds: float
    outcomes: Counter[str] = field(default_factory=Counter)
    summary: str = ""
    error: str = ""


def repository_of(project: Project, folder: Path) -> None:
    """Make a repository with one commit for each release."""
    subprocess.run([*GIT, "init", "--quiet", folder], check=True)
    for version in project.releases:
        subprocess.run([*GIT, "rm", "-r", "-q", "--ignore-unmatch", "."], cwd=folder, check=True)
        project.fetch(project.name, version, folder)
        # A release has files that its project ignores.
        subprocess.run([*GIT, "add", "--all", "--force"], cwd=folder, check=True)
        subprocess.run([*GIT, "commit", "--quiet", "-m", version], cwd=folder, check=True)


def gate(project: Project, folder: Path, budget: float) -> Answer:
    """Gate the later release against the earlier one."""
    arguments = ["--baseline", "HEAD~1", "--budget", f"{budget:g}", *project.options]
    variables = dict(os.environ)
    if project.packages:
        programs = python_with(*project.packages).parent
        variables["PATH"] = f"{programs}:{variables['PATH']}"
    result = folder / ".git/gate.json"
    began = time.perf_counter()
    done = subprocess.run(
        ["equipoise", "gate", "--json", str(result), *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    typed = shlex.join(["equipoise", "gate", *arguments])
    if done.returncode not in GATE_STATUSES or not result.exists():
        return Answer(typed, seconds, error=done.stderr.strip())
    answer: dict[str, Any] = json.loads(result.read_text())["gate"]
    outcomes = Counter(row["outcome"] for row in answer["rows"])
    return Answer(typed, seconds, outcomes, answer["summary"])


def main() -> int:
    """Gate the projects that were asked for, and print their answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="all projects by default")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of each gate")
    asked = parser.parse_args()
    unanswered = 0
    for project in PROJECTS:
        if asked.names and project.name not in asked.names:
            continue
        with tempfile.TemporaryDirectory(prefix="suites-of-others-") as parent:
            folder = Path(parent, project.name.rpartition("/")[2])
            repository_of(project, folder)
            answer = gate(project, folder, asked.budget)
        print(f"{project.name} {project.releases[0]} to {project.releases[1]}")
        print(f"  {answer.typed}")
        counts = ", ".join(f"{count} {outcome}" for outcome, count in answer.outcomes.items())
        print(f"  {answer.seconds:.0f} s: {counts or answer.error}", flush=True)
        if answer.summary:
            print(f"  {answer.summary}", flush=True)
        unanswered += not answer.outcomes
    return 1 if unanswered else 0


if __name__ == "__main__":
    sys.exit(main())
