"""The files that a benchmark runs, and the diffs that touch it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.model.plan import Condition, Process
from equipoise.model.revisions import Revision
from equipoise.revisions.checkout import changes_between
from equipoise.revisions.executed_files import (
    Changes,
    ObservedFiles,
    changes_of,
    differ_inside_functions,
    observe_files,
    tracked_blobs,
)
from equipoise.revisions.git import Repository
from equipoise.revisions.plan import Checkout
from packages.equipoise.tests.repositories import MadeRepository, repository

MODULES = {"pkg/__init__.py", "pkg/parse.py", "pkg/render.py"}
"""Modules that `import pkg.parse, pkg.render` imports."""
SCRIPTS = {
    "parse.py": "import pkg.parse, pkg.render\npkg.parse.parse()\n",
    "reads.py": "import pkg.render\nopen('data.txt').read()\n",
    "child.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'parse.py'])\n",
    "shell.py": "import subprocess\nsubprocess.run(['true'])\n",
    "fork.py": "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n",
    "profiled.py": "import sys\nsys.setprofile(None)\n",
    "copy.py": "import sys\nsys.path.insert(0, 'env/site-packages')\nimport built\nbuilt.parse()\n",
    "generated.py": "import made\n",
    "fails.py": "1 / 0\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> MadeRepository:
    """A repository with scripts, and with files that a build made."""
    project = repository(tmp_path_factory.mktemp("observed") / "project")
    for name, text in SCRIPTS.items():
        project.write(name, text)
    project.write("pkg/__init__.py", "")
    project.write("pkg/parse.py", "def parse():\n    return 1\n")
    project.write("pkg/render.py", "SIZE = 1\ndef render():\n    return SIZE\n")
    project.write("data.txt", "words\n")
    project.write("run.sh", "#!/bin/sh\ntrue\n", executable=True)
    project.write(".gitignore", "env\nmade.py\n__pycache__\n")
    project.commit()
    project.write("env/site-packages/built.py", "def parse():\n    return 1\n")
    project.write("env/site-packages/dependency.py", "")
    project.write("made.py", "SIZE = 1\n")
    return project


def observed(project: MadeRepository, scratch: Path, *command: str) -> ObservedFiles | None:
    commit = project.git("rev-parse", "HEAD").strip()
    owner = Repository(project.path, "")
    checkout = Checkout("baseline", Revision("HEAD", commit), project.path, owner)
    condition = Condition(
        "one", command, environment={}, process=Process(working_folder=str(project.path))
    )
    blobs = tracked_blobs(owner, commit)
    assert set(SCRIPTS) < set(blobs)
    return observe_files(condition, checkout, blobs, None, scratch, 60.0)


def interpreters() -> Iterator[str]:
    """This Python and, as later ones report functions in another way, those of the host."""
    yield sys.executable
    for name in ("python3.12", "python3.13", "python3.14"):
        path = shutil.which(name)
        # A launcher may exist without the Python that it launches.
        if path is not None and subprocess.run([path, "-c", ""], check=False).returncode == 0:
            yield path


def test_functions_that_ran_are_told_from_modules_that_were_imported(
    project: MadeRepository, tmp_path: Path
) -> None:
    # In the second run, Python reads its cached modules.
    for python in (sys.executable, *interpreters()):
        files = observed(project, tmp_path, python, "parse.py")
        assert files is not None
        assert files.unknown_because is None
        assert files.ran == {"pkg/parse.py"}
        assert files.read == {"parse.py", "pkg/__init__.py", "pkg/render.py"}


def test_an_opened_file_and_a_recorded_child_are_known(
    project: MadeRepository, tmp_path: Path
) -> None:
    files = observed(project, tmp_path, sys.executable, "reads.py")
    assert files == ObservedFiles(
        frozenset(), frozenset({"reads.py", "data.txt", "pkg/__init__.py", "pkg/render.py"})
    )
    files = observed(project, tmp_path, sys.executable, "child.py")
    assert files is not None
    assert files.unknown_because is None
    assert files.ran == {"pkg/parse.py"}
    assert {"child.py", "parse.py"} < files.read


def test_an_installed_copy_counts_as_its_source(project: MadeRepository, tmp_path: Path) -> None:
    files = observed(project, tmp_path, sys.executable, "copy.py")
    assert files == ObservedFiles(frozenset({"pkg/parse.py"}), frozenset({"copy.py"}))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((sys.executable, "shell.py"), "it starts other programs"),
        ((sys.executable, "fork.py"), "it starts other programs"),
        pytest.param(
            (sys.executable, "profiled.py"),
            "it sets a profile function",
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 12), reason="sys.monitoring needs no profile function"
            ),
        ),
        ((sys.executable, "generated.py"), "it uses made.py, which is not in git"),
        (("./run.sh",), "it is not a program of Python"),
    ],
)
def test_what_was_not_seen_makes_a_benchmark_unknown(
    project: MadeRepository, tmp_path: Path, command: tuple[str, ...], reason: str
) -> None:
    files = observed(project, tmp_path, *command)
    assert files is not None
    assert files.unknown_because == reason
    assert command[-1].removeprefix("./") in files.read


def test_a_run_that_fails_is_no_evidence(project: MadeRepository, tmp_path: Path) -> None:
    assert observed(project, tmp_path, sys.executable, "fails.py") is None


BEFORE = """
SIZE = 1
def run(n):
    return n
