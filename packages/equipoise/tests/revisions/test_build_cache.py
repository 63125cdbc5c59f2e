"""Builds that are kept: made once, never seen half made, and bounded."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from equipoise.measure.builds import BUILDS_VARIABLE
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.revisions import Revision
from equipoise.revisions.build_cache import (
    LIMIT_VARIABLE,
    BuildCache,
    BuildSource,
    MissingFolder,
    cache_folder,
    cache_limit,
    digest_of_toolchain,
    key_of,
    open_cache,
    recipe_of,
    source_of,
)
from equipoise.revisions.checkout import repository_at, revision_of_working_tree
from equipoise.revisions.commits import tree_hashes
from equipoise.revisions.git import Repository
from equipoise.suites import TOOLS
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

LOGGED = 'echo built >> "$LOG"; cp source program'
"""Build that counts how often it has run, outside of what it builds."""


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """Three commits: the second changes the source, the third takes that back."""
    made = repository(tmp_path / "project")
    for text in ("one", "two", "one"):
        made.write("source", f"{text}\n")
        made.write("inside/note", "")
        made.commit(text)
    return made


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of all builds; both it and the builds are in the folder of the test."""
    log = tmp_path / "log"
    log.write_text("")
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv(BUILDS_VARIABLE, str(tmp_path / "builds"))
    return log


def sources(made: MadeRepository) -> list[BuildSource]:
    """Return the sources of all commits, the latest first."""
    repo = repository_at(made.path)
    names = made.git("rev-list", "main").split()
    trees = tree_hashes(repo, names)
    return [source_of(repo, Revision(name, name), trees) for name in names]


@contextlib.contextmanager
def opened(made: MadeRepository, line: str | None = LOGGED) -> Iterator[BuildCache]:
    with open_cache(repository_at(made.path), line, None, made.path.parent / "campaign") as cache:
        yield cache


def times_built(made: MadeRepository) -> int:
    return len((made.path.parent / "log").read_text().splitlines())


def test_a_build_is_made_once_and_used_again(made: MadeRepository) -> None:
    before = everything_in(made.path)
    third, second, first = sources(made)
    with opened(made) as cache:
        assert cache.seconds_of(second) is None
        build = cache.get(second, "commit two")
        assert not build.is_reused
        assert build.tree == cache.tree_of(second)
        assert (build.tree / "program").read_text() == "two\n"
        assert cache.seconds_of(second) == build.seconds
        # A commit that takes another back has its tree, and so its build.
        assert not cache.get(third, "commit three").is_reused
        assert cache.get(first, "commit one").is_reused
        assert len(str(cache.tree_of(first))) == len(str(build.tree))
    with opened(made) as cache:
        assert cache.get(second, "commit two").is_reused
    assert times_built(made) == 2
    assert everything_in(made.path) == before


@pytest.mark.parametrize("change", ["echo more >> program", "rm source"])
def test_build_with_a_file_changed_by_a_trial_is_rebuilt(change: str, made: MadeRepository) -> None:
    second = sources(made)[1]
    for _ in range(2):
        with opened(made) as cache:
            tree = cache.get(second, "commit two").tree
            assert (tree / "program").read_text() == "two\n"
            assert (tree / "source").exists()
            subprocess.run(["sh", "-c", change], cwd=tree, check=True)
            assert cache.get(second, "commit two").is_reused, "the same campaign goes on with it"
    assert times_built(made) == 2


def test_build_with_a_changed_file_and_old_time_stamp_is_rebuilt(made: MadeRepository) -> None:
    second = sources(made)[1]
    for _ in range(2):
        with opened(made) as cache:
            program = cache.get(second, "commit two").tree / "program"
            assert program.read_text() == "two\n"
            before = program.stat()
            # The kernel's time of a file lags behind the clock by up to a tick.
            time.sleep(0.02)
            program.write_text("bad\n")
            os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert times_built(made) == 2


