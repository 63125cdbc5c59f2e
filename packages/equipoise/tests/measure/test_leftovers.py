"""Leftovers of killed campaigns are removed, but only those that provably are Equipoise's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import SESSION_VARIABLE
from equipoise.measure import abandoned
from equipoise.measure.abandoned import environment_of
from equipoise.measure.leftovers import Clearance, abandoned_probes, clear_leftovers
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from equipoise.model.plan import PLAIN_PADDING_VARIABLE
from packages.equipoise.tests.measure.killed_campaign import killed_campaign
from packages.equipoise.tests.measure.processes import is_running


@dataclass(frozen=True)
class Places:
    """The folders that contain scratch folders."""

    temporary: Path

    @property
    def private(self) -> Path:
        """The private folder of this user."""
        return self.temporary / f"equipoise-{os.geteuid()}"


def lock_of(folder: Path) -> Path:
    """The lock file of a campaign with this scratch folder."""
    return folder.with_name(f"{folder.name}.lock")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    return Places(temporary)


@contextmanager
def running(
    *command: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start a process, and kill it at the end if it still runs."""
    inherited = {name: os.environ[name] for name in ("PATH", SESSION_VARIABLE)}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**inherited, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_abandoned_folder_is_removed_and_its_processes_end(places: Places) -> None:
    folder = killed_campaign()
    (folder / "server-x").mkdir()
    named = {METRICS_VARIABLE: f"{folder}/metrics.jsonl"}
    # The child lacks the variable, as processes of PostgreSQL do; its parent has it.
    forgets = f"env -u {METRICS_VARIABLE} sleep 60 & echo $!; wait"
    with running("sh", "-c", forgets, cwd=folder, environment=named) as trial:
        assert trial.stdout is not None
        child = int(trial.stdout.readline())
        (cleared,) = clear_leftovers().removed_folders
        assert (cleared.folder, cleared.killed_processes) == (str(folder), 2)
        assert cleared.describe().endswith(f"{folder}; ended 2 of its processes")
        assert trial.wait() == -signal.SIGKILL
        assert not is_running(child)
    assert list(places.temporary.iterdir()) == []


@pytest.mark.parametrize("variable", [METRICS_VARIABLE, PLAIN_PADDING_VARIABLE])
def test_processes_end_even_if_their_folder_was_removed(places: Places, variable: str) -> None:
    folder = killed_campaign()
    with running("sleep", "60", environment={variable: f"{folder}/metrics.jsonl"}) as trial:
        folder.rmdir()
        (cleared,) = clear_leftovers().removed_folders
        assert cleared.killed_processes == 1
        assert trial.wait() == -signal.SIGKILL
    assert list(places.temporary.iterdir()) == []


def test_folders_of_the_user_that_only_look_like_ours_stay_with_their_processes(
    places: Places,
) -> None:
    notes, probe = places.temporary / "equipoise-notes", places.temporary / "equipoise-probe-mine"
    for folder in (notes, probe):
        folder.mkdir()
        (folder / "owner").write_text("me")
    with running("sleep", "60", cwd=notes) as works, running("sleep", "60", cwd=probe) as too:
        assert clear_leftovers().removed_folders == ()
        assert (works.poll(), too.poll()) == (None, None)
    assert (notes / "owner").read_text() == (probe / "owner").read_text() == "me"


def test_a_process_that_only_works_in_an_abandoned_folder_is_named_and_the_folder_left(
    places: Places,
) -> None:
    folder = killed_campaign()
    with running("sleep", "60", cwd=folder) as shell:
        (leftover,) = clear_leftovers().leftovers
        assert leftover.path == str(folder)
        assert f"process {shell.pid} works in the folder" in leftover.reason
        assert shell.poll() is None
        assert folder.is_dir()
    (cleared,) = clear_leftovers().removed_folders
    assert (cleared.folder, cleared.killed_processes) == (str(folder), 0)


def test_a_campaign_that_was_killed_while_it_removed_its_folder_is_cleared_away(
    places: Places,
) -> None:
    killed_campaign().rmdir()
    assert clear_leftovers() == Clearance()
    assert list(places.temporary.iterdir()) == []


@pytest.mark.parametrize("content", ["", None])
def test_a_campaign_that_was_killed_while_it_made_its_folder_is_cleared_away(
    places: Places, content: str | None
) -> None:
    folder = killed_campaign()
    folder.rmdir()
    if content is not None:
        lock_of(folder).write_text(content)
    assert clear_leftovers() == Clearance()
    assert list(places.temporary.iterdir()) == []


def test_the_leftovers_of_a_campaign_in_its_own_folder_are_removed(places: Places) -> None:
    places.private.touch()
    folder = killed_campaign()
    assert folder.parent != places.private
    (cleared,) = clear_leftovers().removed_folders
    assert cleared.folder == str(folder)
    assert list(places.temporary.iterdir()) == [places.private]


def lets_others_write(folder: Path) -> None:
    folder.parent.chmod(0o777)


def gives_the_private_folder_away(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder.parent, 54321, -1)


def links_the_private_folder(folder: Path) -> None:
    """A link with that name leads to a folder of the user, which may contain a lock."""
    original = folder.parent.rename(folder.parent.with_name("original"))
    folder.parent.symlink_to(original)


