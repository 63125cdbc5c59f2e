"""Two revisions of a git repository, each in a working tree of its own in a private folder.

A tree is a repository of its own that borrows the user's objects (``objects/info/alternates``,
gitrepository-layout(5)), not one of `git worktree`: nothing is written into the user's repository,
no hook of it runs, and what a killed gate leaves is one folder. Submodules that are checked out in
the user's tree are checked out in the same manner, from there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from equipoise.measure.untimed import stderr_suffix
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Revision

WORKING_TREE = "the working tree"
"""The candidate that nobody named."""
SIDES = ("old", "new")
"""The folders of the two: of equal length, so that no path is longer in one of them."""

_GITLINK = "160000"
_WHILE_WE_LOOK = {
    "GIT_OPTIONAL_LOCKS": "0",  # the user's index is not refreshed
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What a hook of git sets for its children: it would lead them back into the user's repository."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The user's repository, and where in it the user stands."""

    top: Path
    inside: str
    """The current folder below ``top``; empty for ``top`` itself."""


def without_git_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git finds the repository that it stands in."""
    return {key: value for key, value in environment.items() if key not in _LOCAL_VARIABLES}


def repository_at(folder: Path) -> Repository:
    """The repository whose working tree a folder is in.

    Raises
    ------
    UnusableInput
        git is not installed, or the folder is in no working tree.
    """
    # One at a time: a path may hold a newline.
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top.returncode != 0:
        raise UnusableInput(
            f"{folder} is in no git working tree that can be read{_said(top)}",
            hint="run it in the repository whose revisions are to be compared",
        )
    inside = _path_of(_git(folder, "rev-parse", "--show-prefix"))
    return Repository(Path(_path_of(top)), inside.removesuffix("/"))


def revision_named(repository: Repository, asked: str, option: str) -> Revision:
    """The commit that the user names.

    Parameters
    ----------
    option
        By which it was named, for the message.

    Raises
    ------
    UnusableInput
        There is no such commit here.
    """
    commit = _commit(repository.top, asked)
    if commit is None:
        raise UnusableInput(
            f"{option} {asked}: there is no such commit in {repository.top}{_depth(repository)}",
            hint="check its spelling; a shallow clone has it only after "
            "`git fetch --unshallow` (GitHub: fetch-depth: 0, GitLab: GIT_DEPTH: 0)",
        )
    return Revision(asked, commit)


def fork_point(repository: Repository, baseline: Revision, candidate: Revision) -> Revision:
    """The newest commit that both revisions come from: where the one left the other's branch.

    Raises
    ------
    UnusableInput
        There is none here.
    """
    done = _git(repository.top, "merge-base", baseline.commit, candidate.commit)
    if done.returncode != 0:
        raise UnusableInput(
            f"{baseline.shown} and {candidate.shown} have no commit in common in "
            f"{repository.top}{_depth(repository)}",
            hint="leave --merge-base out; a shallow clone has it only after "
            "`git fetch --unshallow` (GitHub: fetch-depth: 0, GitLab: GIT_DEPTH: 0)",
        )
    commit = done.stdout.decode().strip()
    if commit == baseline.commit:
        return baseline
    return Revision(f"the fork point from {baseline.asked}", commit)


def revision_of_working_tree(repository: Repository) -> Revision:
    """HEAD, with what was changed in tracked files since.

    Raises
    ------
    UnusableInput
        There is no commit yet.
    """
    head = revision_named(repository, "HEAD", "the candidate")
    done = _git(repository.top, *_DIFFERENCES, "--quiet", "HEAD")
    if done.returncode == 0:
        return head
    return Revision(WORKING_TREE, head.commit, uncommitted=True)


def untracked_files(repository: Repository) -> tuple[str, ...]:
    """The files that are in no revision and are not ignored, as git lists them."""
    listed = _git(repository.top, "ls-files", "--others", "--exclude-standard", "-z").stdout
    return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)


def changed_submodules(repository: Repository) -> tuple[str, ...]:
    """The submodules whose checked-out state is not the one that HEAD names, or has changes."""
    told = _git(repository.top, "diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "HEAD")
    fields = told.stdout.split(b"\0")
    return tuple(
        os.fsdecode(path)
        for described, path in zip(fields[0::2], fields[1::2], strict=False)
        if _GITLINK.encode() in described.split()[:2]
    )


def check_out(repository: Repository, revision: Revision, side: Path) -> Path:
    """Check a revision out into a new folder of the repository's own name.

    Parameters
    ----------
    side
        A folder that is there, for this revision alone.

    Returns
    -------
    The root of the working tree.

    Raises
    ------
    UnusableInput
        git cannot check it out.
    """
    tree = side / repository.top.name
    _check_out_commit(repository.top, revision.commit, tree)
    if revision.uncommitted:
        changes = _done(_git(repository.top, *_DIFFERENCES, "HEAD"), revision.shown)
        applied = _git(tree, "apply", "--whitespace=nowarn", "-", given=changes.stdout)
        _done(applied, revision.shown)
    return tree


_DIFFERENCES = (
    *("-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false"),
    *("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--no-renames", "--ignore-submodules=all"),
)


def _check_out_commit(source: Path, commit: str, tree: Path) -> None:
    shown = f"{commit} of {source}"
    # A repository of SHA-256 knows what kind it is; one of an old git is of the usual kind.
    kind = _git(source, "rev-parse", "--show-object-format").stdout.decode().strip() or "sha1"
    made = _git(source, "init", "--quiet", "--template=", f"--object-format={kind}", str(tree))
    _done(made, shown)
    own = tree / ".git"
    objects = _path_in(source, "objects")
    (own / "objects" / "info").mkdir(exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    shallow = _path_in(source, "shallow")
    if shallow.is_file():
        (own / "shallow").write_bytes(shallow.read_bytes())
    tags = _git(source, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
    _done(_git(tree, "update-ref", "--stdin", given=tags.stdout), shown)
    # Of a commit whose files are missing, a checkout makes an empty folder and is content.
    _done(_git(tree, "cat-file", "-e", f"{commit}^{{tree}}"), shown)
    checked_out = _git(tree, "checkout", "--quiet", "--detach", "--force", commit)
    _done(checked_out, shown)
    for path, of_submodule in _submodules(tree, commit):
        if (source / path / ".git").exists():
            (tree / path).rmdir()
            _check_out_commit(source / path, of_submodule, tree / path)


def _submodules(tree: Path, commit: str) -> list[tuple[str, str]]:
    """The path and the commit of each submodule."""
    listed = _git(tree, "ls-tree", "-r", "-z", commit).stdout.split(b"\0")
    found = []
    for entry in filter(None, listed):
        described, _, path = entry.partition(b"\t")
        mode, _, name = described.decode().split()
        if mode == _GITLINK:
            found.append((os.fsdecode(path), name))
    return found


def _quoted(path: Path) -> bytes:
    """A path as a line of ``objects/info/alternates``: in C's quotes, for it may hold a newline."""
    plain = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + plain + b'"'


