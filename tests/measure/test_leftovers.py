"""What is cleared away after a kill is proven to be Equipoise's own; everything else stays."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import SESSION_VARIABLE
from equipoise.measure.leftovers import clear_leftovers, unproven_folders
from equipoise.measure.scratch import MARKER, scratch_folder
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from tests.measure.processes import is_running


@dataclass(frozen=True)
class Places:
    """Where scratch folders are made, and where their records are kept."""

    temporary: Path
    records: Path

    def killed_campaign(self) -> Path:
        """The folder of a campaign that was just killed."""
        reading, writing = os.pipe()
        campaign = os.fork()
        if campaign == 0:
            with scratch_folder() as folder:
                os.write(writing, os.fsencode(folder))
                os.kill(os.getpid(), signal.SIGKILL)
        os.close(writing)
        with open(reading, "rb") as told:
            folder = Path(os.fsdecode(told.read()))
        assert os.WTERMSIG(os.waitpid(campaign, 0)[1]) == signal.SIGKILL
        return folder

    def record(self) -> Path:
        """The only record."""
        (found,) = self.records.iterdir()
        return found


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Places(temporary, tmp_path / "state" / "equipoise" / "scratch")


@contextmanager
def running(
    *command: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed at the end, if it still runs."""
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
    folder = places.killed_campaign()
    (folder / "server-x").mkdir()
    named = {METRICS_VARIABLE: f"{folder}/metrics.jsonl"}
    # The child forgets the variable, as PostgreSQL's processes do, but not its parent.
    forgets = f"env -u {METRICS_VARIABLE} sleep 60 & echo $!; wait"
    with running("sh", "-c", forgets, cwd=folder, environment=named) as trial:
        assert trial.stdout is not None
        child = int(trial.stdout.readline())
        (cleared,) = clear_leftovers().cleared
        assert (cleared.folder, cleared.processes) == (str(folder), 2)
        assert cleared.describe().endswith(f"{folder} and ended 2 of its processes")
        assert trial.wait() == -signal.SIGKILL
        assert not is_running(child)
    assert list(places.temporary.iterdir()) == []
    assert list(places.records.iterdir()) == []


def test_processes_end_also_where_somebody_has_removed_the_folder(places: Places) -> None:
    folder = places.killed_campaign()
    with running("sleep", "60", environment={METRICS_VARIABLE: f"{folder}/metrics.jsonl"}) as trial:
        (folder / MARKER).unlink()
        folder.rmdir()
        (cleared,) = clear_leftovers().cleared
        assert cleared.processes == 1
        assert trial.wait() == -signal.SIGKILL
    assert list(places.records.iterdir()) == []


def test_folders_of_the_user_that_only_look_like_ours_stay_with_their_processes(
    places: Places,
) -> None:
    notes, probe = places.temporary / "equipoise-notes", places.temporary / "equipoise-probe-mine"
    for folder in (notes, probe):
        folder.mkdir()
        (folder / "owner").write_text("me")
    with running("sleep", "60", cwd=notes) as works, running("sleep", "60", cwd=probe) as too:
        assert clear_leftovers().cleared == ()
        assert (works.poll(), too.poll()) == (None, None)
    assert (notes / "owner").read_text() == (probe / "owner").read_text() == "me"


def test_a_process_that_only_works_in_an_abandoned_folder_is_named_and_the_folder_left(
    places: Places,
) -> None:
    folder = places.killed_campaign()
    with running("sleep", "60", cwd=folder) as shell:
        (leftover,) = clear_leftovers().leftovers
        assert leftover.path == str(folder)
        assert f"process {shell.pid} works in it" in leftover.reason
        assert shell.poll() is None
        assert folder.is_dir()
    (cleared,) = clear_leftovers().cleared
    assert (cleared.folder, cleared.processes) == (str(folder), 0)


def test_a_campaign_that_was_killed_while_it_removed_its_folder_is_cleared_away(
    places: Places,
) -> None:
    (places.killed_campaign() / MARKER).unlink()
    (cleared,) = clear_leftovers().cleared
    assert not Path(cleared.folder).exists()
    assert list(places.records.iterdir()) == []


@pytest.mark.parametrize("marker", [None, ""])
def test_a_campaign_that_was_killed_while_it_made_its_folder_is_cleared_away(
    places: Places, marker: str | None
) -> None:
    folder = places.killed_campaign()
    first_line = places.record().read_text().splitlines(keepends=True)[0]
    places.record().write_text(first_line)
    (folder / MARKER).unlink()
    if marker is not None:
        (folder / MARKER).write_text(marker)
    (cleared,) = clear_leftovers().cleared
    assert cleared.folder == str(folder)
    assert not folder.exists()


