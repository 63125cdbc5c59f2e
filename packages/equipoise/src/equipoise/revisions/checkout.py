"""Checks out revisions of a git repository, each in a separate working tree.

Each working tree is a separate repository that reads the objects of the user's repository
(``objects/info/alternates``, gitrepository-layout(5)). So nothing is written into the user's
repository, and none of its hooks runs. Submodules of the user's working tree are copied, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from equipoise.measure.trials import own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import listed
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import Revision
from equipoise.revisions.git import (
    CheckoutFailed,
    Repository,
    line_of,
    reason_suffix,
    require_success,
    run_checkout_step,
    run_git,
    shallow_suffix,
    text_of,
)
from equipoise.shared.spelling import option

WORKING_TREE = "the working tree"
"""Name of the default candidate."""
REVISION_FOLDERS = ("old", "new")
"""Folders of the revisions of a gate. These names, and so all paths, have the same length."""

_SUBMODULE_MODE = "160000"
"""Mode with which git lists a submodule."""
_ENCODING_FILTERS = ("lfs", "git-crypt")
"""Filters that each checkout needs: without them, files stay encrypted, or pointers to files."""
UNSHALLOW_HINT = (
    "in a shallow clone, first run `git fetch --unshallow` (GitHub: fetch-depth: 0, GitLab: "
    "GIT_DEPTH: 0)"
)
"""Part of a hint about missing commits."""


def repository_at(folder: Path) -> Repository:
    """Return the repository whose working tree contains a folder.

    Raise `UnusableInput` if git is not installed, or the folder is not in a working tree.
    """
    # Paths may contain line ends, so each call prints a single path.
    top = run_git(folder, "rev-parse", "--show-toplevel")
    if top.returncode != 0:
        raise UnusableInput(
            f"{folder} is not in a readable git working tree{reason_suffix(top)}",
            hint="run the command in the repository whose revisions you want to compare",
        )
    inside = line_of(folder, "rev-parse", "--show-prefix")
    return Repository(Path(text_of(top)), inside.removesuffix("/"))


def find_revision(repository: Repository, name: str, option: str) -> Revision:
    """Return the commit that the user names with an option.

    Raise `UnusableInput` if the repository has no such commit.
    """
    query = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    # Arguments of programs cannot contain null bytes.
    result = None if "\0" in name else run_git(repository.top, *query)
    if result is None or result.returncode != 0:
        suffix = shallow_suffix(repository)
        raise UnusableInput(
            f"{option} {name}: there is no such commit in {repository.top}{suffix}",
            hint=_missing_commit_hint(name),
        )
    return Revision(name, text_of(result))


def _missing_commit_hint(name: str) -> str:
    if name and not name.strip("0"):
        # For the first commit of a branch, CI services write zeros as the earlier commit.
        return "the branch is new and has no earlier commit: name the branch from which it comes"
    if ".." in name:
        return "name one commit, not a range"
    return f"check the spelling of the revision; {UNSHALLOW_HINT}"


def fork_point(repository: Repository, baseline: Revision, candidate: Revision) -> Revision:
    """Return the latest common ancestor of two revisions.

    Raise `UnusableInput` if the repository has none.
    """
    result = run_git(repository.top, "merge-base", baseline.commit, candidate.commit)
    if result.returncode != 0:
        raise UnusableInput(
            f"{baseline.label} and {candidate.label} have no commit in common in "
            f"{repository.top}{shallow_suffix(repository)}",
            hint=f"leave out --merge-base, or {UNSHALLOW_HINT}",
        )
    commit = text_of(result)
    if commit == baseline.commit:
        return baseline
    return Revision(f"the fork point from {baseline.typed_name}", commit)


_BRANCH_VARIABLES = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""Variables with which CI services name the branch into which a change is merged."""


def default_branch(repository: Repository) -> Revision:
    """Return the branch into which changes are merged.

    A CI service names it; else it is the default branch of the remote ``origin``, ``main`` or
    ``master``. Raise `UnusableInput` if the repository has none of these branches.
    """
    environment = own_environment()
    merged_into = [environment.get(variable) for variable in _BRANCH_VARIABLES]
    remote_head = line_of(
        repository.top, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"
    )
    names = [f"origin/{name}" for name in merged_into if name]
    names += filter(None, (remote_head, "origin/main", "origin/master", "main", "master"))
    for name in names:
        query = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        commit = line_of(repository.top, *query)
        if commit:
            return Revision(name, commit)
    raise UnusableInput(
        f"{repository.top} has no branch {' or '.join(dict.fromkeys(names))}"
        f"{shallow_suffix(repository)}",
        hint=f"name the revision to compare with: {option('baseline', 'REV')}; {UNSHALLOW_HINT}",
    )