@pytest.mark.parametrize(
    "attack", [lets_others_write, gives_the_private_folder_away, links_the_private_folder]
)
def test_in_a_folder_of_other_users_nothing_is_removed_and_no_process_ended(
    places: Places, attack: Callable[[Path], None]
) -> None:
    folder = killed_campaign()
    (folder / "mine").write_text("mine")
    named = {METRICS_VARIABLE: f"{folder}/metrics.jsonl"}
    attack(folder)
    with running("sleep", "60", environment=named) as process:
        clearance = clear_leftovers()
        assert clearance.removed_folders == ()
        assert [leftover.path for leftover in clearance.leftovers] == [str(places.private)]
        assert process.poll() is None
    assert (folder / "mine").read_text() == "mine"


def test_a_folder_of_the_user_that_a_stranger_renamed_stays(places: Places) -> None:
    """In a temporary folder that is not sticky, any user may rename the files of others."""
    places.private.mkdir(mode=0o700)
    (places.private / "thesis").write_text("thesis")
    (places.private / "notes.lock").touch()
    (places.private / "folder").mkdir()
    assert clear_leftovers() == Clearance()
    names = sorted(path.name for path in places.private.iterdir())
    assert names == ["folder", "notes.lock", "thesis"]
    assert (places.private / "thesis").read_text() == "thesis"


def links_the_lock(lock: Path) -> None:
    content = lock.read_text()
    lock.unlink()
    (lock.parent.parent / "elsewhere").write_text(content)
    lock.symlink_to(lock.parent.parent / "elsewhere")


def makes_the_lock_a_pipe(lock: Path) -> None:
    lock.unlink()
    os.mkfifo(lock)


def gives_the_lock_away(lock: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(lock, 54321, -1)


def writes_something_else(lock: Path) -> None:
    lock.write_text("[" * 100_000)


@pytest.mark.parametrize(
    "attack", [links_the_lock, makes_the_lock_a_pipe, gives_the_lock_away, writes_something_else]
)
def test_a_lock_that_is_not_proven_is_left_and_named(
    places: Places, attack: Callable[[Path], None]
) -> None:
    folder = killed_campaign()
    (folder / "mine").write_text("mine")
    named = {METRICS_VARIABLE: f"{folder}/metrics.jsonl"}
    attack(lock_of(folder))
    with running("sleep", "60", environment=named) as process:
        clearance = clear_leftovers()
        assert clearance.removed_folders == ()
        assert [leftover.path for leftover in clearance.leftovers] == [str(lock_of(folder))]
        assert process.poll() is None
    assert (folder / "mine").read_text() == "mine"


def test_a_folder_without_its_lock_is_left_and_named(places: Places) -> None:
    folder = killed_campaign()
    (folder / "mine").write_text("mine")
    lock_of(folder).unlink()
    (leftover,) = clear_leftovers().leftovers
    assert (leftover.path, leftover.reason) == (str(folder), "it has no lock file")
    assert (folder / "mine").read_text() == "mine"


def test_a_link_in_place_of_a_folder_is_removed_and_not_followed(places: Places) -> None:
    folder = killed_campaign()
    original = folder.rename(places.temporary / "original")
    (original / "mine").write_text("mine")
    folder.symlink_to(original)
    (cleared,) = clear_leftovers().removed_folders
    assert cleared.folder == str(folder)
    assert (original / "mine").read_text() == "mine"


def test_hosts_that_share_a_folder_clear_their_own_campaigns_only(places: Places) -> None:
    folder = killed_campaign()
    content = json.loads(lock_of(folder).read_text())
    lock_of(folder).write_text(json.dumps({**content, "host": f"not-{content['host']}"}))
    assert clear_leftovers() == Clearance()
    assert folder.is_dir()
    assert lock_of(folder).exists()


def test_an_unlocked_folder_of_a_probe_is_named(places: Places) -> None:
    probe, users = places.temporary / "equipoise-probe-aB3dE6", places.temporary / "equipoise-notes"
    probe.mkdir()
    users.mkdir()
    assert clear_leftovers() == Clearance()
    assert {leftover.path for leftover in abandoned_probes()} == {str(probe)}


PROCESS = 4711


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a process in a fake /proc, with a program and an empty command line."""
    monkeypatch.setattr(abandoned, "_PROC", tmp_path)
    folder = tmp_path / str(PROCESS)
    folder.mkdir()
    (folder / "exe").symlink_to("/bin/true")
    (folder / "environ").touch()
    (folder / "cmdline").touch()
    return folder


def test_a_process_during_its_exec_is_waited_for(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def finish_exec(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            (process / "cmdline").write_bytes(b"true\0")
            (process / "environ").write_bytes(b"A=1\0B=2\0")

    monkeypatch.setattr("time.sleep", finish_exec)
    assert environment_of(PROCESS) == b"A=1\0B=2\0"
    assert len(pauses) == 3


def test_the_wait_for_an_exec_has_a_limit(process: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert environment_of(PROCESS) == b""
    assert 10 < next(seconds) < 15


def test_an_empty_environment_a_thread_of_the_kernel_and_an_ended_process_are_not_waited_for(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waits"))
    (process / "cmdline").write_bytes(b"env\0-i\0")
    assert environment_of(PROCESS) == b""
    (process / "cmdline").write_bytes(b"")
    (process / "exe").unlink()
    assert environment_of(PROCESS) == b""
    (process / "environ").unlink()
    with pytest.raises(FileNotFoundError):
        environment_of(PROCESS)
