"""The key of a build: a digest of all that decides what a build makes.

These are the sources (the tree of the commit, changes of the working tree, and which submodules are
checked out), the folder and the line that builds, the toolchain, and the environment. Variables
that only tell of the terminal or the session are left out: with them no build would ever be used
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.measure.environment import snapshot
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Revision
from equipoise.revisions.benchmarks import BenchmarkTool
from equipoise.revisions.checkout import changes_of_working_tree, submodules_present
from equipoise.revisions.git import Repository, without_git_variables

DIGITS = 32
"""Number of hexadecimal digits of a key; equal for all, so that all paths are equally long."""
_FORM = 1
_TOOLS = (
    *("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "ld.lld", "mold", "as", "ar", "nasm"),
    *("make", "cmake", "ninja", "meson", "bazel", "rustc", "cargo", "go", "zig", "swift", "ghc"),
    *("gfortran", "python", "python3", "node", "npm", "ruby", "perl", "java", "javac", "gradle"),
    *("mvn", "dotnet", "ocaml", "dune", "tcc"),
)
"""Programs of which a build may use another version tomorrow."""
_VERSIONS = (("rustc", "-vV"), ("go", "version"))
"""Programs that only stand for the toolchain which they choose."""
_PATIENCE_S = 20.0
_SESSION = frozenset(
    "PWD OLDPWD SHLVL _ TERM COLORTERM COLUMNS LINES DISPLAY WAYLAND_DISPLAY WINDOWID STY TMUX "
    "TMUX_PANE LS_COLORS PS1 PS2 PROMPT_COMMAND HISTFILE HISTSIZE PAGER LESS EDITOR VISUAL TMPDIR "
    "TEMP TMP MAIL LOGNAME DBUS_SESSION_BUS_ADDRESS GPG_AGENT_INFO GPG_TTY INVOCATION_ID "
    "JOURNAL_STREAM NO_COLOR FORCE_COLOR CLICOLOR BUILD_ID BUILD_NUMBER CI_JOB_ID "
    "CI_PIPELINE_ID CI_COMMIT_SHA EQUIPOISE_ALLOW_CONCURRENT EQUIPOISE_LEDGER EQUIPOISE_BUILDS "
    "EQUIPOISE_BUILDS_GIB".split()
)
_SESSION_PREFIXES = ("SSH_", "XDG_", "VTE_", "KONSOLE_", "ITERM_", "TERM_") + (
    *("GNOME_", "KDE_", "VSCODE_", "GITHUB_", "RUNNER_", "SUDO_", "PYTEST_", "COV_"),
)


class Recipe(Struct, frozen=True):
    """How the revisions of a repository are built, and on which host with which tools."""

    repository: Repository
    line: str | None
    """Line for a shell that builds a revision; ``None`` if it only has to be checked out."""
    tool: BenchmarkTool | None
    tools: str
    """Digest of the toolchain and the host; empty without a line."""
    environment: str
    """Digest of the environment; empty without a line."""
    submodules: tuple[str, ...]
    """Paths of the submodules that are checked out in the user's tree, and so in each build."""

    def variables(self, tree: str) -> dict[str, str]:
        """Return the variables that the benchmark tool needs in a working tree."""
        return tool_variables(self.tool, tree, str(self.repository.top))


class Source(Struct, frozen=True):
    """The sources of a build."""

    revision: Revision
    tree: str
    """Name of the commit's tree."""
    changes: str = ""
    """Digest of the changes of the working tree, if it is one."""


def tool_variables(tool: BenchmarkTool | None, tree: str, own: str) -> dict[str, str]:
    """Return the variables of a benchmark tool in a working tree, beside the user's own tree."""
    variables: Mapping[str, str] = {} if tool is None else tool.environment
    return {
        name: value.replace("{tree}", tree).replace("{own}", own)
        for name, value in variables.items()
    }


def recipe_of(
    repository: Repository,
    line: str | None,
    tool: BenchmarkTool | None,
    environment: Mapping[str, str],
) -> Recipe:
    """Return how revisions are built here and now."""
    submodules = submodules_present(repository)
    if line is None:
        return Recipe(repository, line, tool, "", "", submodules)
    kept = {
        name: value
        for name, value in without_git_variables(environment).items()
        if name not in _SESSION and not name.startswith(_SESSION_PREFIXES)
    }
    tools = digest_of_toolchain(line, environment, repository)
    return Recipe(repository, line, tool, tools, digest(sorted(kept.items())), submodules)


def digest_of_toolchain(line: str, environment: Mapping[str, str], repository: Repository) -> str:
    """Return the digest of the tools that a line for a shell may use, and of the processor."""
    search_path = environment.get("PATH", os.defpath)
    return digest(sorted(set(_toolchain(line, search_path, repository))))


def source_of(repository: Repository, revision: Revision, trees: Mapping[str, str]) -> Source:
    """Return the sources of a revision, given the names of the trees of commits."""
    tree = trees[revision.commit]
    if not revision.uncommitted:
        return Source(revision, tree)
    return Source(revision, tree, digest_of_changes(changes_of_working_tree(repository)))


def digest_of_changes(changes: bytes) -> str:
    """Return the digest of the changes of a working tree."""
    return hashlib.sha256(changes).hexdigest()


def key_of(recipe: Recipe, source: Source) -> str:
    """Return the key of a build."""
    repository = recipe.repository
    return digest(
        [
            _FORM,
            str(repository.top),
            repository.inside,
            source.tree,
            source.changes,
            recipe.submodules,
            recipe.line,
            [] if recipe.tool is None else sorted(recipe.tool.environment.items()),
            recipe.tools,
            recipe.environment,
        ]
    )


def files_until(tree: Path, moment_ns: int) -> str:
    """Return the digest of the files that were last written until a moment: names, sizes, times."""
    files = []
    for around, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(around, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if status.st_mtime_ns <= moment_ns:
                    files.append((path, status.st_size, status.st_mtime_ns))
    return digest(sorted(files))


def _toolchain(line: str, search_path: str, repository: Repository) -> Iterator[str]:
    """Yield what tells one toolchain from another: programs, their versions, and the host."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    for name in (*_TOOLS, *words):
        program = shutil.which(name, path=search_path)
        # A program of the repository belongs to its sources.
        if program is not None and os.path.isabs(program):
            status = os.stat(program)
            real = os.path.realpath(program)
            yield f"{program} {real} {status.st_size} {status.st_mtime_ns}"
    for name, option in _VERSIONS:
        program = shutil.which(name, path=search_path)
        if program is not None:
            yield _printed(program, option, repository)
    host = snapshot()
    yield f"{platform.machine()} {host.get('cpu_model')} {' '.join(platform.libc_ver())}"


def _printed(program: str, option: str, repository: Repository) -> str:
    try:
        done = subprocess.run(
            [program, option],
            cwd=repository.top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableInput(
            f"{program} {option} does not tell its version: {error}",
            hint="try it by hand in the repository, or take it out of PATH",
        ) from None
    return done.stdout.decode("utf-8", "replace")


def digest(content: object) -> str:
    """Return the digest of nested lists, numbers and texts."""
    # Paths and variables may hold bytes that are no text; `ascii` tells all of them apart.
    return hashlib.sha256(ascii(content).encode("ascii")).hexdigest()[:DIGITS]
