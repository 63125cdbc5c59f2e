"""A host's campaign in a process of its own, which needs neither worker nor coordinator.

`begin` writes the order into the folder of the campaign and starts
``python -m equipoise.cluster.laboratory FOLDER LIFE``. That process leads a session of its own, has
no variable and no descriptor of Dask, and runs the campaign as ``equipoise run`` does: the
measurement lock of the host, its launcher, its ledger. LIFE is the descriptor of a locked file: the
kernel unlocks the file when the process ends, however that happens.
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
from equipoise.cluster.files import Places, fill_working_folder, local_plan
from equipoise.cluster.folders import (
    CampaignFolder,
    Progress,
    StoredOrder,
    check_identity,
    remove_old_campaigns,
)
from equipoise.cluster.messages import Order, Status, other_version
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

MODULE = "equipoise.cluster.laboratory"
_MAX_LOG_BYTES = 1 << 16
_NANNY_VARIABLES = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "6640",
}
"""Variables that the nanny of Dask sets for a worker, with its values (``distributed.nanny``). They
would change what trials measure."""


def begin(order: Order) -> Status:
    """Start the campaign of an order in a detached process, unless it goes on or has ended.

    Two orders at once start one process: the first one locks the life of the campaign and hands
    the lock on to the process.

    Raise `UnusableInput` if the order has no usable plan, a shipped file is missing, or the folder
    of the campaign cannot be written.
    """
    check_identity(order.identity)
    folder = CampaignFolder.of(order.fleet, order.place)
    try:
        if not folder.path.exists():
            remove_old_campaigns(folder.path.parent)
            folder.path.mkdir(mode=0o700, exist_ok=True)
        with folder.starting() as life:
            if life is not None and _is_due(order, folder):
                _start(order, folder, life)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder.status()


def _is_due(order: Order, folder: CampaignFolder) -> bool:
    """Return whether an order starts a process, where none lives."""
    progress = folder.progress()
    if progress is None or order.session > progress.session:
        return True
    state = folder.after_death(progress).state
    return order.session == progress.session and state in ("died", "failed")


def _start(order: Order, folder: CampaignFolder, life: int) -> None:
    earlier = folder.stored()
    stored = StoredOrder(
        order,
        str(default_ledger().absolute()) if earlier is None else earlier.ledger,
        os.getcwd() if earlier is None else earlier.folder,
    )
    check_plan(local_plan(order.plan, _places(stored, folder)), order)
    if order.shipped:
        fill_working_folder(order.shipped, folder.working_folder)
    folder.store(stored)
    progress = Progress("waiting", session=order.session)
    if (before := folder.progress()) is not None:
        progress = replace(progress, run=before.run, blocks=before.blocks)
    folder.write_progress(progress)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    if folder.log.exists() and folder.log.stat().st_size > _MAX_LOG_BYTES:
        flags |= os.O_TRUNC
    log = os.open(folder.log, flags, 0o600)
    try:
        # With -P the working folder is no place for modules: a user's random.py may lie there.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(folder.path), str(life)],
            cwd=stored.folder,
            env=undisturbed_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=(life,),
            start_new_session=True,
        )
    finally:
        os.close(log)
    # Reaped when it ends, if this process is still there then.
    threading.Thread(target=process.wait, name="equipoise-reaper", daemon=True).start()


def undisturbed_environment() -> dict[str, str]:
    """Return the environment of this process without what Dask set for its worker.

    A variable that the nanny sets has the value with which the nanny itself was started.
    """
    environment = {key: each for key, each in os.environ.items() if not key.startswith("DASK_")}
    if multiprocessing.parent_process() is None:
        # No nanny started this process.
        return environment
    before = _environment_of_parent()
    for name, value in _NANNY_VARIABLES.items():
        if environment.get(name) == value:
            del environment[name]
            environment.update({name: before[name]} if name in before else {})
    return environment


def _environment_of_parent() -> Mapping[str, str]:
    try:
        entries = environment_of(os.getppid()).split(b"\0")
    except OSError:
        # The nanny has ended.
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


def _places(stored: StoredOrder, folder: CampaignFolder) -> Places:
    return Places(str(folder.working_folder) if stored.order.shipped else stored.folder)


def _built(stored: StoredOrder, folder: CampaignFolder) -> Places:
    """Build the levels of a study; return the places with the folder of each."""
    places = _places(stored, folder)
    lines = {build.level: places.local(build.line) for build in stored.order.builds}
    # What a killed process left is not complete.
    shutil.rmtree(folder.builds, ignore_errors=True)
    builds = build_levels(lines, folder.builds, own_environment(), places.folder)
    return replace(places, builds=tuple(builds.values()))


def check_plan(plan: Plan, order: Order) -> None:
    """Refuse a plan that is no plan of a host, or that needs what only one machine has.

    Raise `UnusableInput` if it is not for this place, or only `equipoise` on one machine can
    measure it.
    """
    member = plan.membership
    if member is None or (member.whole, member.place) != (order.fleet, order.place):
        raise other_version("the plan of the order is not for this place of the fleet")
    if plan.terms is not None:
        raise UnusableInput(
            f"a {plan.terms.noun} cannot be measured on a cluster",
            hint=f"{option('cluster')} is for equipoise compare, run and os",
        )


def _unwritable(folder: CampaignFolder, error: OSError) -> EquipoiseError:
    known = limit_reached(error) or environment_fault(error)
    return known or UnusableInput(
        f"cannot start the campaign in {folder.path}: {error.strerror or error}",
        hint="set XDG_STATE_HOME on the host to a folder of your own with room",
    )


class _Reporter(ProgressListener):
    """Writes down how the campaign goes, between trials only."""

    def __init__(self, folder: CampaignFolder, progress: Progress) -> None:
        self._folder = folder
        self.progress = progress

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Write which run it is."""
        self.report(run=run_id, blocks=blocks_before)

    def block_ended(self, progress: CampaignProgress) -> None:
        """Write how many blocks are complete."""
        self.report(blocks=progress.blocks)

    def report(self, **changes: object) -> None:
        """Write what has changed."""
        began = self.progress.began
        running_s = 0.0 if began is None else time.monotonic() - began
        self.progress = replace(self.progress, **{"running_s": running_s, **changes})
        self._folder.write_progress(self.progress)