def test_a_copied_cache_is_used_unless_a_file_has_another_content(made: MadeRepository) -> None:
    (source,) = sources(made)[:1]
    with opened(made) as cache:
        tree = cache.get(source, "it").tree
    folder = tree.parents[2]
    for content, count in (("", 1), ("changed", 2)):
        # As a job of CI packs the folder, and unpacks it on another machine.
        packed = shutil.copytree(folder, folder.with_name(f"packed{count}"), symlinks=True)
        shutil.rmtree(folder)
        shutil.copytree(packed, folder, symlinks=True)
        if content:
            times_ns = (tree / "program").stat().st_mtime_ns
            (tree / "program").write_text(content)
            os.utime(tree / "program", ns=(times_ns, times_ns))
        with opened(made) as cache:
            assert cache.get(source, "it").is_reused is not bool(content)
            # The times of the copy are known now.
            assert cache.get(source, "it").is_reused
        assert times_built(made) == count


def test_files_that_trials_add_leave_a_build_as_it_is(made: MadeRepository) -> None:
    second = sources(made)[1]
    for _ in range(2):
        with opened(made) as cache:
            tree = cache.get(second, "commit two").tree
            # The kernel's time of a file lags behind the clock by up to a tick.
            time.sleep(0.02)
            (tree / "results").write_text("one second\n")
    assert times_built(made) == 1


def test_without_a_build_command_a_commit_is_only_checked_out(made: MadeRepository) -> None:
    second = sources(made)[1]
    with opened(made, None) as cache:
        tree = cache.get(second, "commit two").tree
    assert (tree / "source").read_text() == "two\n"
    assert not (tree / "program").exists()
    assert times_built(made) == 0


def test_key_depends_exactly_on_the_inputs_of_a_build(made: MadeRepository, tmp_path: Path) -> None:
    repo = repository_at(made.path)
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    variables = {"PATH": f"{compiler.parent}:{os.environ['PATH']}", "CFLAGS": "-O2"}
    third, second, first = sources(made)

    def key(
        source: BuildSource = first, folder: Repository = repo, line: str = "make", **changed: str
    ) -> str:
        return key_of(recipe_of(folder, line, None, {**variables, **changed}), source)

    assert key() == key() == key(third)
    assert key(SSH_AUTH_SOCK="/tmp/other", TERM="dumb", GITHUB_RUN_ID="7") == key()
    others = {
        key(second),
        key(BuildSource(first.revision, first.tree_hash, "changed")),
        key(folder=Repository(repo.top, "inside")),
        key(line="make fast"),
        key(CFLAGS="-O3"),
        key(CFLAGS="-O3\udcff"),
        key(OWN="set"),
        key_of(recipe_of(repo, "make", TOOLS["cargo"], variables), first),
    }
    compiler.write_text("#!/bin/sh\n# a later version\n")
    assert len({*others, key()}) == len(others) + 1
    assert {len(other) for other in others} == {32}


def test_a_build_that_fails_leaves_nothing(made: MadeRepository) -> None:
    line = "mkdir closed; touch closed/file; chmod -w closed; echo why; exit 3"
    with opened(made, line) as cache:
        with pytest.raises(ConditionFailed, match="commit two cannot be built: exit status 3"):
            cache.get(sources(made)[1], "commit two")
        assert not cache.tree_of(sources(made)[1]).exists()
        assert cache.seconds_of(sources(made)[1]) is None


def test_commit_without_the_user_folder_has_its_own_error(
    made: MadeRepository, tmp_path: Path
) -> None:
    (made.path / "later").mkdir()
    inside = Repository(made.path, "later")
    with (
        open_cache(inside, LOGGED, None, tmp_path) as cache,
        pytest.raises(MissingFolder, match="commit two has no folder later"),
    ):
        cache.get(sources(made)[1], "commit two")


def test_working_tree_changed_since_the_plan_is_not_built(made: MadeRepository) -> None:
    repo = repository_at(made.path)
    made.write("source", "changed\n")
    revision = revision_of_working_tree(repo)
    source = source_of(repo, revision, tree_hashes(repo, [revision.commit]))
    with opened(made) as cache:
        assert (cache.get(source, "it").tree / "program").read_text() == "changed\n"
        made.write("source", "changed again\n")
        assert cache.get(source, "it").is_reused
    later = source_of(repo, revision, tree_hashes(repo, [revision.commit]))
    made.write("source", "and again\n")
    with (
        opened(made) as cache,
        pytest.raises(UnusableInput, match="the working tree has changed"),
    ):
        cache.get(later, "it")


