"""What trials compete with: other work on the processors, and what fills memory and disk."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.host_state import HostState, steal_since_boot
from equipoise.measure.environment import cgroups
from equipoise.measure.environment.hardware import CPUS, meminfo, online, threads_share_cores
from equipoise.measure.environment.system import Host, Unknown, readable
from equipoise.model.host import Disturbance

NAMED_SHARE = 0.05
"""Share of one CPU from which on a process is named."""
TOGETHER_SHARE = 0.10
"""Share of one CPU that all unnamed processes together may use."""
UNSEEN_SHARE = 0.25
"""Share of one CPU that may be the kernel's error, because it samples the processors' time."""
MOST_NAMED = 5
HIGH_SHARE = 0.5
"""Load per CPU from which on a trial often shares a CPU, a cache or a frequency limit."""
LEAST_LOAD = 0.75
STEAL_NOW = 0.03
STEAL_SINCE_BOOT = 0.02
FREE_MEMORY = 0.10
"""Fraction of memory below which it counts as nearly full."""
LEAST_BYTES = 256 << 20
NEARLY_FULL_BYTES = 1 << 30
FREE_DISK = 0.05
LEAST_FILES = 1000


def busy_processes(state: HostState) -> Iterator[Disturbance]:
    """Name each process that takes CPU time, and add up what the others take."""
    processes = state.activity.busy_processes()
    named = [process for process in processes if process.share >= NAMED_SHARE][:MOST_NAMED]
    for process in named:
        yield Disturbance(
            "busy_process",
            "disturbs",
            f"process {process.number} ({process.name}) uses {100 * process.share:.0f} % of a CPU",
            "a thread of the kernel: wait until it is done; see: top -b -n 1 | head -30"
            if process.of_the_kernel
            else f"end it, or halt it meanwhile: kill -STOP {process.number}, "
            f"afterwards kill -CONT {process.number}",
        )
    rest = sum(process.share for process in processes) - sum(process.share for process in named)
    if rest >= TOGETHER_SHARE:
        others = len(processes) - len(named)
        what = f"{others} other processes together use {100 * rest:.0f} % of a CPU"
        hint = "end what is not needed; see: top -b -n 1 | head -30"
        yield Disturbance("busy_processes", "disturbs", what, hint)
    unseen = state.activity.unseen_share()
    if unseen >= UNSEEN_SHARE:
        yield Disturbance(
            "unseen_processes",
            "disturbs",
            f"processes that ended meanwhile, or that cannot be seen from here, "
            f"use {100 * unseen:.0f} % of a CPU",
            "wait for the build, or look from outside the container: sudo top",
        )


def load(state: HostState) -> Iterator[Disturbance]:
    """Compare the load average of the last minute with the number of CPUs."""
    text = state.host.text("/proc/loadavg")
    try:
        average = float(text.split()[0])
    except (ValueError, IndexError):
        raise Unknown(f"/proc/loadavg: {text[:40]!r} is no load") from None
    cpus = len(online(state.host))
    if average >= max(LEAST_LOAD, HIGH_SHARE * cpus):
        what = f"over the last minute {average:g} processes on average wanted one of {cpus} CPUs"
        hint = "wait until it has gone down; see: uptime"
        yield Disturbance("high_load", "disturbs" if average >= cpus else "weakens", what, hint)


def cpu_quota(state: HostState) -> Iterator[Disturbance]:
    """Report a quota smaller than the CPUs; it disturbs if one busy thread exceeds it."""
    quota = cgroups.cpu_quota(state.host)
    if quota is None or quota.value >= len(online(state.host)):
        return
    try:
        halted = state.activity.change("times_throttled")
    except Unknown:
        # The quota is known all the same.
        halted = 0
    unlimited = "-1" if quota.file.endswith("cfs_quota_us") else "max"
    yield Disturbance(
        "cpu_quota",
        "disturbs" if quota.value < 1 or halted else "weakens",
        f"a CPU quota lets us use {quota.value:g} CPUs, then stops us until its next period"
        + (f"; it did so {halted} times just now" if halted else ""),
        f"echo {unlimited} | sudo tee {quota.file}; for a container: "
        "docker update --cpu-quota -1 CONTAINER",
    )


def steal(state: HostState) -> Iterator[Disturbance]:
    """Report CPU time that the hypervisor takes away now, or often took."""
    hint = (
        "nothing inside this machine ends it: use a dedicated host, or measure for longer: "
        "equipoise compare --budget 600 …"
    )
    now = state.activity.steal_share()
    if now >= STEAL_NOW:
        what = f"the hypervisor takes away {100 * now:.0f} % of the CPU time for other machines"
        yield Disturbance("steal", "disturbs", what, hint)
        return
    before = steal_since_boot(state.host)
    if before >= STEAL_SINCE_BOOT:
        what = f"since the boot the hypervisor took away {100 * before:.1f} % of the CPU time"
        yield Disturbance("steal", "weakens", what, hint)


def shared_cores(state: HostState) -> Iterator[Disturbance]:
    """Report two CPUs on one core (SMT): work on one slows the other."""
    if threads_share_cores(state.host):
        what = "two CPUs share a core (SMT): a trial slows down when its twin has work"
        hint = f"echo off | sudo tee {CPUS}/smt/control"
        yield Disturbance("shared_cores", "weakens", what, hint)


def full_memory(state: HostState) -> Iterator[Disturbance]:
    """Check the host's memory, then the limit of our control group."""
    available = meminfo(state.host, "MemAvailable")
    total = meminfo(state.host, "MemTotal")
    if available < FREE_MEMORY * total:
        what = f"memory is nearly full: {available / 1e6:.0f} of {total / 1e6:.0f} MB are available"
        hint = "end what is not needed; the largest: ps -e -o pid,rss,comm --sort=-rss | head"
        yield Disturbance("full_memory", "disturbs", what, hint)
    try:
        limit = cgroups.memory_limit(state.host)
    except Unknown:
        # Without control groups there is no limit.
        limit = None
    if limit is None:
        return
    used = cgroups.memory_in_use(state.host, limit)
    if used > (1 - FREE_MEMORY) * limit.value:
        yield Disturbance(
            "full_memory_limit",
            "disturbs",
            f"{used / 1e6:.0f} MB are in use of the {limit.value / 1e6:.0f} MB "
            "that our control group may have",
            f"raise {limit.file}; for a container: docker update --memory SIZE CONTAINER",
        )


