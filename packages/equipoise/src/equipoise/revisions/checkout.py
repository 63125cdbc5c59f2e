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
from collections.abc import Iterator
from pathlib import Path

from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import Revision
from equipoise.revisions.git import (
    CheckoutFailed,
    Repository,
    checked,
    depth_of,
    line_of,
    reason_of,
    run_git,
    succeeded,
    text_of,
)

WORKING_TREE = "the working tree"
"""Name of the default candidate."""
SIDES = ("old", "new")
"""Folders of the two revisions. Their names have equal length, so that all paths have, too."""

_GITLINK = "160000"
_ENCODING_FILTERS = ("lfs", "git-crypt")
"""Filters without which a file is a pointer or a cipher, whatever the configuration says."""
UNSHALLOW = (
    "a shallow clone has it only after `git fetch --unshallow` (GitHub: fetch-depth: 0, "
    "GitLab: GIT_DEPTH: 0)"
)


def repository_at(folder: Path) -> Repository:
    """Return the repository whose working tree a folder is in.

    Raise `UnusableInput` if git is not installed, or the folder is in no working tree.
    """
    # One question at a time, because a path may hold a newline.
    top = run_git(folder, "rev-parse", "--show-toplevel")
    if top.returncode != 0:
        raise UnusableInput(
            f"{folder} is in no git working tree that can be read{reason_of(top)}",
            hint="run it in the repository whose revisions are to be compared",
        )
    inside = line_of(folder, "rev-parse", "--show-prefix")
    return Repository(Path(text_of(top)), inside.removesuffix("/"))


def revision_named(repository: Repository, name: str, option: str) -> Revision:
    """Return the commit that the user names with an option.

    Raise `UnusableInput` if the repository has no such commit.
    """
    question = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    # No argument of a program holds a null byte.
    done = None if "\0" in name else run_git(repository.top, *question)
    if done is None or done.returncode != 0:
        raise UnusableInput(
            f"{option} {name}: there is no such commit in {repository.top}{depth_of(repository)}",
            hint=_hint_for_missing(name),
        )
    return Revision(name, text_of(done))


def _hint_for_missing(name: str) -> str:
    """Return what to do about a name of a revision that is not a commit."""
    if name and not name.strip("0"):
        # CI services write zeros for the commit before the first one of a branch.
        return "the branch is new and has no earlier commit: name the branch that it comes from"
    if ".." in name:
        return "name one commit, not a range"
    return f"check its spelling; {UNSHALLOW}"


def fork_point(repository: Repository, baseline: Revision, candidate: Revision) -> Revision:
    """Return the latest common ancestor of two revisions.

    Raise `UnusableInput` if the repository has none.
    """
    done = run_git(repository.top, "merge-base", baseline.commit, candidate.commit)
    if done.returncode != 0:
        raise UnusableInput(
            f"{baseline.label} and {candidate.label} have no commit in common in "
            f"{repository.top}{depth_of(repository)}",
            hint=f"leave --merge-base out; {UNSHALLOW}",
        )
    commit = text_of(done)
    if commit == baseline.commit:
        return baseline
    return Revision(f"the fork point from {baseline.asked}", commit)


def revision_of_working_tree(repository: Repository) -> Revision:
    """Return HEAD, with the later changes of tracked files.

    Raise `UnusableInput` if the repository has no commit yet.
    """
    head = revision_named(repository, "HEAD", "the candidate")
    done = _differences(repository, "--quiet")
    if done.returncode == 0:
        return head
    return Revision(WORKING_TREE, head.commit, uncommitted=True)


def untracked_files(repository: Repository) -> tuple[str, ...]:
    """Return the files that are in no revision and not ignored."""
    listed = run_git(repository.top, "ls-files", "--others", "--exclude-standard", "-z").stdout
    return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)


def is_changed(repository: Repository, path: str) -> bool:
    """Return whether tracked files at a path, from the current folder, have changed since HEAD."""
    options = ("--quiet", "--no-ext-diff", "--ignore-submodules=all")
    path = os.path.join(repository.inside, path)
    return _diff(repository, *options, "HEAD", "--", path).returncode == 1


def changed_submodules(repository: Repository) -> tuple[str, ...]:
    """Return the submodules that are not at the commit that HEAD names, or have changes."""
    listed = _diff(repository, "--raw", "-z", "--no-renames", "--no-ext-diff", "HEAD")
    fields = listed.stdout.split(b"\0")
    return tuple(
        os.fsdecode(path)
        for described, path in zip(fields[0::2], fields[1::2], strict=False)
        if _GITLINK.encode() in described.split()[:2]
    )


def warnings_of_working_tree(
    repository: Repository, where: str, whole: str
) -> Iterator[CampaignWarning]:
    """Yield a warning for what of the working tree takes no part.

    It is in ``where``, such as "neither revision", and may belong to ``whole``: "the candidate".
    """
    submodules = changed_submodules(repository)
    if submodules:
        yield CampaignWarning(
            "changed_submodules",
            f"what changed in submodules is in {where}: {len(submodules)}, "
            f"{submodules[0]} among them",
            "commit it there, and here which commit is meant",
        )
    untracked = untracked_files(repository)
    if untracked:
        yield CampaignWarning(
            "untracked_files",
            f"untracked files of the working tree are in {where}: "
            f"{len(untracked)}, {untracked[0]} among them",
            f"git add what belongs to {whole}; .gitignore the rest",
        )


