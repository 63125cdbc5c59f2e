"""Builds revisions, and keeps the builds on this host for later bisections and gates.

The key of a build is a digest of everything that affects the build: sources, submodules, folder,
shell line, toolchain and environment. Variables of the terminal or the session are left out.

A build stays in the folder ``FOLDER/KEY/tree/PROJECT`` where it was made, because programs may
contain this path. All keys, and so all paths, have the same length. The file
``FOLDER/KEY/build.json`` is written last. Without this file, a build is incomplete: another process
is making the build, or was killed.

Each build has a lock, ``FOLDER/KEY.lock`` (flock(2)). Processes that use the build share the lock.
A process that makes or removes the build holds the lock alone.

If all builds together are larger than a limit, the least recently used builds are removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.measure.abandoned import CAMPAIGN_VARIABLE, end_build
from equipoise.measure.builds import BUILDS_VARIABLE, build_revision
from equipoise.measure.environment import snapshot
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.revisions import Revision
from equipoise.revisions.checkout import changes_of_working_tree, check_out, submodules_present
from equipoise.revisions.git import Repository, without_git_variables
from equipoise.revisions.link_recording import LinkRecorder, links_folder
from equipoise.suites.tool import BenchmarkTool

KEY_DIGITS = 32
"""Number of hexadecimal digits of a key."""
_KEY_VERSION = 1
"""Part of each key; another number gives other keys."""
_BUILD_PROGRAMS = (
    *("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "ld.lld", "mold", "as", "ar", "nasm"),
    *("make", "cmake", "ninja", "meson", "bazel", "rustc", "cargo", "go", "zig", "swift", "ghc"),
    *("gfortran", "python", "python3", "node", "npm", "ruby", "perl", "java", "javac", "gradle"),
    *("mvn", "dotnet", "ocaml", "dune", "tcc"),
)
"""Programs that a build may use; their files are part of a key."""
_VERSION_COMMANDS = (("rustc", "-vV"), ("go", "version"))
"""Commands that print the version of the toolchain that a program starts."""
_VERSION_TIMEOUT_S = 20.0
_SESSION_VARIABLES = frozenset(
    "PWD OLDPWD SHLVL _ TERM COLORTERM COLUMNS LINES DISPLAY WAYLAND_DISPLAY WINDOWID STY TMUX "
    "TMUX_PANE LS_COLORS PS1 PS2 PROMPT_COMMAND HISTFILE HISTSIZE PAGER LESS EDITOR VISUAL TMPDIR "
    "TEMP TMP MAIL LOGNAME DBUS_SESSION_BUS_ADDRESS GPG_AGENT_INFO GPG_TTY INVOCATION_ID "
    "JOURNAL_STREAM NO_COLOR FORCE_COLOR CLICOLOR BUILD_ID BUILD_NUMBER CI_JOB_ID "
    "CI_PIPELINE_ID CI_COMMIT_SHA EQUIPOISE_ALLOW_CONCURRENT EQUIPOISE_LEDGER EQUIPOISE_BUILDS "
    "EQUIPOISE_BUILDS_GIB".split()
)
"""Variables of the terminal or the session. They are not part of a key."""
_SESSION_PREFIXES = ("SSH_", "XDG_", "VTE_", "KONSOLE_", "ITERM_", "TERM_") + (
    *("GNOME_", "KDE_", "VSCODE_", "GITHUB_", "RUNNER_", "SUDO_", "PYTEST_", "COV_"),
)
LIMIT_VARIABLE = "EQUIPOISE_BUILDS_GIB"
"""Variable that sets the limit of the cache, in GiB."""
DEFAULT_GIB = 10.0
"""Limit of the cache without this variable, in GiB."""
_KEY_PATTERN = re.compile(f"[0-9a-f]{{{KEY_DIGITS}}}")
_RECORD_NAME = "build.json"
_TREE_FOLDER = "tree"
_LOCK_SUFFIX = ".lock"
_LOCK_POLL_S = 0.05
_GIB = 1 << 30
_BLOCK_BYTES = 512
"""Unit of ``st_blocks`` (stat(2))."""


class _BuildRecord(Struct, frozen=True):
    """Content of the file ``build.json``."""

    seconds: float
    size: int
    """Size on the disk, in bytes."""
    completed_ns: int
    """Time of completion, in nanoseconds since 1970."""
    files: str
    """Digest of the names, sizes and times of the files of the complete build."""
    contents: str = ""
    """Digest of the names, modes and contents of these files."""


class MissingFolder(UnusableInput):
    """Error that a revision lacks the user's current folder."""