def test_threads_that_need_one_build_make_it_once(made: MadeRepository) -> None:
    third, second, first = sources(made)
    with opened(made) as cache, ThreadPoolExecutor(4) as threads:
        builds = [
            threads.submit(cache.get, source, "it") for source in (first, second, third, second)
        ]
        assert sum(not build.result().is_reused for build in builds) == 2
    assert times_built(made) == 2


def test_late_process_uses_a_build_made_meanwhile(made: MadeRepository) -> None:
    second = sources(made)[1]
    with opened(made) as late, opened(made) as early:
        record = late._read_record
        unseen = iter([None, None])
        # It looked for the build just before the other one had it.
        late._read_record = lambda key: next(unseen, record(key))  # type: ignore[method-assign]
        tree = early.get(second, "commit two").tree
        with ThreadPoolExecutor(1) as threads:
            try:
                assert threads.submit(late.get, second, "commit two").result(300).tree == tree
            finally:
                late.stop()
    assert times_built(made) == 1


def test_build_completed_while_another_thread_cleans_up_is_kept(made: MadeRepository) -> None:
    _, second, first = sources(made)
    with opened(made) as cache:
        tree = cache.get(second, "commit two").tree
        record, unseen = cache._read_record, iter([None])

        def read_early(key: str) -> object:
            """Return the record; the first time, as it was just before the build was complete."""
            is_second = key == key_of(cache.recipe, second)
            return next(unseen, record(key)) if is_second else record(key)

        cache._read_record = read_early  # type: ignore[assignment, method-assign]
        cache.get(first, "commit one")
        assert next(unseen, "read") == "read"
        assert (tree / "program").read_text() == "two\n"


BUILDER = """
import sys
from pathlib import Path
from equipoise.model.revisions import Revision
from equipoise.revisions.build_cache import open_cache
from equipoise.revisions.build_cache import source_of
from equipoise.revisions.checkout import repository_at
from equipoise.revisions.commits import tree_hashes
repo, commit = repository_at(Path.cwd()), sys.argv[2]
source = source_of(repo, Revision(commit, commit), tree_hashes(repo, [commit]))
with open_cache(repo, sys.argv[1], None, Path(sys.argv[3])) as cache:
    print(cache.get(source, "it").is_reused, flush=True)
    sys.stdin.read()
"""


def another_process(made: MadeRepository, line: str, source: BuildSource) -> subprocess.Popen[str]:
    """A process that makes or shares a build, and holds it until its standard input ends."""
    words = (line, source.revision.commit, str(made.path.parent / "campaign"))
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, *words],
        cwd=made.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None
        time.sleep(0.02)