def swap(state: HostState) -> Iterator[Disturbance]:
    """Report pages that move to or from disk now, or that lie there."""
    moved = state.activity.change("pages_swapped")
    used = _swap_in_use(state.host)
    hint = (
        "if there is memory enough: sudo swapoff -a && sudo swapon -a; else end what is not needed"
    )
    if moved > 0:
        what = f"the host is swapping: {moved} pages in {state.activity.seconds:.1f} s"
        yield Disturbance("swapping", "disturbs", what, hint)
    elif used > 0:
        effect = "a process that needs them waits for the disk"
        what = f"{used / 1e6:.0f} MB of memory lie in swap: {effect}"
        yield Disturbance("swap_in_use", "weakens", what, hint)


def _swap_in_use(host: Host) -> int:
    """Return the bytes that lie in swap."""
    lines = host.text("/proc/swaps").splitlines()[1:]
    try:
        return 1024 * sum(int(line.split()[3]) for line in lines)
    except (ValueError, IndexError):
        raise Unknown("/proc/swaps has another form than the kernel documents") from None


def full_temporary_folder(state: HostState) -> Iterator[Disturbance]:
    """Check the temporary folder for free bytes, then for free files."""
    try:
        space = state.free_space(state.scratch)
    except OSError as error:
        raise Unknown(f"{state.scratch}: {error.strerror}") from None
    # What only root may use (f_bfree) is no room for a trial.
    free, total = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    name = readable(str(state.scratch))
    hint = "make room, or use another folder: export TMPDIR=/var/tmp"
    if free < LEAST_BYTES or (free < NEARLY_FULL_BYTES and free < FREE_DISK * total):
        what = f"{name} has {free / 1e6:.0f} MB left of {total / 1e6:.0f} MB"
        yield Disturbance("small_temporary_folder", "disturbs", what, hint)
    elif 0 < space.f_files and space.f_favail < LEAST_FILES:
        what = f"{name} can take only {space.f_favail} more files"
        yield Disturbance("few_temporary_files", "disturbs", what, hint)
