"""Two revisions of a git repository, each in a working tree of its own in a private folder.

A tree is a repository of its own that borrows the user's objects (``objects/info/alternates``,
gitrepository-layout(5)), not one of `git worktree`. So nothing is written into the user's
repository, none of its hooks runs, and a killed gate leaves one folder. Submodules that are checked
out in the user's tree are checked out in the same way, from there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Revision

WORKING_TREE = "the working tree"
"""Name of the default candidate."""
SIDES = ("old", "new")
"""Folders of the two revisions. Their names have equal length, so that all paths have, too."""

_GITLINK = "160000"
_UNSHALLOW = (
    "a shallow clone has it only after `git fetch --unshallow` (GitHub: fetch-depth: 0, "
    "GitLab: GIT_DEPTH: 0)"
)
_HARMLESS = {
    "GIT_OPTIONAL_LOCKS": "0",  # git must not refresh the user's index
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_WITHOUT_HOOKS = ("-c", "core.hooksPath=/dev/null")
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


def repository_at(folder: Path) -> Repository:
    """Return the repository whose working tree a folder is in.

    Raises
    ------
    UnusableInput
        git is not installed, or the folder is in no working tree.
    """
    # One question at a time, because a path may hold a newline.
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top.returncode != 0:
        raise UnusableInput(
            f"{folder} is in no git working tree that can be read{_reason(top)}",
            hint="run it in the repository whose revisions are to be compared",
        )
    inside = _line(folder, "rev-parse", "--show-prefix")
    return Repository(Path(_text(top)), inside.removesuffix("/"))


def revision_named(repository: Repository, name: str, option: str) -> Revision:
    """Return the commit that the user names with an option.

    Raises
    ------
    UnusableInput
        The repository has no such commit.
    """
    question = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    # No argument of a program holds a null byte.
    commit = "" if "\0" in name else _line(repository.top, *question)
    if not commit:
        raise UnusableInput(
            f"{option} {name}: there is no such commit in {repository.top}{_depth(repository)}",
            hint=f"check its spelling; {_UNSHALLOW}",
        )
    return Revision(name, commit)


def fork_point(repository: Repository, baseline: Revision, candidate: Revision) -> Revision:
    """Return the latest common ancestor of two revisions.

    Raises
    ------
    UnusableInput
        The repository has none.
    """
    done = _git(repository.top, "merge-base", baseline.commit, candidate.commit)
    if done.returncode != 0:
        raise UnusableInput(
            f"{baseline.label} and {candidate.label} have no commit in common in "
            f"{repository.top}{_depth(repository)}",
            hint=f"leave --merge-base out; {_UNSHALLOW}",
        )
    commit = _text(done)
    if commit == baseline.commit:
        return baseline
    return Revision(f"the fork point from {baseline.asked}", commit)


def revision_of_working_tree(repository: Repository) -> Revision:
    """Return HEAD, with the later changes of tracked files.

    Raises
    ------
    UnusableInput
        The repository has no commit yet.
    """
    head = revision_named(repository, "HEAD", "the candidate")
    done = _differences(repository, "--quiet")
    if done.returncode == 0:
        return head
    return Revision(WORKING_TREE, head.commit, uncommitted=True)


def untracked_files(repository: Repository) -> tuple[str, ...]:
    """Return the files that are in no revision and not ignored."""
    listed = _git(repository.top, "ls-files", "--others", "--exclude-standard", "-z").stdout
    return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)


def changed_submodules(repository: Repository) -> tuple[str, ...]:
    """Return the submodules that are not at the commit that HEAD names, or have changes."""
    listed = _diff(repository, "--raw", "-z", "--no-renames", "--no-ext-diff", "HEAD")
    fields = listed.stdout.split(b"\0")
    return tuple(
        os.fsdecode(path)
        for described, path in zip(fields[0::2], fields[1::2], strict=False)
        if _GITLINK.encode() in described.split()[:2]
    )


def check_out(repository: Repository, revision: Revision, side: Path) -> Path:
    """Check a revision out into a new folder of the repository's own name; return that folder.

    ``side`` is an existing folder for this revision alone.

    Raises
    ------
    UnusableInput
        git cannot check it out.
    """
    tree = side / repository.top.name
    _check_out_commit(repository.top, revision.commit, tree)
    if revision.uncommitted:
        changes = _succeeded(_differences(repository), revision.label)
        apply = ("apply", "--whitespace=nowarn", "-")
        _checked(revision.label, tree, *apply, stdin=changes.stdout)
    return tree


def _differences(repository: Repository, *how: str) -> subprocess.CompletedProcess[bytes]:
    """Return the changes of tracked files since HEAD, as a patch if ``how`` says no other form."""
    options = (
        *("--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--no-renames", "--ignore-submodules=all"),
    )
    return _diff(repository, *options, *how, "HEAD")


def _diff(repository: Repository, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git diff on a copy of the index, which it refreshes even where locks are optional."""
    index = repository.top / _line(repository.top, "rev-parse", "--git-path", "index")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "index"
        if index.is_file():
            # Its time tells git which of the files may have been changed after it was written.
            shutil.copy2(index, copy)
        return _git(repository.top, "diff", *arguments, index=copy)


