"""Observes which tracked files a benchmark runs, and decides whether a diff can touch it.

The observed run is untimed. `equipoise.helpers.executed_files` records it, exactly, in programs of
Python. Of other programs nothing is known. A file counts only if git tracks it; a built copy of a
tracked file, such as an installed module, counts as the tracked file.

A benchmark is touched by the changed files whose functions it ran. It is also touched by changes
outside of functions in files that it imported, and by changes of files that it opened.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.helpers.executed_files import FOLDER_VARIABLE
from equipoise.helpers.executed_files import __file__ as RECORDER
from equipoise.measure.trials import own_environment
from equipoise.measure.workload_metrics import run_for_metrics
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition
from equipoise.model.revisions import Revision
from equipoise.revisions.checkout import changes_between
from equipoise.revisions.commits import is_documentation
from equipoise.revisions.git import Repository, reason_suffix, run_git
from equipoise.revisions.plan import Checkout
from equipoise.suites.tool import BenchmarkTool

_SEARCH_PATH = "PYTHONPATH"
_INSTALLATION_FOLDERS = ("site-packages", "dist-packages")
_CACHE_FOLDER = "__pycache__"
_NATIVE_SUFFIXES = (".so", ".pyd")
_BUILD_SCRIPT = "setup.py"
_SHA1_DIGITS = 40
_HASH = re.compile(r"[0-9a-f]{40,64}")


class ObservedFiles(Struct, frozen=True):
    """The tracked files that an observed run of a benchmark used."""

    ran: frozenset[str] = frozenset()
    """Files of which a function ran; paths from the root of the working tree."""
    read: frozenset[str] = frozenset()
    """Other files, which were imported or opened."""
    unknown_because: str | None = None
    """Clause with the reason why the files are not all known; ``None`` if they are."""


class _Record(Struct, frozen=True):
    """Content of the file that one process wrote."""

    parent: int
    """Number of the process that started this one."""
    ran: tuple[str, ...]
    read: tuple[str, ...]
    programs: int
    """Number of programs that the process started."""
    own_programs: int
    """Number of these programs that functions outside of installed packages may have started."""
    problem: str | None


def observe_files(
    condition: Condition,
    checkout: Checkout,
    blobs: Mapping[str, str],
    tool: BenchmarkTool | None,
    scratch: Path,
    timeout_s: float,
) -> ObservedFiles | None:
    """Run a condition once, untimed, and return its files; ``None`` if the run fails.

    The campaign itself reports what is wrong with a benchmark that fails.
    A tool must have `BenchmarkTool.records_files`. ``blobs`` are those of `tracked_blobs`.
    ``scratch`` is a private folder.
    """
    folder = Path(scratch, "executed-files")
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    variables = {**condition.environment, FOLDER_VARIABLE: str(folder)}
    if tool is None:
        (folder / "sitecustomize.py").symlink_to(RECORDER)
        given = condition.environment.get(_SEARCH_PATH, os.environ.get(_SEARCH_PATH))
        variables[_SEARCH_PATH] = os.pathsep.join([str(folder), *([given] if given else [])])
    observed = replace(condition, environment=variables)
    try:
        run = run_for_metrics(observed, own_environment(), scratch, timeout_s)
        records = [
            msgspec.json.decode(file.read_bytes(), type=_Record) for file in folder.glob("*.json")
        ]
    except (OSError, msgspec.DecodeError):
        return None
    if run.failure is not None:
        return None
    is_recorded = bool(records) if tool else any(record.parent == os.getpid() for record in records)
    files = (
        _files_of(records, checkout.tree, blobs)
        if is_recorded
        else ObservedFiles(unknown_because="it is not a program of Python")
    )
    # The words of a command may name files, such as a script of a shell.
    words = {_path_in(checkout.tree, checkout.folder / word) for word in condition.command}
    named = {word for word in words if word is not None and word in blobs}
    return replace(files, read=files.read | named - files.ran)


def _files_of(records: Sequence[_Record], tree: Path, blobs: Mapping[str, str]) -> ObservedFiles:
    sources = _TrackedSources(tree, blobs)
    ran = sources.of(name for record in records for name in record.ran)
    read = sources.of(name for record in records for name in record.read)
    problems = [record.problem for record in records if record.problem is not None]
    # Each of them has a record, too, if it is a program of Python.
    is_complete = sum(record.programs for record in records) == len(records) - 1
    if not is_complete and any(record.own_programs for record in records):
        problems.append("it starts other programs")
    if (path := sources.first_generated()) is not None:
        problems.append(f"it uses {path}, which is not in git")
    return ObservedFiles(ran, read - ran, problems[0] if problems else None)


class _TrackedSources:
    """Finds the tracked files behind the files that a process used."""

    def __init__(self, tree: Path, blobs: Mapping[str, str]) -> None:
        self._tree = tree
        self._blobs = blobs
        self._paths_by_blob: dict[str, set[str]] = defaultdict(set)
        for path, blob in blobs.items():
            self._paths_by_blob[blob].add(path)
        self._packages: set[str] = set()
        """Installed packages with a file that is a copy of a tracked file."""
        self._other_paths: set[str] = set()

    def of(self, names: Iterable[str]) -> frozenset[str]:
        """Return the tracked files of files; a copy of a tracked file counts as this file."""
        sources: set[str] = set()
        for name in names:
            path = _path_in(self._tree, Path(name))
            if path is None or _CACHE_FOLDER in path.split("/") or not os.path.isfile(name):
                continue
            found = {path} if path in self._blobs else self._paths_by_blob.get(self._blob(name))
            if found:
                sources |= found
                self._packages |= _installed_package(path)
            else:
                self._other_paths.add(path)
        return frozenset(sources)

    def first_generated(self) -> str | None:
        """Return a file of the tree that a build made from other files; ``None`` if none was used.

        Installed packages that the revision does not have are dependencies.
        """
        for path in sorted(self._other_paths):
            package = _installed_package(path)
            if not package or (path.endswith(_NATIVE_SUFFIXES) and package & self._packages):
                return path
        return None

    def _blob(self, name: str) -> str:
        """Return git's hash of the content of a file; empty if it cannot be read."""
        try:
            content = Path(name).read_bytes()
        except OSError:
            return ""
        algorithm = (
            hashlib.sha256
            if len(next(iter(self._blobs.values()), "")) > _SHA1_DIGITS
            else hashlib.sha1
        )
        return algorithm(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _path_in(tree: Path, path: Path) -> str | None:
    """Return the path of a file from the root of the tree; ``None`` if it is not in the tree."""
    real_path = os.path.realpath(path)
    root = os.path.realpath(tree) + os.sep
    return real_path.removeprefix(root) if real_path.startswith(root) else None


def _installed_package(path: str) -> frozenset[str]:
    """Return the installed package that a file belongs to; empty if it is not installed."""
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if part in _INSTALLATION_FOLDERS:
            return frozenset(parts[index + 1 : index + 2])
    return frozenset()


def tracked_blobs(repository: Repository, commit: str) -> dict[str, str]:
    """Return git's hash of each file of a commit, by its path.

    Raise `UnusableInput` if git fails.
    """
    result = run_git(repository.top, "ls-tree", "-r", "-z", "--full-tree", commit)
    if result.returncode != 0:
        raise UnusableInput(
            f"git cannot list the files of {commit}{reason_suffix(result)}",
            hint="run `git fsck` in your repository",
        )
    entries = (os.fsdecode(entry).partition("\t") for entry in result.stdout.split(b"\0") if entry)
    return {path: facts.split()[2] for facts, _, path in entries}


def blob_content(repository: Repository, blob: str) -> bytes | None:
    """Return the content that git has under a hash; ``None`` if the repository lacks it."""
    # The hash may come from a ledger of somebody else.
    if not _HASH.fullmatch(blob):
        return None
    result = run_git(repository.top, "cat-file", "blob", blob)
    return result.stdout if result.returncode == 0 else None


class Changes(Struct, frozen=True):
    """The files that differ between two revisions."""

    inside_functions: frozenset[str]
    """Files of Python that differ only inside functions; paths from the root."""
    others: frozenset[str]
    """All other files that differ."""

    def touch(self, files: ObservedFiles) -> bool:
        """Return whether a benchmark that uses these files may run something that differs."""
        return bool((self.inside_functions | self.others) & files.ran or self.others & files.read)

    @property
    def build_inputs(self) -> Iterator[str]:
        """Files that differ and that a build may read."""
        for path in sorted(self.others):
            if path.rpartition("/")[2] == _BUILD_SCRIPT or not (
                path.endswith(".py") or is_documentation(path)
            ):
                yield path


def changes_of(
    repository: Repository, baseline: Revision, candidate: Revision, trees: tuple[Path, Path]
) -> Changes:
    """Return the files that differ between two revisions, which are checked out in two trees.

    Raise `UnusableInput` if git fails.
    """
    paths = changes_between(repository, baseline, candidate)
    inside = {
        path
        for path in paths
        if path.endswith(".py")
        and differ_inside_functions(*(_content(tree / path) for tree in trees))
    }
    return Changes(frozenset(inside), frozenset(paths) - inside)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def differ_inside_functions(before: bytes, after: bytes) -> bool:
    """Return whether two texts of a module differ only in functions, which must run to matter.

    Bodies of functions may differ, and docstrings. A module may also have another function, but a
    class may not: its methods may replace those of another class. A decorator runs on import.
    """
    try:
        return _outline(before) == _outline(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _outline(text: bytes) -> str:
    return ast.dump(_Outline().visit(ast.parse(text)))


class _Outline(ast.NodeTransformer):
    """Leaves out what has no effect when a module is imported."""

    def __init__(self) -> None:
        self._classes = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:  # noqa: N802
        self._classes += 1
        self.generic_visit(node)
        self._classes -= 1
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:  # noqa: N802
        return self._without_body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST | None:  # noqa: N802
        return self._without_body(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:  # noqa: N802
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node

    def _without_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST | None:
        if not self._classes and not node.decorator_list:
            return None
        node.body = []
        return node