def builds_running(tree: Path) -> list[psutil.Process]:
    """Return the running processes of the build of a tree."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("EQUIPOISE_BUILD") == str(tree):
                found.append(process)
    return found


def test_next_build_removes_files_of_a_killed_build(made: MadeRepository, log: Path) -> None:
    line = f'{LOGGED}; test -f "$LOG.go" || sleep 300'
    second = sources(made)[1]
    killed = another_process(made, line, second)
    wait_for(lambda: times_built(made) == 1, killed)
    killed.kill()
    killed.communicate()
    with opened(made, None) as other:
        folder = other.tree_of(second).parents[2]
    # Whoever opens the cache next removes it, also for another line.
    assert [file.name for file in folder.iterdir()] == []
    with opened(made, line) as cache:
        assert builds_running(cache.tree_of(second)) == []
        Path(f"{log}.go").touch()
        assert not cache.get(second, "it").is_reused


def test_two_processes_share_one_build_and_keep_it_while_in_use(
    made: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"{LOGGED}; sleep 0.5"
    third, second, _ = sources(made)
    others = [another_process(made, line, second) for _ in range(2)]
    reused = sorted(str(other.stdout and other.stdout.readline().strip()) for other in others)
    assert reused == ["False", "True"]
    assert times_built(made) == 1
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    with opened(made, line) as cache:
        assert cache.seconds_of(second) is not None
        cache.get(third, "another")
        assert cache.seconds_of(second) is not None
    with opened(made, line) as cache:
        assert cache.seconds_of(third) is None
        assert cache.seconds_of(second) is not None
    for other in others:
        other.communicate("")
        assert other.returncode == 0
    with opened(made, line) as cache:
        assert list(cache.tree_of(second).parents[2].iterdir()) == []


def test_the_builds_that_were_used_longest_ago_go_first(
    made: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"{LOGGED}; head -c 300000 /dev/urandom > large"
    made.write("source", "three\n")
    made.commit("three")
    latest, _, second, first = sources(made)
    with opened(made, line) as cache:
        for source in (first, second, latest):
            cache.get(source, "it")
        record = cache.tree_of(first).parents[1] / "build.json"
        os.utime(record, (1, 1))
    monkeypatch.setenv(LIMIT_VARIABLE, f"{900_000 / (1 << 30)}")
    notes = tmp_path / "builds" / "notes of the user"
    notes.write_text("mine\n")
    with opened(made, line) as cache:
        kept = [cache.seconds_of(source) is not None for source in (first, second, latest)]
    assert kept == [False, True, True]
    assert notes.read_text() == "mine\n"


def test_limit_keeps_the_builds_of_the_next_block(
    made: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    third, second, _ = sources(made)
    with opened(made) as cache:
        cache.get(third, "it")
        cache.get(second, "it", (second, third))
        assert cache.get(third, "it", (second, third)).is_reused
        cache.get(second, "it")


def test_a_folder_in_which_others_may_write_is_refused(
    made: MadeRepository, tmp_path: Path
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    recipe = recipe_of(repository_at(made.path), None, None, {})
    with pytest.raises(UnusableInput, match="the folder of builds"):
        BuildCache(recipe, tmp_path, folder, 0)
    (tmp_path / "file").touch()
    with pytest.raises(UnusableInput, match="cannot make the folder of builds"):
        BuildCache(recipe, tmp_path, tmp_path / "file", 0)


def test_without_a_folder_of_the_user_builds_go_with_the_campaign(
    made: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BUILDS_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    with opened(made) as cache:
        assert cache.tree_of(sources(made)[0]).is_relative_to(tmp_path / "campaign" / "builds")
        cache.get(sources(made)[0], "it")
    monkeypatch.setenv(BUILDS_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(UnusableInput, match="cannot make the folder of builds"):
        open_cache(repository_at(made.path), LOGGED, None, tmp_path / "campaign")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(UnusableInput, match="has no home folder"):
        cache_folder({})
    assert not Path("~").exists()


def test_unusable_build_folder_is_named(
    made: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device", str(content))

    with opened(made) as cache:
        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(UnusableInput, match="cannot keep a build in .*: No space left"):
            cache.get(sources(made)[0], "it")


def test_the_environment_names_the_folder_and_the_limit() -> None:
    assert cache_folder({BUILDS_VARIABLE: "/var/builds"}) == Path("/var/builds")
    assert cache_folder({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/equipoise/builds")
    assert cache_folder({"XDG_CACHE_HOME": "not absolute"}).is_relative_to(Path.home() / ".cache")
    assert cache_limit({LIMIT_VARIABLE: "0.5"}) == 1 << 29
    assert cache_limit({}) == 10 << 30
    for text in ("many", "-1", "nan", "inf"):
        with pytest.raises(UnusableInput, match="is not the size of a cache"):
            cache_limit({LIMIT_VARIABLE: text})


def test_tool_killed_while_printing_its_version_keeps_the_toolchain(
    made: MadeRepository, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    go = programs / "go"
    go.write_text("#!/bin/sh\nkill -KILL $$\n")
    go.chmod(0o755)
    with pytest.raises(UnusableInput, match="go version does not print its version: .*SIGKILL"):
        digest_of_toolchain("make", {"PATH": str(programs)}, repository_at(made.path))