class Base:
    def go(self):
        return SIZE
@register
def plugin():
    pass
"""


@pytest.mark.parametrize(
    ("old", "new", "is_inside"),
    [
        ("return n", "return n + 1", True),
        ("return SIZE", "return 2 * SIZE", True),
        ("SIZE = 1", "# A comment.\nSIZE = 1", True),
        ("SIZE = 1", '"""A docstring."""\nSIZE = 1', True),
        ("def run(n):", "def other():\n    pass\ndef run(n):", True),
        ("SIZE = 1", "SIZE = 2", False),
        (
            "def go(self):",
            "def __eq__(self, other):\n        return True\n    def go(self):",
            False,
        ),
        ("@register", "@register(1)", False),
        ("class Base:", "class Base(object):", False),
        ("return n", "return (", False),
    ],
)
def test_only_bodies_and_new_functions_of_a_module_wait_for_a_call(
    old: str, new: str, *, is_inside: bool
) -> None:
    after = BEFORE.replace(old, new)
    assert after != BEFORE
    assert differ_inside_functions(BEFORE.encode(), after.encode()) is is_inside


def test_a_diff_touches_what_ran_and_what_an_import_changes(
    project: MadeRepository, tmp_path: Path
) -> None:
    other = repository(tmp_path / "other")
    for name in MODULES:
        other.write(name, (project.path / name).read_text())
    other.write("data.txt", "words\n")
    before = other.commit()
    other.git("worktree", "add", "--quiet", str(tmp_path / "before"), before)
    other.write("pkg/render.py", "SIZE = 1\ndef render():\n    return 2 * SIZE\n")
    other.write("data.txt", "other words\n")
    after = other.commit()
    owner = Repository(other.path, "")
    revisions = Revision("before", before), Revision("after", after)
    assert changes_between(owner, *revisions) == ("data.txt", "pkg/render.py")
    changes = changes_of(owner, *revisions, (tmp_path / "before", other.path))
    assert changes == Changes(frozenset({"pkg/render.py"}), frozenset({"data.txt"}))
    assert changes.touch(ObservedFiles(frozenset({"pkg/render.py"})))
    assert not changes.touch(ObservedFiles(frozenset({"pkg/parse.py"}), frozenset(MODULES)))
    assert changes.touch(ObservedFiles(frozenset(), frozenset({"data.txt"})))
    # The changes of the working tree are those since its commit.
    other.write("pkg/parse.py", "SIZE = 2\n")
    working_tree = Revision("the working tree", after, uncommitted=True)
    assert changes_between(owner, Revision("after", after), working_tree) == ("pkg/parse.py",)


def test_a_build_may_read_any_file_that_is_neither_python_nor_documentation() -> None:
    changes = Changes(
        frozenset({"pkg/parse.py"}),
        frozenset({"README.md", "pkg/new.py", "setup.py", "src/fast.c", "pyproject.toml"}),
    )
    assert list(changes.build_inputs) == ["pyproject.toml", "setup.py", "src/fast.c"]