def _path_in(source: Path, name: str) -> Path:
    return source / _path_of(_git(source, "rev-parse", "--git-path", name))


def _path_of(said: subprocess.CompletedProcess[bytes]) -> str:
    return os.fsdecode(said.stdout.removesuffix(b"\n"))


def _commit(top: Path, asked: str) -> str | None:
    if "\0" in asked:
        return None
    done = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}")
    return done.stdout.decode().strip() if done.returncode == 0 else None


def _depth(repository: Repository) -> str:
    told = _git(repository.top, "rev-parse", "--is-shallow-repository").stdout
    return ", a shallow clone" if told.strip() == b"true" else ""


def _git(
    folder: Path, *arguments: str, given: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, without hooks and without asking anybody anything."""
    environment = without_git_variables(os.environ)
    try:
        return subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=folder,
            env={**environment, **_WHILE_WE_LOOK},
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UnusableInput(
            "git is not installed, and a gate compares revisions of a git repository",
            hint="apt-get install git, or compare two builds with equipoise compare",
        ) from None


def _done(
    done: subprocess.CompletedProcess[bytes], shown: str
) -> subprocess.CompletedProcess[bytes]:
    if done.returncode != 0:
        raise UnusableInput(
            f"git cannot check out {shown}{_said(done)}",
            hint="look whether `git fsck` and `git submodule update --init` succeed in your "
            "repository, and whether the disk of TMPDIR is full",
        )
    return done


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return stderr_suffix(done.stderr.decode("utf-8", "replace")).replace("; stderr: ", ": ")