def links_the_marker(folder: Path) -> None:
    text = (folder / MARKER).read_text()
    (folder / MARKER).unlink()
    (folder.parent / "elsewhere").write_text(text)
    (folder / MARKER).symlink_to(folder.parent / "elsewhere")


def makes_the_marker_a_pipe(folder: Path) -> None:
    (folder / MARKER).unlink()
    os.mkfifo(folder / MARKER)


def changes_the_identity(folder: Path) -> None:
    (folder / MARKER).write_text(secrets.token_hex(16))


def removes_the_marker(folder: Path) -> None:
    (folder / MARKER).unlink()


def lets_others_write(folder: Path) -> None:
    folder.chmod(0o777)


def gives_it_away(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 54321, -1)


def replaces_the_folder(folder: Path) -> None:
    text = (folder / MARKER).read_text()
    folder.rename(folder.parent / "original")
    folder.mkdir(mode=0o700)
    (folder / MARKER).write_text(text)
    (folder / "mine").write_text("mine")


def links_the_folder(folder: Path) -> None:
    folder.rename(folder.parent / "original")
    folder.symlink_to(folder.parent / "original")
    (folder / "mine").write_text("mine")


@pytest.mark.parametrize(
    "attack",
    [
        links_the_marker,
        makes_the_marker_a_pipe,
        changes_the_identity,
        removes_the_marker,
        lets_others_write,
        gives_it_away,
        replaces_the_folder,
        links_the_folder,
    ],
)
def test_a_folder_that_is_not_proven_is_left_and_named(
    places: Places, attack: Callable[[Path], None]
) -> None:
    folder = places.killed_campaign()
    (folder / "mine").write_text("mine")
    named = {METRICS_VARIABLE: f"{folder}/metrics.jsonl"}
    attack(folder)
    with running("sleep", "60", environment=named) as process:
        clearance = clear_leftovers()
        assert clearance.cleared == ()
        assert [leftover.path for leftover in clearance.leftovers] == [str(folder)]
        assert process.poll() is None
    assert (folder / "mine").read_text() == "mine"


def test_a_record_of_a_folder_of_the_user_removes_nothing(places: Places, tmp_path: Path) -> None:
    places.killed_campaign()
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis").write_text("thesis")
    status = home.stat()
    recorded, _ = map(json.loads, places.record().read_text().splitlines())
    content = {**recorded, "path": str(home), "device": status.st_dev, "inode": status.st_ino}
    places.record().write_text(json.dumps(content))
    (leftover,) = clear_leftovers().leftovers
    assert leftover.reason == "it is no record of Equipoise"
    assert (home / "thesis").read_text() == "thesis"


def test_a_record_that_is_a_link_removes_nothing(places: Places, tmp_path: Path) -> None:
    folder = places.killed_campaign()
    record = places.record().rename(tmp_path / places.record().name)
    (places.records / record.name).symlink_to(record)
    (leftover,) = clear_leftovers().leftovers
    assert "it cannot be a record" in leftover.reason
    assert folder.is_dir()


def test_a_record_that_others_could_have_written_removes_nothing(places: Places) -> None:
    folder = places.killed_campaign()
    places.record().chmod(0o660)
    assert [leftover.reason for leftover in clear_leftovers().leftovers] == [
        "it is no record of Equipoise"
    ]
    assert folder.is_dir()


def test_of_a_home_that_hosts_share_each_clears_its_own(places: Places) -> None:
    folder = places.killed_campaign()
    recorded, located = map(json.loads, places.record().read_text().splitlines())
    other = {**recorded, **located, "host": f"not-{recorded['host']}"}
    places.record().write_text(json.dumps(other))
    assert clear_leftovers().cleared == ()
    assert folder.is_dir()
    assert places.record().exists()


def test_what_looks_like_a_leftover_and_has_no_record_is_named(places: Places) -> None:
    unrecorded = places.killed_campaign()
    places.record().unlink()
    of_probe = places.temporary / "equipoise-probe-aB3dE6"
    of_first_release = places.temporary / "equipoise-k2_x9abc"
    of_user = places.temporary / "equipoise-notes"
    for folder in (of_probe, of_first_release, of_user):
        folder.mkdir()
        (folder / "owner").touch()
    assert clear_leftovers().leftovers == ()
    named = {leftover.path for leftover in unproven_folders()}
    assert named == {str(unrecorded), str(of_probe), str(of_first_release)}


def test_the_folder_of_a_campaign_that_runs_is_not_named(places: Places) -> None:
    with scratch_folder() as folder:
        for record in places.records.iterdir():
            record.unlink()
        assert unproven_folders() == ()
    assert not folder.exists()
