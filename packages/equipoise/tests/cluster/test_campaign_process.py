"""A host's campaign is a process of its own: it starts once, ends well, and outlives everybody."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from equipoise.cluster import campaign_process, folders, tasks
from equipoise.cluster.files import portable_builds
from equipoise.cluster.folders import CampaignFolder, StoredProgress
from equipoise.cluster.messages import (
    Build,
    Introduction,
    Order,
    State,
    Status,
    from_bytes,
    to_bytes,
)
from equipoise.design.limits import CampaignLimits
from equipoise.files.state import private_folder
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.measure.leftovers import clear_leftovers
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Hooks
from equipoise.model.record import RunRecord
from packages.equipoise.tests.cluster.hosts import (
    begun,
    followed,
    halted,
    host,
    order_for,
    plan_for,
    status_at_end,
    until,
)
from packages.equipoise.tests.programs import finished

__all__ = ["host"]

NANNY = "distributed.nanny.pre-spawn-environ"
LONG = 100_000
"""Blocks of a campaign that does not end by itself."""


def recorded(folder: Path, reference: str = "last") -> RunRecord:
    """A run of the host's ledger."""
    with open_for_reading(folder.parent / "ledger.db") as ledger:
        return ledger.read_run(reference)


def test_a_host_introduces_itself(host: Path) -> None:
    answer = from_bytes(tasks.introduce(b""), Introduction)
    assert answer.folder == str(host)
    assert from_bytes(tasks.introduce(b""), Introduction).host == answer.host


def test_repeated_order_starts_no_second_campaign(host: Path) -> None:
    # A module of the user is none of ours.
    (host / "random.py").write_text("raise SystemExit(9)")
    order = order_for(plan_for(blocks=4))
    assert begun(order).state in ("waiting", "running", "ended")
    end = status_at_end(order)
    assert end == Status("ended", 4, end.running_s, "block limit")
    assert end.running_s > 0.0
    record = recorded(host)
    assert record.plan.membership is not None
    assert record.plan.membership.fleet_identity == order.fleet_identity
    assert record.plan.measure.working_folder == str(host)
    assert record.segments[0].stopped_because == "block limit"
    # Once more, and as a late task of an earlier segment: nothing starts.
    assert begun(order) == end
    assert begun(replace(order, segment=0)) == end
    # Nor where its folder had to make room.
    shutil.rmtree(CampaignFolder.of(order.fleet_identity, order.host_index).path)
    begun(order)
    later = status_at_end(order)
    assert replace(later, running_s=0.0) == replace(end, running_s=0.0)
    assert recorded(host) == record