def revision_of_working_tree(repository: Repository) -> Revision:
    """Return HEAD, or the working tree if its tracked files have changed since HEAD.

    Raise `UnusableInput` if the repository has no commit yet.
    """
    head = find_revision(repository, "HEAD", "the candidate")
    result = _diff_to_head(repository, "--quiet")
    if result.returncode == 0:
        return head
    return Revision(WORKING_TREE, head.commit, uncommitted=True)


def untracked_files(repository: Repository) -> tuple[str, ...]:
    """Return the files of the working tree that are neither tracked nor ignored by git."""
    names = run_git(repository.top, "ls-files", "--others", "--exclude-standard", "-z").stdout
    return tuple(os.fsdecode(name) for name in names.split(b"\0") if name)


def is_changed(repository: Repository, path: str) -> bool:
    """Return whether tracked files at a path have changed since HEAD."""
    options = ("--quiet", "--no-ext-diff", "--ignore-submodules=all")
    path = os.path.join(repository.inside, path)
    return _run_diff(repository, *options, "HEAD", "--", path).returncode == 1


def changes_between(
    repository: Repository, baseline: Revision, candidate: Revision
) -> tuple[str, ...]:
    """Return the paths of the tracked files that differ between two revisions.

    A renamed file has both paths. Raise `UnusableInput` if git fails.
    """
    options = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty")
    revisions = [baseline.commit, *(() if candidate.uncommitted else (candidate.commit,))]
    result = _run_diff(repository, *options, *revisions, "--")
    names = require_success(result, candidate.label).stdout.split(b"\0")
    return tuple(os.fsdecode(name) for name in names if name)


def patch_between(repository: Repository, baseline: Revision, candidate: Revision) -> bytes:
    """Return the changes of tracked files between two revisions, without context.

    A renamed file is removed and added. Raise `UnusableInput` if git fails.
    """
    options = (
        *("--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all"),
    )
    revisions = [baseline.commit, *(() if candidate.uncommitted else (candidate.commit,))]
    result = _run_diff(repository, *options, *revisions, "--")
    return require_success(result, candidate.label).stdout


def changed_submodules(repository: Repository) -> tuple[str, ...]:
    """Return the submodules that differ from the commit in HEAD, or have uncommitted changes."""
    result = _run_diff(repository, "--raw", "-z", "--no-renames", "--no-ext-diff", "HEAD")
    fields = result.stdout.split(b"\0")
    return tuple(
        os.fsdecode(path)
        for modes, path in zip(fields[0::2], fields[1::2], strict=False)
        if _SUBMODULE_MODE.encode() in modes.split()[:2]
    )


def warnings_of_working_tree(
    repository: Repository, holder: str, owner: str
) -> Iterator[CampaignWarning]:
    """Yield warnings of changes in the working tree that are not measured.

    The warnings name the ``holder`` of the changes, such as "neither revision". The hints name the
    ``owner``, such as "the candidate".
    """
    submodules = changed_submodules(repository)
    if submodules:
        yield CampaignWarning(
            "changed_submodules",
            f"{holder} has the changes in these submodules: {listed(submodules)}",
            "commit the changes in the submodule, then commit its new revision here",
        )
    untracked = untracked_files(repository)
    if untracked:
        yield CampaignWarning(
            "untracked_files",
            f"{holder} has these untracked files: {listed(untracked)}",
            f"`git add` the files of {owner}, and add all others to .gitignore",
        )


def changes_of_working_tree(repository: Repository) -> bytes:
    """Return the changes of tracked files since HEAD, as a patch.

    Raise `UnusableInput` if git fails.
    """
    return require_success(_diff_to_head(repository), WORKING_TREE).stdout


def submodules_present(repository: Repository) -> tuple[str, ...]:
    """Return the paths of the submodules that are checked out in the user's tree."""
    entries = run_git(repository.top, "ls-files", "--stage", "-z").stdout.split(b"\0")
    paths = (
        os.fsdecode(path)
        for mode, _, path in (entry.partition(b"\t") for entry in entries)
        if mode.startswith(_SUBMODULE_MODE.encode())
    )
    return tuple(path for path in paths if (repository.top / path / ".git").exists())


def check_out(
    repository: Repository, revision: Revision, parent: Path, changes: bytes | None = None
) -> Path:
    """Check out a revision into a new folder in ``parent``; return the new folder.

    The new folder has the name of the repository. If the revision is uncommitted, the patch
    ``changes`` is applied; by default it has the present changes of the working tree.

    Raise `CheckoutFailed` if git cannot check out the revision, or lacks a filter for its files.
    """
    tree = parent / repository.top.name
    _check_out_commit(repository.top, revision.commit, tree)
    if revision.uncommitted:
        patch = changes_of_working_tree(repository) if changes is None else changes
        run_checkout_step(revision.label, tree, "apply", "--whitespace=nowarn", "-", stdin=patch)
    return tree