class Build(Struct, frozen=True):
    """A complete build; it stays on the disk while the cache is open."""

    tree: Path
    """Root of the working tree."""
    seconds: float
    """Seconds of the checkout and the build, now or in an earlier campaign."""
    is_reused: bool
    """Whether the build was complete already."""


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the cache: by ``EQUIPOISE_BUILDS``, or in the user's cache folder.

    Raise `UnusableInput` if the user has no home folder.
    """
    folder = environment.get(BUILDS_VARIABLE, "")
    if folder:
        return Path(os.path.abspath(folder))
    home = environment.get("XDG_CACHE_HOME", "")
    parent = home if os.path.isabs(home) else os.path.expanduser("~/.cache")
    if not os.path.isabs(parent):
        raise UnusableInput(
            f"user {os.geteuid()} has no home folder in which builds can be kept",
            hint=f"set {BUILDS_VARIABLE} to a folder of your own",
        )
    return Path(parent, "equipoise", "builds")


def cache_limit(environment: Mapping[str, str]) -> int:
    """Return the limit of the cache in bytes.

    Raise `UnusableInput` if the variable is not a number, or is below 0.
    """
    text = environment.get(LIMIT_VARIABLE) or f"{DEFAULT_GIB}"
    try:
        limit = float(text) * _GIB
    except ValueError:
        limit = -1.0
    if not 0.0 <= limit < 1 << 62:
        raise UnusableInput(
            f"{LIMIT_VARIABLE}={text} is not the size of a cache",
            hint=f"set a number of GiB, such as {LIMIT_VARIABLE}=10",
        )
    return int(limit)


def open_cache(
    repository: Repository,
    build_line: str | None,
    tool: BenchmarkTool | None,
    campaign_folder: Path,
    recorder: LinkRecorder | None = None,
) -> BuildCache:
    """Return the cache of builds of a repository, made by a shell line for a benchmark tool.

    ``campaign_folder`` is the private folder of the campaign. It has the builds if the user's cache
    folder cannot be used; they are then removed with the folder. ``recorder`` records the links.

    Raise `UnusableInput` if the folder of ``EQUIPOISE_BUILDS`` cannot be used, or if a program of
    the toolchain does not print its version.
    """
    environment = own_environment()
    recipe = replace(recipe_of(repository, build_line, tool, environment), recorder=recorder)
    limit = cache_limit(environment)
    try:
        return BuildCache(recipe, campaign_folder, cache_folder(environment), limit)
    except UnusableInput:
        if environment.get(BUILDS_VARIABLE):
            raise
        return BuildCache(recipe, campaign_folder, campaign_folder / "builds", limit)


class BuildCache:
    """The builds on this host that were made by one recipe.

    ``campaign_folder`` is the private folder of the campaign. Its path is in the environment of
    each build, to find the processes of a killed campaign (`equipoise.measure.leftovers`).

    Raise `UnusableInput` if ``folder`` cannot be made, or others can write to it.
    """

    def __init__(self, recipe: Recipe, campaign_folder: Path, folder: Path, max_bytes: int) -> None:
        self.recipe = recipe
        self._campaign_folder = campaign_folder
        self._folder = _make_private_folder(folder)
        self._max_bytes = max_bytes
        self._descriptors: dict[str, int] = {}
        """File descriptors of the locks that this process shares, by key."""
        self._descriptor_guard = threading.Lock()
        self._trees_in_progress: set[Path] = set()
        self._stop_request = threading.Event()

    def __enter__(self) -> Self:
        """Remove the incomplete builds of killed processes."""
        self._remove_old_builds(())
        return self

    def __exit__(self, *error: object) -> None:
        """Release the locks, and remove old builds if the cache exceeds its limit."""
        for key in tuple(self._descriptors):
            os.close(self._descriptors.pop(key))
        self._remove_old_builds(())

    def tree_of(self, source: BuildSource) -> Path:
        """Return the path of a build's working tree, which may not exist."""
        project = self.recipe.repository.top.name
        return self._folder / key_of(self.recipe, source) / _TREE_FOLDER / project

    def seconds_of(self, source: BuildSource) -> float | None:
        """Return the seconds that a complete build took; ``None`` if it is missing."""
        record = self._read_record(key_of(self.recipe, source))
        return None if record is None else record.seconds

    def completed_ns(self, tree: Path) -> int:
        """Return when the build in a working tree was complete, in nanoseconds since 1970.

        Files that changed later are of trials. The build must be in use.
        """
        record = self._read_record(tree.parent.parent.name)
        assert record is not None, "a build in use is complete"
        return record.completed_ns

    def get(self, source: BuildSource, label: str, needed: Collection[BuildSource] = ()) -> Build:
        """Return the build of a source; make the build if it is missing. This is thread-safe.

        The builds of ``needed`` sources are not removed, even if the cache exceeds its limit.

        Raise `ConditionFailed` if the source cannot be built. Raise `MissingFolder` if the source
        lacks the user's current folder. Raise `UnusableInput` if the source cannot be checked out,
        or if the working tree has changed since it was read.
        """
        key = key_of(self.recipe, source)
        tree = self.tree_of(source)
        self._discard_changed(key, tree)
        is_reused = True
        try:
            while True:
                record = self._lock_for_use(key)
                if record is not None:
                    return Build(tree, record.seconds, is_reused)
                if self._make_build(key, source, tree, label):
                    is_reused = False
                    self._remove_old_builds(
                        {key, *(key_of(self.recipe, needed_source) for needed_source in needed)}
                    )
        except OSError as error:
            raise UnusableInput(
                f"cannot keep a build in {self._folder}: {error.strerror}",
                hint=f"free space there, or set {BUILDS_VARIABLE} to a folder of another disk",
            ) from None

    def stop(self) -> None:
        """End the running builds of other threads; their calls of `get` then raise an error."""
        self._stop_request.set()
        for tree in tuple(self._trees_in_progress):
            end_build(str(tree))

    def _discard_changed(self, key: str, tree: Path) -> None:
        """Remove a build if a trial has changed its files; files that trials add do not matter.

        A copy of the folder, such as the cache of a CI job, has new times, but the same contents.
        """
        record = None if key in self._descriptors else self._read_record(key)
        if record is None or digest_of_files(tree, record.completed_ns) == record.files:
            return
        if digest_of_contents(tree, record.completed_ns) != record.contents:
            self._discard(key)
            return
        completed_ns = time.time_ns()
        self._write_record(
            key,
            replace(record, completed_ns=completed_ns, files=digest_of_files(tree, completed_ns)),
        )

    def _lock_for_use(self, key: str) -> _BuildRecord | None:
        """Share the lock of a complete build; return its record, or ``None`` if it is missing."""
        if key not in self._descriptors:
            while (descriptor := self._try_to_lock(key, fcntl.LOCK_SH)) is None:
                self._pause()
            if self._read_record(key) is None:
                os.close(descriptor)
                return None
            self._keep_lock(key, descriptor)
        with contextlib.suppress(OSError):
            os.utime(self._folder / key / _RECORD_NAME)
        return self._read_record(key)

    def _make_build(self, key: str, source: BuildSource, tree: Path, label: str) -> bool:
        """Make a build; return ``False`` if another process has made the build."""
        with self._lock_to_make_build(key) as is_missing:
            if not is_missing:
                return False
            _remove_build(self._folder / key, tree)
            started_s = time.monotonic()
            self._trees_in_progress.add(tree)
            try:
                self._build(source, tree, label)
            except BaseException:
                _remove_build(self._folder / key, tree)
                raise
            finally:
                self._trees_in_progress.discard(tree)
            seconds, completed_ns = time.monotonic() - started_s, time.time_ns()
            record = _BuildRecord(
                seconds,
                _size_on_disk(self._folder / key),
                completed_ns,
                digest_of_files(tree, completed_ns),
                digest_of_contents(tree, completed_ns),
            )
            self._write_record(key, record)
            return True

    def _write_record(self, key: str, record: _BuildRecord) -> None:
        unfinished_record = self._folder / key / f"{_RECORD_NAME}.part"
        unfinished_record.write_bytes(msgspec.json.encode(record))
        unfinished_record.rename(self._folder / key / _RECORD_NAME)

    def _build(self, source: BuildSource, tree: Path, label: str) -> None:
        repository, revision = self.recipe.repository, source.revision
        changes = None
        if revision.uncommitted:
            changes = changes_of_working_tree(repository)
            if digest_of_changes(changes) != source.changes_digest:
                raise UnusableInput(
                    "the working tree has changed since the campaign began",
                    hint="commit the changes, and start again with the commit",
                )
        tree.parent.mkdir(parents=True)
        check_out(repository, revision, tree.parent, changes)
        folder = tree / repository.inside
        if not folder.is_dir():
            raise MissingFolder(
                f"{label} has no folder {repository.inside}",
                hint="change to a folder that every revision has, and run the command there",
            )
        if self.recipe.build_line is None:
            return
        environment = {
            **without_git_variables(own_environment()),
            **tool_variables(self.recipe.tool, tree, repository),
            CAMPAIGN_VARIABLE: f"{self._campaign_folder}/",
        }
        recorder, links = self.recipe.recorder, links_folder(tree)
        if recorder is not None:
            recorder.prepare(links)
            environment |= recorder.variables(links)
        if self._stop_request.is_set():
            raise EquipoiseError("the build was stopped")
        build_revision(self.recipe.build_line, folder, tree, environment, label)
        if recorder is not None:
            recorder.keep_links(links, tree)

    def _read_record(self, key: str) -> _BuildRecord | None:
        try:
            content = (self._folder / key / _RECORD_NAME).read_bytes()
            return msgspec.json.decode(content, type=_BuildRecord)
        except (OSError, msgspec.MsgspecError):
            return None

    def _remove_old_builds(self, needed: Collection[str]) -> None:
        """Remove incomplete builds of killed processes; above the limit, also the oldest builds."""
        complete_builds: list[tuple[float, int, str]] = []
        for name in sorted(os.listdir(self._folder)):
            key = name.removesuffix(_LOCK_SUFFIX)
            if not _KEY_PATTERN.fullmatch(key):
                continue
            record = self._read_record(key)
            if record is None:
                self._remove_incomplete(key)
            elif name == key:
                with contextlib.suppress(OSError):
                    used_at = (self._folder / key / _RECORD_NAME).stat().st_mtime
                    complete_builds.append((used_at, record.size, key))
        excess_bytes = sum(size for _, size, _ in complete_builds) - self._max_bytes
        for _, size, key in sorted(complete_builds):
            if excess_bytes <= 0:
                break
            if key not in needed and self._discard(key):
                excess_bytes -= size

    def _remove_incomplete(self, key: str) -> None:
        """Remove the build of a killed process, if no thread or process completes it meanwhile."""
        with self._held_alone(key) as is_held:
            if is_held and self._read_record(key) is None:
                self._remove(key)

    def _discard(self, key: str) -> bool:
        """Remove a build if no other process uses it; return whether the build was removed."""
        if key in self._descriptors:
            os.close(self._descriptors.pop(key))
        with self._held_alone(key) as is_held:
            if is_held:
                self._remove(key)
            return is_held

    def _remove(self, key: str) -> None:
        folder = self._folder / key
        with contextlib.suppress(OSError):
            (folder / _RECORD_NAME).unlink()
        _remove_build(folder, folder / _TREE_FOLDER / self.recipe.repository.top.name)
        with contextlib.suppress(OSError):
            (self._folder / f"{key}{_LOCK_SUFFIX}").unlink()

    def _keep_lock(self, key: str, descriptor: int) -> None:
        """Keep a shared lock; close it if another thread already shares the lock."""
        with self._descriptor_guard:
            if self._descriptors.setdefault(key, descriptor) != descriptor:
                os.close(descriptor)

    @contextlib.contextmanager
    def _lock_to_make_build(self, key: str) -> Iterator[bool]:
        """Hold the lock of a missing build alone; yield ``False`` if the build exists already."""
        while self._read_record(key) is None:
            with self._held_alone(key) as is_held:
                if is_held:
                    yield self._read_record(key) is None
                    return
            self._pause()
        yield False

    def _pause(self) -> None:
        if self._stop_request.wait(_LOCK_POLL_S):
            raise EquipoiseError("the build was stopped")

    @contextlib.contextmanager
    def _held_alone(self, key: str) -> Iterator[bool]:
        """Hold the lock of a build alone; yield ``False`` if anyone else holds the lock."""
        descriptor = self._try_to_lock(key, fcntl.LOCK_EX)
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _try_to_lock(self, key: str, operation: int) -> int | None:
        """Return the file descriptor of a lock; ``None`` if another process holds the lock."""
        path = self._folder / f"{key}{_LOCK_SUFFIX}"
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
            # Another process may have removed the lock file in the meantime.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None