def _check_out_commit(source: Path, commit: str, tree: Path) -> None:
    label = f"{commit} of {source}"
    # An old git does not know the question: its repositories are all of SHA-1.
    kind = _line(source, "rev-parse", "--show-object-format") or "sha1"
    init = ("init", "--quiet", "--template=", f"--object-format={kind}")
    _checked(label, source, *init, str(tree))
    repository = tree / ".git"
    objects, shallow = (
        source / _line(source, "rev-parse", "--git-path", name) for name in ("objects", "shallow")
    )
    (repository / "objects" / "info").mkdir(exist_ok=True)
    (repository / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    if shallow.is_file():
        (repository / "shallow").write_bytes(shallow.read_bytes())
    tags = _git(source, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
    _checked(label, tree, "update-ref", "--stdin", stdin=tags.stdout)
    # A checkout of a commit whose files are missing succeeds, with an empty folder.
    _checked(label, tree, "cat-file", "-e", f"{commit}^{{tree}}")
    _checked(label, tree, "checkout", "--quiet", "--detach", "--force", commit)
    for path, of_submodule in _submodules(tree, commit):
        if (source / path / ".git").exists():
            (tree / path).rmdir()
            _check_out_commit(source / path, of_submodule, tree / path)


def _submodules(tree: Path, commit: str) -> list[tuple[str, str]]:
    """Return the path and the commit of each submodule."""
    listed = _git(tree, "ls-tree", "-r", "-z", commit).stdout.split(b"\0")
    submodules = []
    for entry in filter(None, listed):
        described, _, path = entry.partition(b"\t")
        mode, _, name = described.decode().split()
        if mode == _GITLINK:
            submodules.append((os.fsdecode(path), name))
    return submodules


def _quoted(path: Path) -> bytes:
    """Return a path as a line of ``objects/info/alternates``, quoted as in C."""
    plain = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + plain + b'"'


def _depth(repository: Repository) -> str:
    is_shallow = _line(repository.top, "rev-parse", "--is-shallow-repository") == "true"
    return ", a shallow clone" if is_shallow else ""


def _line(folder: Path, *arguments: str) -> str:
    """Return the line with which git answers."""
    return _text(_git(folder, *arguments))


def _text(done: subprocess.CompletedProcess[bytes]) -> str:
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


def _git(
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
            "git is not installed, and a gate compares revisions of a git repository",
            hint="apt-get install git, or compare two builds with equipoise compare",
        ) from None


def _checked(
    label: str, folder: Path, *arguments: str, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git as a step of checking out; it must succeed."""
    return _succeeded(_git(folder, *arguments, stdin=stdin), label)


def _succeeded(
    done: subprocess.CompletedProcess[bytes], label: str
) -> subprocess.CompletedProcess[bytes]:
    if done.returncode != 0:
        raise UnusableInput(
            f"git cannot check out {label}{_reason(done)}",
            hint="run `git fsck` and `git submodule update --init` in your repository, and check "
            "whether the disk of TMPDIR is full",
        )
    return done


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    return stderr_suffix(done.stderr.decode("utf-8", "replace")).replace("; stderr: ", ": ")