def run(folder: CampaignFolder) -> None:
    """Carry out the order in the folder of a campaign, and write how it ended."""
    stored = folder.stored()
    progress = folder.progress()
    assert stored is not None
    assert progress is not None
    reporter = _Reporter(folder, progress)
    stopped_because = INTERRUPTED
    failed: EquipoiseError | None = None
    try:
        reporter.report(process=os.getpid())
        if not folder.is_halted(stored.order.session):
            stopped_because = _measure(folder, stored, reporter)
    except (KeyboardInterrupt, Interrupted):
        stopped_because = INTERRUPTED
    except EquipoiseError as error:
        failed = limit_reached(error) or error
    except OSError as error:
        failed = _unwritable(folder, error)
    except Exception as error:
        traceback.print_exc()
        failed = EquipoiseError(
            f"a defect of Equipoise: {type(error).__name__}: {error}",
            hint=f"please report it, with {folder.log} of {os.uname().nodename}",
        )
    reporter.report(
        state="failed" if failed else "ended",
        stopped_because=None if failed else stopped_because,
        failure=failed and failed.what,
        hint=failed and failed.hint,
        process=None,
    )


def _measure(folder: CampaignFolder, stored: StoredOrder, reporter: _Reporter) -> str:
    """Start the campaign or go on with it; return why it stopped."""
    order = stored.order

    def waits(owner: LockOwner) -> None:
        reporter.report(
            hint=f"another campaign runs on this host ({owner.describe()}): wait for its end, "
            f"or add {option('allow_concurrent', True)}"
        )

    with (
        measurement_lock(waits, allow_concurrent=order.allow_concurrent),
        open_for_writing(stored.ledger, durable=order.durable) as ledger,
    ):
        clear_leftovers()
        reporter.report(state="running", began=time.monotonic(), hint=None)
        run_id = ledger.id_of(order.identity)
        if run_id is None:
            plan = local_plan(order.plan, _built(stored, folder))
            identity = bytes.fromhex(order.identity)
            run_id = conduct.start(plan, ledger, reporter, identity=identity)
        else:
            _resume(run_id, order, ledger, reporter)
        reporter.report(run=run_id)
        return ledger.read_run(run_id).segments[-1].stopped_because or INTERRUPTED


def _resume(run_id: str, order: Order, ledger: Ledger, reporter: _Reporter) -> None:
    """Go on with a campaign that was cut, or that has new limits."""
    record = ledger.read_run(run_id)
    blocks = len(complete_blocks(record.draws, record.trials))
    reporter.report(run=run_id, blocks=blocks)
    stopped = record.segments[-1].stopped_because
    if order.limits is None and stopped in get_args(StopReason):
        # It is at its own end; only its folder was not there any more.
        return
    limits = order.limits or CampaignLimits()
    if stopped == "block limit" and limits.blocks is None:
        # It has all that its plan asks for.
        return
    conduct.resume(run_id, limits, ledger, reporter)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    # Once: what it ends in order must not be interrupted again.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


@command_line_spelling()
def main() -> int:
    """Carry out the order of the folder that the command line names."""
    signal.signal(signal.SIGINT, _terminate)
    signal.signal(signal.SIGTERM, _terminate)
    folder, life = sys.argv[1:]
    # Trials have no part in it.
    os.set_inheritable(int(life), False)
    run(CampaignFolder(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