def _make_private_folder(folder: Path) -> Path:
    """Make a folder if it is missing; raise an error if other users can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise UnusableInput(
            f"cannot make the folder of builds {folder}: {error.strerror}",
            hint=f"set {BUILDS_VARIABLE} to a folder of your own",
        ) from None
    is_foreign = status.st_uid != os.geteuid()
    if is_foreign or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode_hint = "" if is_foreign else f"run `chmod go-w {folder}`, or "
        raise UnusableInput(
            f"other users {'own' if is_foreign else 'can write to'} the folder of builds {folder}",
            hint=f"{mode_hint}set {BUILDS_VARIABLE} to a folder of your own",
        )
    return Path(os.path.realpath(folder))


def _remove_build(folder: Path, tree: Path) -> None:
    """Remove a build, and end the processes that are making the build."""
    if folder.exists():
        end_build(str(tree))
        shutil.rmtree(folder, onerror=_remove_unwritable)


def _remove_unwritable(function: object, path: str, error: object) -> None:
    """Remove a file in a read-only folder, such as Go's module cache."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _size_on_disk(folder: Path) -> int:
    total = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * _BLOCK_BYTES
    return total


class Recipe(Struct, frozen=True):
    """How revisions of a repository are built: shell line, tools and environment."""

    repository: Repository
    build_line: str | None
    """Shell line that builds a revision; ``None`` if a checkout is enough."""
    tool: BenchmarkTool | None
    toolchain_digest: str
    """Digest of the toolchain and the host; empty without a shell line."""
    environment_digest: str
    """Digest of the environment; empty without a shell line."""
    submodules: tuple[str, ...]
    """Paths of the submodules in the user's working tree, and so in each build."""
    recorder: LinkRecorder | None = None
    """Programs that record the links of a build; ``None`` if no program is linked again."""