def _diff_to_head(repository: Repository, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Return the changes of tracked files since HEAD, by default as a patch."""
    patch_options = (
        *("--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--no-renames", "--ignore-submodules=all"),
    )
    return _run_diff(repository, *patch_options, *options, "HEAD")


def _run_diff(repository: Repository, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git diff on a copy of the index, because git diff writes to the index."""
    index_file = repository.top / line_of(repository.top, "rev-parse", "--git-path", "index")
    with tempfile.TemporaryDirectory() as folder:
        index_copy = Path(folder) / "index"
        if index_file.is_file():
            # The copy keeps its time, because git compares this time with the times of files.
            shutil.copy2(index_file, index_copy)
        return run_git(repository.top, "diff", *arguments, index_file=index_copy)


def _check_out_commit(source: Path, commit: str, tree: Path) -> None:
    """Make a repository that reads the objects of ``source``, and check out a commit."""
    label = f"{commit} of {source}"
    # Old versions of git lack this option, and use SHA-1.
    object_format = line_of(source, "rev-parse", "--show-object-format") or "sha1"
    init_arguments = ("init", "--quiet", "--template=", f"--object-format={object_format}")
    run_checkout_step(label, source, *init_arguments, str(tree))
    git_folder = tree / ".git"
    objects, shallow = (
        source / line_of(source, "rev-parse", "--git-path", name) for name in ("objects", "shallow")
    )
    (git_folder / "objects" / "info").mkdir(exist_ok=True)
    (git_folder / "objects" / "info" / "alternates").write_bytes(_quote_path(objects) + b"\n")
    if shallow.is_file():
        (git_folder / "shallow").write_bytes(shallow.read_bytes())
    tags = run_git(source, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
    run_checkout_step(label, tree, "update-ref", "--stdin", stdin=tags.stdout)
    # Without this check, a checkout of missing files would succeed with an empty folder.
    run_checkout_step(label, tree, "cat-file", "-e", f"{commit}^{{tree}}")
    run_checkout_step(label, tree, "checkout", "--quiet", "--detach", "--force", commit)
    _refuse_unapplied_filters(source, tree, label)
    for path, submodule_commit in _submodules(tree, commit):
        if (source / path / ".git").exists():
            (tree / path).rmdir()
            _check_out_commit(source / path, submodule_commit, tree / path)


def _refuse_unapplied_filters(source: Path, tree: Path, label: str) -> None:
    """Raise `CheckoutFailed` if git lacks a filter that files need.

    A filter, such as LFS or git-crypt, converts stored files to readable files (gitattributes(5)).
    Filters in the configuration of the user's repository are not available in a checkout.
    """
    for name, path in _filtered_files(tree).items():
        if _filter_program(tree, name) is None and (
            name in _ENCODING_FILTERS or _filter_program(source, name) is not None
        ):
            raise CheckoutFailed(
                f"{path} of {label} needs the git filter {name}, which is not configured",
                hint=f"install the program of {name}, and configure the filter for your user: "
                f"git config --global filter.{name}.smudge …",
            )


def _filtered_files(tree: Path) -> dict[str, str]:
    """Return the name of each filter in a checkout, with the path of one filtered file."""
    files = run_git(tree, "ls-files", "-z").stdout
    attributes = run_git(tree, "check-attr", "-z", "--stdin", "filter", stdin=files).stdout
    fields = [os.fsdecode(field) for field in attributes.split(b"\0")]
    return {
        name: path
        for path, name in zip(fields[0::3], fields[2::3], strict=False)
        if name not in ("unspecified", "unset", "set")
    }


def _filter_program(folder: Path, name: str) -> str | None:
    keys = (f"filter.{name}.process", f"filter.{name}.smudge")
    return next(filter(None, (line_of(folder, "config", "--get", key) for key in keys)), None)


def _submodules(tree: Path, commit: str) -> list[tuple[str, str]]:
    entries = run_git(tree, "ls-tree", "-r", "-z", commit).stdout.split(b"\0")
    submodules = []
    for entry in filter(None, entries):
        fields, _, path = entry.partition(b"\t")
        mode, _, submodule_commit = fields.decode().split()
        if mode == _SUBMODULE_MODE:
            submodules.append((os.fsdecode(path), submodule_commit))
    return submodules


def _quote_path(path: Path) -> bytes:
    escaped = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
