"""Runs git in a repository without hooks, questions to the user, or changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import UnusableInput

_FIXED_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",  # git must not change the user's index
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Environment variables that git always gets."""
_OPTIONS_AGAINST_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Options with which git runs no programs from the configuration of the repository."""
_HOOK_VARIABLES = frozenset(
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG GIT_DIR GIT_GRAFT_FILE "
    "GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE GIT_NAMESPACE GIT_NO_REPLACE_OBJECTS "
    "GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE "
    "GIT_WORK_TREE".split()
)
"""Variables of a git hook. With them, git would use another repository than the given folder."""


class Repository(Struct, frozen=True):
    """The user's repository, and the user's current folder in it."""

    top: Path
    inside: str
    """Current folder below ``top``; empty for ``top`` itself."""


def without_git_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that choose a repository."""
    return {key: value for key, value in environment.items() if key not in _HOOK_VARIABLES}


def shallow_suffix(repository: Repository) -> str:
    """Return the end of a message about a shallow clone; empty for a complete repository."""
    is_shallow = line_of(repository.top, "rev-parse", "--is-shallow-repository") == "true"
    return ", a shallow clone" if is_shallow else ""


def line_of(folder: Path, *arguments: str) -> str:
    """Return the single line that git prints."""
    return text_of(run_git(folder, *arguments))


def text_of(result: subprocess.CompletedProcess[bytes]) -> str:
    """Return the text that git printed, without the line end after it."""
    return os.fsdecode(result.stdout.removesuffix(b"\n"))


def run_git(
    folder: Path, *arguments: str, stdin: bytes | None = None, index_file: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, without hooks and without questions to the user."""
    environment = without_git_variables(os.environ)
    if index_file is not None:
        environment["GIT_INDEX_FILE"] = str(index_file)
    try:
        return subprocess.run(
            ["git", *_OPTIONS_AGAINST_HOOKS, *arguments],
            cwd=folder,
            env={**environment, **_FIXED_VARIABLES},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UnusableInput(
            "git is not installed, and Equipoise needs it to read revisions",
            hint="run `apt-get install git`, or compare two builds with `equipoise compare`",
        ) from None


def first_bytes_of_git(folder: Path, *arguments: str, max_bytes: int) -> bytes:
    """Return the start of what git prints: ``max_bytes`` + 1 bytes, so that a caller sees a cut.

    Raise `UnusableInput` if git fails.
    """
    with subprocess.Popen(
        ["git", *_OPTIONS_AGAINST_HOOKS, *arguments],
        cwd=folder,
        env={**without_git_variables(os.environ), **_FIXED_VARIABLES},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as git:
        assert git.stdout is not None
        output = git.stdout.read(max_bytes + 1)
        is_cut = len(output) > max_bytes
        if is_cut:
            git.kill()
    if git.returncode != 0 and not is_cut:
        raise UnusableInput(
            f"git {arguments[0]} fails in {folder}: exit status {git.returncode}",
            hint="run `git fsck` in your repository",
        )
    return output


class CheckoutFailed(UnusableInput):
    """Error that a revision cannot be checked out completely."""


def run_checkout_step(
    label: str, folder: Path, *arguments: str, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git for a checkout; raise `CheckoutFailed`, which names ``label``, if git fails."""
    return require_success(run_git(folder, *arguments, stdin=stdin), label)


def require_success(
    result: subprocess.CompletedProcess[bytes], label: str
) -> subprocess.CompletedProcess[bytes]:
    """Return the result of a checkout step; raise `CheckoutFailed` if git failed."""
    if result.returncode != 0:
        raise CheckoutFailed(
            f"git cannot check out {label}{reason_suffix(result)}",
            hint="run `git fsck` and `git submodule update --init` in your repository, and check "
            "whether the disk of TMPDIR or of EQUIPOISE_BUILDS is full",
        )
    return result


def reason_suffix(result: subprocess.CompletedProcess[bytes]) -> str:
    """Return the error message of git as the end of a sentence."""
    return stderr_suffix(result.stderr.decode("utf-8", "replace")).replace("; stderr: ", ": ")
