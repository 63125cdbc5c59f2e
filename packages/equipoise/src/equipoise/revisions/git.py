"""Running git in the user's repository: without hooks, without questions, and without writing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import UnusableInput

_HARMLESS = {
    "GIT_OPTIONAL_LOCKS": "0",  # git must not refresh the user's index
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_WITHOUT_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Options without which git runs programs that the repository's configuration names."""
_LOCAL_VARIABLES = frozenset(
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG GIT_DIR GIT_GRAFT_FILE "
    "GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE GIT_NAMESPACE GIT_NO_REPLACE_OBJECTS "
    "GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE "
    "GIT_WORK_TREE".split()
)
"""Variables that a git hook sets, and that would lead git back into the user's repository."""


class Repository(Struct, frozen=True):
    """The user's repository, and the folder in it that the user is in."""

    top: Path
    inside: str
    """Current folder below ``top``; empty for ``top`` itself."""


def without_git_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that name another repository than the folder."""
    return {key: value for key, value in environment.items() if key not in _LOCAL_VARIABLES}


def depth_of(repository: Repository) -> str:
    """Return the end of a message that says whether a repository is a shallow clone."""
    is_shallow = line_of(repository.top, "rev-parse", "--is-shallow-repository") == "true"
    return ", a shallow clone" if is_shallow else ""


def line_of(folder: Path, *arguments: str) -> str:
    """Return the line with which git answers."""
    return text_of(run_git(folder, *arguments))


def text_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git printed, without the line feed at its end."""
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


def run_git(
    folder: Path, *arguments: str, stdin: bytes | None = None, index: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, without hooks and without questions to the user."""
    environment = without_git_variables(os.environ)
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        return subprocess.run(
            ["git", *_WITHOUT_HOOKS, *arguments],
            cwd=folder,
            env={**environment, **_HARMLESS},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UnusableInput(
            "git is not installed, and it reads the revisions of a repository",
            hint="apt-get install git, or compare two builds with equipoise compare",
        ) from None


def first_bytes_of_git(folder: Path, *arguments: str, max_bytes: int) -> bytes:
    """Return the beginning of what git prints; at most one byte more than ``max_bytes``.

    Raise `UnusableInput` if git fails.
    """
    with subprocess.Popen(
        ["git", *_WITHOUT_HOOKS, *arguments],
        cwd=folder,
        env={**without_git_variables(os.environ), **_HARMLESS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as git:
        assert git.stdout is not None
        printed = git.stdout.read(max_bytes + 1)
        is_cut = len(printed) > max_bytes
        if is_cut:
            git.kill()
    if git.returncode != 0 and not is_cut:
        raise UnusableInput(
            f"git {arguments[0]} fails in {folder}: exit status {git.returncode}",
            hint="run `git fsck` in your repository",
        )
    return printed


class CheckoutFailed(UnusableInput):
    """A revision cannot be checked out as its sources are meant to be."""


def checked(
    label: str, folder: Path, *arguments: str, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git as a step of checking out; it must succeed."""
    return succeeded(run_git(folder, *arguments, stdin=stdin), label)


def succeeded(
    done: subprocess.CompletedProcess[bytes], label: str
) -> subprocess.CompletedProcess[bytes]:
    """Return a finished step of checking out ``label``, which must have succeeded."""
    if done.returncode != 0:
        raise CheckoutFailed(
            f"git cannot check out {label}{reason_of(done)}",
            hint="run `git fsck` and `git submodule update --init` in your repository, and check "
            "whether the disk of TMPDIR or of EQUIPOISE_BUILDS is full",
        )
    return done


def reason_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the end of a message with what git complained of."""
    return stderr_suffix(done.stderr.decode("utf-8", "replace")).replace("; stderr: ", ": ")