class BuildSource(Struct, frozen=True):
    """The files of a build: the files of a commit or of the user's working tree."""

    revision: Revision
    tree_hash: str
    """Git's hash of the tree of the commit."""
    changes_digest: str = ""
    """Digest of the changes, if the source is the user's working tree."""


def tool_variables(
    tool: BenchmarkTool | None, tree: Path, repository: Repository
) -> dict[str, str]:
    """Return the environment variables of a benchmark tool in a working tree."""
    variables: Mapping[str, str] = {} if tool is None else tool.environment
    return {
        name: value.replace("{tree}", str(tree)).replace("{own}", str(repository.top))
        for name, value in variables.items()
    }


def recipe_of(
    repository: Repository,
    build_line: str | None,
    tool: BenchmarkTool | None,
    environment: Mapping[str, str],
) -> Recipe:
    """Return the recipe, with the tools that this host has now."""
    submodules = submodules_present(repository)
    if build_line is None:
        return Recipe(repository, build_line, tool, "", "", submodules)
    build_environment = {
        name: value
        for name, value in without_git_variables(environment).items()
        if name not in _SESSION_VARIABLES and not name.startswith(_SESSION_PREFIXES)
    }
    toolchain_digest = digest_of_toolchain(build_line, environment, repository)
    environment_digest = digest(sorted(build_environment.items()))
    return Recipe(repository, build_line, tool, toolchain_digest, environment_digest, submodules)


