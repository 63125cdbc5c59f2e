"""Run a host's campaign in a separate process, which needs neither the worker nor the coordinator.

Two processes of the host use this module:

1. The Dask worker calls `begin`, which writes the order into the folder of the campaign. Then it
   starts ``python -m equipoise.cluster.campaign_process FOLDER LIFE``.
2. The campaign process runs `main`, `run` and `_measure`. It has its own Unix session, and no
   variable and no descriptor of Dask. It measures as ``equipoise run`` does: with the measurement
   lock, the launcher and the ledger of the host.

LIFE is the descriptor of a locked file. The kernel unlocks this file when the process ends.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import NoReturn, get_args

from msgspec.structs import replace

from equipoise.campaign import conduct
from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.conduct import Interrupted, measurement_lock
from equipoise.campaign.progress import CampaignProgress, ProgressListener
from equipoise.campaign.segment import StopReason
from equipoise.cluster.files import MachineFolders, fill_working_folder, local_plan
from equipoise.cluster.folders import (
    CampaignFolder,
    StoredOrder,
    StoredProgress,
    remove_old_campaigns,
    require_run_identity,
)
from equipoise.cluster.messages import Order, Status, version_mismatch
from equipoise.design.limits import CampaignLimits
from equipoise.files.limits import environment_fault, limit_reached
from equipoise.files.state import default_ledger
from equipoise.ledger import Ledger, open_for_writing
from equipoise.measure.abandoned import environment_of
from equipoise.measure.builds import build_levels
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.measurement_lock import LockOwner
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import INTERRUPTED
from equipoise.shared.spelling import command_line_spelling, option

MODULE = "equipoise.cluster.campaign_process"
_MAX_LOG_BYTES = 1 << 16
"""Size of the log above which a new process empties it."""
_NANNY_VARIABLES = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "6640",
}
"""Variables that Dask's nanny, the parent process of a worker, sets (``distributed.nanny``). They
would change the times of trials."""


def begin(order: Order) -> Status:
    """Start the campaign of an order in a separate process, unless the campaign runs or has ended.

    If two orders come at once, only one process starts: the first order locks the file ``life``,
    and the process inherits the lock.

    Raise `UnusableInput` if the order has no usable plan, a shipped file is missing, or the folder
    of the campaign cannot be written.
    """
    require_run_identity(order.run_identity)
    folder = CampaignFolder.of(order.fleet_identity, order.host_index)
    try:
        if not folder.path.exists():
            remove_old_campaigns(folder.path.parent)
            folder.path.mkdir(mode=0o700, exist_ok=True)
        with folder.lock_life() as life_descriptor:
            if life_descriptor is not None and _must_start(order, folder):
                _start_process(order, folder, life_descriptor)
    except OSError as error:
        raise _folder_error(folder, error) from error
    return folder.status()


def _must_start(order: Order, folder: CampaignFolder) -> bool:
    """Return whether an order starts the process of a campaign that has no living process."""
    progress = folder.read_progress()
    if progress is None or order.segment > progress.segment:
        return True
    # A repeated order starts a campaign again only if its process died or failed.
    state = folder.progress_of_dead_process(progress).state
    return order.segment == progress.segment and state in ("died", "failed")


def _start_process(order: Order, folder: CampaignFolder, life_descriptor: int) -> None:
    """Check and write the order, then start the campaign process with the locked file."""
    earlier_order = folder.read_order()
    stored_order = StoredOrder(
        order,
        str(default_ledger().absolute()) if earlier_order is None else earlier_order.ledger,
        os.getcwd() if earlier_order is None else earlier_order.folder,
    )
    check_plan(local_plan(order.plan, _machine_folders(stored_order, folder)), order)
    if order.shipped:
        fill_working_folder(order.shipped, folder.working_folder)
    folder.write_order(stored_order)
    progress = StoredProgress("waiting", segment=order.segment)
    if (earlier_progress := folder.read_progress()) is not None:
        progress = replace(progress, run_id=earlier_progress.run_id, blocks=earlier_progress.blocks)
    folder.write_progress(progress)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    if folder.log.exists() and folder.log.stat().st_size > _MAX_LOG_BYTES:
        flags |= os.O_TRUNC
    log = os.open(folder.log, flags, 0o600)
    try:
        # -P: modules in the working folder, such as a user's random.py, must not be imported.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(folder.path), str(life_descriptor)],
            cwd=stored_order.folder,
            env=environment_without_dask(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=(life_descriptor,),
            start_new_session=True,
        )
    finally:
        os.close(log)
    # The thread reads the exit status, so that the ended process does not stay as a zombie.
    threading.Thread(target=process.wait, name="equipoise-reaper", daemon=True).start()


def environment_without_dask() -> dict[str, str]:
    """Return the environment of this process without the changes that Dask made."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("DASK_")
    }
    if multiprocessing.parent_process() is None:
        # No nanny started this process.
        return environment
    nanny_environment = _environment_of_parent()
    for name, value in _NANNY_VARIABLES.items():
        if environment.get(name) == value:
            del environment[name]
            if name in nanny_environment:
                environment[name] = nanny_environment[name]
    return environment


def _environment_of_parent() -> Mapping[str, str]:
    try:
        entries = environment_of(os.getppid()).split(b"\0")
    except OSError:
        # The nanny has ended.
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


def _machine_folders(stored_order: StoredOrder, folder: CampaignFolder) -> MachineFolders:
    return MachineFolders(
        str(folder.working_folder) if stored_order.order.shipped else stored_order.folder
    )