def changes_of_working_tree(repository: Repository) -> bytes:
    """Return the changes of tracked files since HEAD, as a patch.

    Raise `UnusableInput` if git cannot tell them.
    """
    return succeeded(_differences(repository), WORKING_TREE).stdout


def submodules_present(repository: Repository) -> tuple[str, ...]:
    """Return the paths of the submodules that are checked out in the user's tree."""
    listed = run_git(repository.top, "ls-files", "--stage", "-z").stdout.split(b"\0")
    paths = (
        os.fsdecode(path)
        for described, _, path in (entry.partition(b"\t") for entry in listed)
        if described.startswith(_GITLINK.encode())
    )
    return tuple(path for path in paths if (repository.top / path / ".git").exists())


def check_out(
    repository: Repository, revision: Revision, side: Path, changes: bytes | None = None
) -> Path:
    """Check a revision out into a new folder of the repository's own name; return that folder.

    ``side`` is an existing folder for this revision alone. ``changes`` are those of the working
    tree, if the revision has any; by default as they are now.

    Raise `CheckoutFailed` if git cannot check it out, or a filter of its files is not applied.
    """
    tree = side / repository.top.name
    _check_out_commit(repository.top, revision.commit, tree)
    if revision.uncommitted:
        patch = changes_of_working_tree(repository) if changes is None else changes
        checked(revision.label, tree, "apply", "--whitespace=nowarn", "-", stdin=patch)
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
    index = repository.top / line_of(repository.top, "rev-parse", "--git-path", "index")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "index"
        if index.is_file():
            # Its time tells git which of the files may have been changed after it was written.
            shutil.copy2(index, copy)
        return run_git(repository.top, "diff", *arguments, index=copy)


def _check_out_commit(source: Path, commit: str, tree: Path) -> None:
    label = f"{commit} of {source}"
    # An old git does not know the question: its repositories are all of SHA-1.
    kind = line_of(source, "rev-parse", "--show-object-format") or "sha1"
    init = ("init", "--quiet", "--template=", f"--object-format={kind}")
    checked(label, source, *init, str(tree))
    repository = tree / ".git"
    objects, shallow = (
        source / line_of(source, "rev-parse", "--git-path", name) for name in ("objects", "shallow")
    )
    (repository / "objects" / "info").mkdir(exist_ok=True)
    (repository / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    if shallow.is_file():
        (repository / "shallow").write_bytes(shallow.read_bytes())
    tags = run_git(source, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
    checked(label, tree, "update-ref", "--stdin", stdin=tags.stdout)
    # A checkout of a commit whose files are missing succeeds, with an empty folder.
    checked(label, tree, "cat-file", "-e", f"{commit}^{{tree}}")
    checked(label, tree, "checkout", "--quiet", "--detach", "--force", commit)
    _refuse_unapplied_filters(source, tree, label)
    for path, of_submodule in _submodules(tree, commit):
        if (source / path / ".git").exists():
            (tree / path).rmdir()
            _check_out_commit(source / path, of_submodule, tree / path)


def _refuse_unapplied_filters(source: Path, tree: Path, label: str) -> None:
    """Refuse a checkout of which files are what git stores, and not what a build reads.

    A filter such as that of LFS or git-crypt makes one of the other (gitattributes(5)). A checkout
    has the filters of the user's and the system's configuration, not those of one repository.
    """
    for name, path in _filtered_files(tree).items():
        if _filter_program(tree, name) is None and (
            name in _ENCODING_FILTERS or _filter_program(source, name) is not None
        ):
            raise CheckoutFailed(
                f"{path} of {label} needs the filter {name}, which the checkout does not have",
                hint=f"install the program of {name}, and configure it for your user: "
                f"git config --global filter.{name}.smudge …",
            )


def _filtered_files(tree: Path) -> dict[str, str]:
    """Return the filters that files of a checkout name, each with one of its files."""
    files = run_git(tree, "ls-files", "-z").stdout
    answers = run_git(tree, "check-attr", "-z", "--stdin", "filter", stdin=files).stdout
    fields = [os.fsdecode(field) for field in answers.split(b"\0")]
    return {
        name: path
        for path, name in zip(fields[0::3], fields[2::3], strict=False)
        if name not in ("unspecified", "unset", "set")
    }


def _filter_program(folder: Path, name: str) -> str | None:
    """Return the program that a filter runs on a checkout; ``None`` if there is none."""
    keys = (f"filter.{name}.process", f"filter.{name}.smudge")
    return next(filter(None, (line_of(folder, "config", "--get", key) for key in keys)), None)


def _submodules(tree: Path, commit: str) -> list[tuple[str, str]]:
    """Return the path and the commit of each submodule."""
    listed = run_git(tree, "ls-tree", "-r", "-z", commit).stdout.split(b"\0")
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