def digest_of_toolchain(line: str, environment: Mapping[str, str], repository: Repository) -> str:
    """Return the digest of the processor and of the tools that a shell line may use."""
    search_path = environment.get("PATH", os.defpath)
    return digest(sorted(set(_toolchain_properties(line, search_path, repository))))


def source_of(
    repository: Repository, revision: Revision, tree_hashes: Mapping[str, str]
) -> BuildSource:
    """Return the source of a revision, given git's hash of the tree of each commit."""
    tree_hash = tree_hashes[revision.commit]
    if not revision.uncommitted:
        return BuildSource(revision, tree_hash)
    return BuildSource(revision, tree_hash, digest_of_changes(changes_of_working_tree(repository)))


def digest_of_changes(changes: bytes) -> str:
    """Return the digest of the changes of a working tree."""
    return hashlib.sha256(changes).hexdigest()


def key_of(recipe: Recipe, source: BuildSource) -> str:
    """Return the key of a build."""
    repository = recipe.repository
    return digest(
        [
            _KEY_VERSION,
            str(repository.top),
            repository.inside,
            source.tree_hash,
            source.changes_digest,
            recipe.submodules,
            recipe.build_line,
            [] if recipe.tool is None else sorted(recipe.tool.environment.items()),
            recipe.toolchain_digest,
            recipe.environment_digest,
            [] if recipe.recorder is None else [recipe.recorder.lld, recipe.recorder.version],
        ]
    )