def test_slices_reproduce_the_record_of_the_host(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_MAX_TRIALS", 3)
    order = order_for(plan_for(blocks=7))
    begun(order)
    slices = 0
    with open_for_writing(host.parent / "copy.db", durable=False) as copy:
        while True:
            answer = followed(order, copy.cursor(order.run_identity))
            if answer.slice:
                slices += 1
                copy.append_slice(answer.slice)
            elif answer.status.state not in ("waiting", "running"):
                break
            else:
                time.sleep(0.02)
        run_id = copy.id_of(order.run_identity)
        assert run_id is not None
        assert copy.read_run(run_id) == recorded(host)
    assert answer.status.stopped_because == "block limit"
    assert slices >= 14 // 3


def test_two_orders_at_once_start_one_process(host: Path) -> None:
    order = order_for(plan_for(blocks=LONG))
    threads = [threading.Thread(target=begun, args=(order,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(partial(has_blocks, order, 1))
    halted(order)
    assert status_at_end(order).stopped_because == "interrupted"
    assert len(recorded(host).segments) == 1


def test_a_halted_campaign_goes_on_in_the_next_session(host: Path) -> None:
    order = order_for(plan_for(blocks=LONG))
    begun(order)
    until(partial(has_blocks, order, 2))
    assert halted(order).state in ("running", "ended")
    end = status_at_end(order)
    assert (end.failure, end.state, end.stopped_because) == (None, "ended", "interrupted")
    # The task that began it may arrive once more.
    assert begun(order) == end
    before = recorded(host)
    limits = CampaignLimits(blocks=end.blocks + 2, min_blocks=end.blocks + 2)
    later = replace(order, segment=2, limits=limits)
    begun(later)
    end = status_at_end(later)
    assert (end.state, end.stopped_because) == ("ended", "block limit")
    after = recorded(host)
    assert after.trials[: len(before.trials)] == before.trials
    assert len(after.segments) == 2


def test_a_campaign_that_is_still_ending_goes_on_in_the_next_session(host: Path) -> None:
    plan = plan_for(blocks=LONG)
    slow = replace(plan.conditions[0], hooks=Hooks(cleanup="sleep 1"))
    order = order_for(replace(plan, conditions=(slow, plan.conditions[1])))
    begun(order)
    until(partial(has_blocks, order, 1))
    assert halted(order).state in ("running", "ended")
    assert begun(replace(order, segment=2)).state in ("waiting", "running")
    progress = CampaignFolder.of(order.fleet_identity, order.host_index).read_progress()
    assert progress is not None
    assert progress.segment == 2


def test_campaign_halted_before_its_first_trial_never_starts(host: Path) -> None:
    order = order_for(plan_for(blocks=LONG))
    with another_campaign():
        waiting = replace(order, allow_concurrent=False)
        begun(waiting)
        hint = until(lambda: followed(waiting).status.hint)
        assert followed(waiting).status.state == "waiting"
        assert "another campaign runs on this host" in hint
        halted(waiting)
        end = status_at_end(waiting)
    assert (end.state, end.stopped_because, end.blocks) == ("ended", "interrupted", 0)
    assert followed(waiting).slice == b""


def test_killed_laboratory_continues_at_the_same_block(host: Path) -> None:
    order = order_for(plan_for("sleep 0.02", "sleep 0.02", blocks=LONG))
    kept: list[RunRecord] = []
    blocks = 0
    for more_blocks in random.Random(7).choices(range(1, 4), k=2):
        begun(order)
        blocks += more_blocks
        until(partial(has_blocks, order, blocks))
        kill(order.fleet_identity)
        assert until(lambda: state_after_death(order.fleet_identity)) == "died"
        kept.append(recorded(host))
        # It may have had more of them by then.
        blocks = followed(order).status.blocks
    assert begun(order).state in ("waiting", "running")
    until(partial(has_blocks, order, blocks + 2))
    halted(order)
    status_at_end(order)
    after = recorded(host)
    assert all(after.trials[: len(before.trials)] == before.trials for before in kept)
    keys = [(trial.phase, trial.block, trial.position) for trial in after.trials]
    assert len(set(keys)) == len(keys)
    assert len(after.segments) == 3


def has_blocks(order: Order, blocks: int) -> bool | None:
    """Whether a campaign has this number of complete blocks."""
    return followed(order).status.blocks >= blocks or None


@contextmanager
def another_campaign() -> Iterator[None]:
    """A process that has the measurement lock of this host."""
    script = (
        "import sys; from equipoise.measure.measurement_lock import lock_host\n"
        "with lock_host(lambda _: None):\n"
        "    print(flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        yield
        # The end of its input ends it.
        owner.communicate()


def test_only_the_trials_of_a_killed_laboratory_are_cleared_away(host: Path) -> None:
    order = order_for(plan_for("sleep 1000", "sleep 1001", blocks=1))
    begun(order)
    trial = until(lambda: trial_of(order.fleet_identity))
    # Another campaign of this user begins: what lives is left alone.
    assert clear_leftovers().removed_folders == ()
    assert not has_ended(trial)
    launchers = psutil.Process(process_of(order.fleet_identity)).children()
    kill(order.fleet_identity)
    for launcher in launchers:
        with contextlib.suppress(psutil.NoSuchProcess):
            launcher.kill()
    until(lambda: state_after_death(order.fleet_identity))
    begun(order)
    until(lambda: trial_of(order.fleet_identity))
    assert has_ended(trial)
    halted(order)


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended; nobody may have waited for it yet."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def trial_of(fleet: str) -> psutil.Process | None:
    """The trial that a campaign runs now."""
    progress = CampaignFolder.of(fleet, 0).read_progress()
    if progress is None or progress.process_id is None:
        return None
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(progress.process_id).children(recursive=True):
            if child.name() == "sleep":
                return child
    return None


def process_of(fleet: str) -> int:
    """The number of a campaign's process, once it is reported."""

    def reported_number() -> int | None:
        progress = CampaignFolder.of(fleet, 0).read_progress()
        return None if progress is None else progress.process_id

    return until(reported_number)


def kill(fleet: str) -> None:
    """Kill the process of a campaign."""
    os.kill(process_of(fleet), signal.SIGKILL)


def state_after_death(fleet: str) -> str | None:
    """The state once the process is gone."""
    folder = CampaignFolder.of(fleet, 0)
    return None if folder.is_alive() else folder.status().state


def test_a_level_of_a_study_is_built_on_the_host(host: Path) -> None:
    built = host / "here" / "fast-1"
    built.mkdir(parents=True)
    (built / "run").symlink_to("/bin/true")
    (host / "source").symlink_to("/bin/true")
    plan = plan_for(f"{built}/run", "true", blocks=1)
    line = f"cp {host}/source {{build}}/run"
    order = replace(
        order_for(plan, builds=(str(built),)), builds=portable_builds({"fast": line}, str(host))
    )
    (built / "run").unlink()
    begun(order)
    assert status_at_end(order).state == "ended"
    program = recorded(host).plan.conditions[0].command[0]
    assert Path(program).is_relative_to(CampaignFolder.of(order.fleet_identity, 0).builds)
    failing = replace(order_for(plan), builds=(Build("fast", "echo no compiler; exit 3"),))
    begun(failing)
    failure = status_at_end(failing).failure
    assert failure is not None
    assert failure.startswith("fast cannot be built: exit status 3")


def test_folders_of_ended_campaigns_are_bounded(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_ENDED_CAMPAIGNS", 2)
    fleets = private_folder(folders.FLEETS_FOLDER)
    states: list[State] = ["ended", "died", "ended", "failed", "ended", "running"]
    for number, state in enumerate(states):
        folder = CampaignFolder(fleets / str(number))
        folder.path.mkdir()
        folder.write_progress(StoredProgress(state, segment=1))
        os.utime(folder.path / "state", (number, number))
    folders.remove_old_campaigns(fleets)
    assert sorted(path.name for path in fleets.iterdir()) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("moment", ["read_progress", "lock_life"])
def test_a_folder_that_another_worker_removes_meanwhile_is_no_failure(
    host: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(folders, "MAX_ENDED_CAMPAIGNS", 1)
    method = getattr(CampaignFolder, moment)

    def removed_meanwhile(folder: CampaignFolder) -> Any:
        before = method(folder) if moment == "read_progress" else None
        shutil.rmtree(folder.path)
        return before or method(folder)

    fleets = private_folder(folders.FLEETS_FOLDER)
    for number in range(2):
        folder = CampaignFolder(fleets / str(number))
        folder.path.mkdir()
        folder.write_progress(StoredProgress("ended", segment=1))
        os.utime(folder.path / "state", (number, number))
    monkeypatch.setattr(CampaignFolder, moment, removed_meanwhile)
    folders.remove_old_campaigns(fleets)
    assert not (fleets / "0").exists()


def test_a_failed_condition_is_named(host: Path) -> None:
    order = order_for(plan_for("true", "false"))
    begun(order)
    end = status_at_end(order)
    assert end.state == "failed"
    assert end.failure is not None
    assert end.failure.startswith("false failed: exit status 1")
    assert end.hint is not None
    assert "--ignore-failure" in end.hint


ON_A_FULL_DISK = """
import os, subprocess, sys
from pathlib import Path

from equipoise.ledger import open_for_reading
from packages.equipoise.tests.cluster.hosts import begun, followed, halted, order_for
from packages.equipoise.tests.cluster.hosts import plan_for, status_at_end, until

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "none", str(disk)], check=True)
os.environ.update(XDG_STATE_HOME=f"{disk}/state", EQUIPOISE_LEDGER=f"{disk}/ledger.db")

def kept():
    with open_for_reading(disk / "ledger.db") as ledger:
        return ledger.read_run("last").trials

order = order_for(plan_for(blocks=10**6))
begun(order)
until(lambda: followed(order).status.blocks or None)
filler = open(disk / "filler", "wb", buffering=0)
try:
    while filler.write(bytes(4096)):
        pass
except OSError:
    pass
end = status_at_end(order)
print(end.state, end.failure, "|", end.hint)
before = kept()
os.truncate(disk / "filler", 0)
begun(order)
until(lambda: followed(order).status.blocks > end.blocks or None)
halted(order)
print(status_at_end(order).state, kept()[: len(before)] == before)
"""


def test_full_disk_is_named_and_keeps_recorded_trials(tmp_path: Path) -> None:
    # A name space of its own: the disk vanishes with the process.
    apart = ["unshare", "--mount"]
    if os.geteuid() != 0:
        apart += ["--user", "--map-root-user"]
    probe = [*apart, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if (
        shutil.which("unshare") is None
        or subprocess.run(probe, capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine lets us mount no small disk (unshare, mount -t tmpfs)")
    ran = finished(
        [*apart, sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)], cwd=Path(__file__).parents[4]
    )
    assert ran.stderr == ""
    failed, went_on = ran.stdout.splitlines()
    assert failed.startswith("failed the ledger")
    assert "no space is left on its disk" in failed
    assert "| free space there" in failed
    assert went_on == "ended True"


def test_unreadable_or_misplaced_plan_is_refused(host: Path) -> None:
    order = order_for(plan_for())
    with pytest.raises(UnusableInput, match="cannot be read"):
        begun(replace(order, plan="{}"))
    with pytest.raises(UnusableInput, match="plan for another host of the fleet"):
        begun(replace(order, host_index=1))
    assert from_bytes(to_bytes(followed(order).status), Status).state == "absent"


@pytest.mark.parametrize("fleet", ["", "..", "../../etc", "a" * 31, "A" * 32, "g" * 32])
def test_a_fleet_without_identity_is_refused(host: Path, fleet: str) -> None:
    order = order_for(plan_for())
    with pytest.raises(UnusableInput, match="not the identity"):
        begun(replace(order, fleet_identity=fleet))


def test_variables_of_a_dask_worker_reach_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_LOGGING__DISTRIBUTED", "info")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setenv("PYTHONHASHSEED", "6640")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    # A cluster of an earlier test may have left it.
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    alone = campaign_process.environment_without_dask()
    assert alone == {key: each for key, each in os.environ.items() if not key.startswith("DASK_")}
    # Below a nanny, which was started with one of them.
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    monkeypatch.setattr(
        campaign_process, "_environment_of_parent", lambda: {"OMP_NUM_THREADS": "1"}
    )
    withheld = {"MALLOC_TRIM_THRESHOLD_", "PYTHONHASHSEED"}
    kept = {key: each for key, each in alone.items() if key not in withheld}
    assert campaign_process.environment_without_dask() == kept


def test_trials_lack_exactly_the_variables_of_the_nanny() -> None:
    # A later version of Dask may set more.
    config = pytest.importorskip("dask").config
    importlib.import_module("distributed")
    names = {name: str(value) for name, value in config.get(NANNY).items()}
    assert {**names, "PYTHONHASHSEED": "6640"} == campaign_process._NANNY_VARIABLES