def _folders_with_builds(stored_order: StoredOrder, folder: CampaignFolder) -> MachineFolders:
    """Build the levels of a study; return the folders of this host, including these builds."""
    folders = _machine_folders(stored_order, folder)
    lines = {build.level: folders.to_local(build.line) for build in stored_order.order.builds}
    # A killed process may have left incomplete builds.
    shutil.rmtree(folder.builds, ignore_errors=True)
    builds = build_levels(lines, folder.builds, own_environment(), folders.working_folder)
    return replace(folders, builds=tuple(builds.values()))


def check_plan(plan: Plan, order: Order) -> None:
    """Raise `UnusableInput` if a plan is for another host, or cannot be measured on a cluster."""
    member = plan.membership
    if member is None or (member.fleet_identity, member.host_index) != (
        order.fleet_identity,
        order.host_index,
    ):
        raise version_mismatch("the order has a plan for another host of the fleet")
    if plan.terms is not None:
        raise UnusableInput(
            f"a {plan.terms.noun} cannot be measured on a cluster",
            hint=f"remove {option('cluster')}: it is for equipoise compare, run and os",
        )


def _folder_error(folder: CampaignFolder, error: OSError) -> EquipoiseError:
    known_error = limit_reached(error) or environment_fault(error)
    return known_error or UnusableInput(
        f"cannot start the campaign in {folder.path}: {error.strerror or error}",
        hint="on the host, set XDG_STATE_HOME to a folder of your own on a disk with free space",
    )


class _ProgressWriter(ProgressListener):
    """Listener that writes the progress of a campaign, never during a trial."""

    def __init__(self, folder: CampaignFolder, progress: StoredProgress) -> None:
        self._folder = folder
        self.progress = progress

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Write the run id."""
        self.write(run_id=run_id, blocks=blocks_before)

    def block_ended(self, progress: CampaignProgress) -> None:
        """Write the number of complete blocks."""
        self.write(blocks=progress.blocks)

    def write(self, **changes: object) -> None:
        """Change these fields of the progress, and write the progress."""
        started_at_s = self.progress.started_at_s
        running_s = 0.0 if started_at_s is None else time.monotonic() - started_at_s
        self.progress = replace(self.progress, **{"running_s": running_s, **changes})
        self._folder.write_progress(self.progress)


def run(folder: CampaignFolder) -> None:
    """Measure the campaign of the order in a folder, and write how the campaign ended."""
    stored_order = folder.read_order()
    progress = folder.read_progress()
    assert stored_order is not None
    assert progress is not None
    writer = _ProgressWriter(folder, progress)
    stopped_because = INTERRUPTED
    failure: EquipoiseError | None = None
    try:
        writer.write(process_id=os.getpid())
        if not folder.is_halted(stored_order.order.segment):
            stopped_because = _measure(folder, stored_order, writer)
    except (KeyboardInterrupt, Interrupted):
        stopped_because = INTERRUPTED
    except EquipoiseError as error:
        failure = limit_reached(error) or error
    except OSError as error:
        failure = _folder_error(folder, error)
    except Exception as error:
        traceback.print_exc()
        failure = EquipoiseError(
            f"a defect of Equipoise: {type(error).__name__}: {error}",
            hint=f"report this defect, with the file {folder.log} of {os.uname().nodename}",
        )
    writer.write(
        state="failed" if failure else "ended",
        stopped_because=None if failure else stopped_because,
        failure=failure and failure.what,
        hint=failure and failure.hint,
        process_id=None,
    )


def _measure(folder: CampaignFolder, stored_order: StoredOrder, writer: _ProgressWriter) -> str:
    """Start or resume the campaign on this host; return why the campaign stopped."""
    order = stored_order.order

    def write_wait(owner: LockOwner) -> None:
        writer.write(
            hint=f"another campaign runs on this host ({owner.describe()}): wait for its end, "
            f"or add {option('allow_concurrent', True)}"
        )

    with (
        measurement_lock(write_wait, allow_concurrent=order.allow_concurrent),
        open_for_writing(stored_order.ledger, durable=order.durable) as ledger,
    ):
        clear_leftovers()
        writer.write(state="running", started_at_s=time.monotonic(), hint=None)
        run_id = ledger.id_of(order.run_identity)
        if run_id is None:
            plan = local_plan(order.plan, _folders_with_builds(stored_order, folder))
            identity = bytes.fromhex(order.run_identity)
            run_id = conduct.start(plan, ledger, writer, identity=identity)
        else:
            _resume(run_id, order, ledger, writer)
        writer.write(run_id=run_id)
        return ledger.read_run(run_id).segments[-1].stopped_because or INTERRUPTED


def _resume(run_id: str, order: Order, ledger: Ledger, writer: _ProgressWriter) -> None:
    """Continue a campaign, unless it has ended and the order adds no blocks."""
    record = ledger.read_run(run_id)
    block_count = len(complete_blocks(record.draws, record.trials))
    writer.write(run_id=run_id, blocks=block_count)
    stop_reason = record.segments[-1].stopped_because
    if order.limits is None and stop_reason in get_args(StopReason):
        # The campaign has ended, and the order has no new limits.
        return
    limits = order.limits or CampaignLimits()
    if stop_reason == "block limit" and limits.blocks is None:
        # The campaign has all blocks of its plan.
        return
    conduct.resume(run_id, limits, ledger, writer)


def _interrupt_campaign(signal_number: int, frame: FrameType | None) -> NoReturn:
    # A second signal must not interrupt the end of the campaign.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


@command_line_spelling()
def main() -> int:
    """Run the campaign whose folder the command line names."""
    signal.signal(signal.SIGINT, _interrupt_campaign)
    signal.signal(signal.SIGTERM, _interrupt_campaign)
    folder_path, life_descriptor = sys.argv[1:]
    # Trials must not inherit the lock.
    os.set_inheritable(int(life_descriptor), False)
    run(CampaignFolder(Path(folder_path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