def digest_of_files(tree: Path, until_ns: int) -> str:
    """Return the digest of names, sizes and times of the files not changed after ``until_ns``.

    The times are those of the last change of the inode (ctime): programs cannot set this time.
    """
    files = []
    for parent, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(parent, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if status.st_ctime_ns <= until_ns:
                    files.append((path, status.st_size, status.st_ctime_ns))
    return digest(sorted(files))


def digest_of_contents(tree: Path, until_ns: int) -> str:
    """Return the digest of names, modes and contents of the files modified until ``until_ns``."""
    files = []
    for parent, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(parent, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if status.st_mtime_ns > until_ns:
                    continue
                content = ""
                if stat.S_ISLNK(status.st_mode):
                    content = os.readlink(path)
                elif stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        content = hashlib.file_digest(file, "sha256").hexdigest()
                files.append((path, status.st_mode, content))
    return digest(sorted(files))


def _toolchain_properties(line: str, search_path: str, repository: Repository) -> Iterator[str]:
    try:
        line_words = shlex.split(line, comments=True)
    except ValueError:
        line_words = line.split()
    for program_name in (*_BUILD_PROGRAMS, *line_words):
        program = shutil.which(program_name, path=search_path)
        # Programs inside the repository are part of the sources.
        if program is not None and os.path.isabs(program):
            status = os.stat(program)
            target = os.path.realpath(program)
            yield f"{program} {target} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    for program_name, option in _VERSION_COMMANDS:
        program = shutil.which(program_name, path=search_path)
        if program is not None:
            yield version_text(program, option, repository)
    host = snapshot()
    yield f"{platform.machine()} {host.get('cpu_model')} {' '.join(platform.libc_ver())}"


def version_text(program: str, option: str, repository: Repository) -> str:
    """Return the version that a program prints; raise `UnusableInput` if it prints none."""
    try:
        result = subprocess.run(
            [program, option],
            cwd=repository.top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
        if result.returncode < 0:
            # Without a version, different toolchains would have the same key.
            raise subprocess.CalledProcessError(result.returncode, result.args)
    except (OSError, subprocess.SubprocessError) as error:
        raise UnusableInput(
            f"{program} {option} does not print its version: {error}",
            hint=f"run `{program} {option}` in the repository, or remove the program from PATH",
        ) from None
    return result.stdout.decode("utf-8", "replace")


def digest(content: object) -> str:
    """Return the digest of nested lists of numbers and texts."""
    # `ascii` also works for bytes that are not text.
    return hashlib.sha256(ascii(content).encode("ascii")).hexdigest()[:KEY_DIGITS]
