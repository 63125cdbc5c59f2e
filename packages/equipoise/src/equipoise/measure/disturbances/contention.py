"""Check for other work on the processors, full memory, and a full disk.

A share is CPU time as a fraction of the time of one CPU. `begin_watch` and `busy_host` run cheap
checks before and after a campaign: two readings of /proc take milliseconds. The work of Equipoise,
its launcher and its trials is not a disturbance.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from equipoise.measure.disturbances.host_state import (
    WATCH_S,
    Activity,
    BusyProcess,
    HostState,
    Moment,
    read_moment,
    steal_since_boot,
)
from equipoise.measure.environment import cgroups, hardware
from equipoise.measure.environment.system import Host, Unknown, readable
from equipoise.model.host import Disturbance
from equipoise.model.record import CampaignWarning

MIN_NAMED_SHARE = 0.05
"""A process is named if it uses at least this share of one CPU."""
MIN_UNNAMED_SHARE = 0.10
"""Unnamed processes are reported if they use at least this share of one CPU together."""
MIN_UNSEEN_SHARE = 0.25
"""Unseen processes are reported if they use at least this share of one CPU together. Smaller shares
may be errors of the clock ticks."""
MAX_NAMED_PROCESSES = 5
MIN_LOAD_PER_CPU = 0.5
"""Load per CPU from which on trials often share a CPU, a cache or a frequency limit."""
MIN_LOAD = 0.75
"""Smallest load that is reported, however few CPUs there are."""
MIN_STEAL_NOW, MIN_STEAL_SINCE_BOOT = 0.03, 0.02
"""Smallest reported fractions of the CPU time that the hypervisor takes away."""
MIN_FREE_MEMORY_SHARE = 0.10
"""Free share of memory below which memory is nearly full."""
MIN_FREE_BYTES, AMPLE_FREE_BYTES = 256 << 20, 1 << 30
"""A disk with free bytes below the first number is nearly full; above the second, it is not."""
MIN_FREE_DISK_SHARE = 0.05
"""Free share below which a disk between these two numbers is nearly full."""
MIN_FREE_FILES = 1000
"""Number of further files below which a disk is reported."""


def busy_processes(state: HostState) -> Iterator[Disturbance]:
    """Report each of the busiest other processes, and all further processes as a sum."""
    processes = state.activity.busy_processes()
    named_processes = _named_processes(processes)
    for process in named_processes:
        yield Disturbance(
            "busy_process",
            "disturbs",
            f"process {process.pid} ({process.name}) uses {100 * process.share:.0f} % of a CPU",
            "wait until this thread of the kernel is done; see: top -b -n 1 | head -30"
            if process.is_kernel_thread
            else f"end it, or halt it while you measure: kill -STOP {process.pid}, "
            f"afterwards kill -CONT {process.pid}",
        )
    unnamed_share = _total_share(processes) - _total_share(named_processes)
    if unnamed_share >= MIN_UNNAMED_SHARE:
        unnamed_count = len(processes) - len(named_processes)
        share = _percent(unnamed_share)
        summary = f"{unnamed_count} other processes together use {share} of a CPU"
        hint = "end unneeded processes; see: top -b -n 1 | head -30"
        yield Disturbance("busy_processes", "disturbs", summary, hint)
    unseen_share = state.activity.unseen_share()
    if unseen_share >= MIN_UNSEEN_SHARE:
        yield Disturbance(
            "unseen_processes",
            "disturbs",
            f"processes that ended meanwhile, or that cannot be seen from here, "
            f"use {100 * unseen_share:.0f} % of a CPU",
            "wait until they end, or look from outside the container: sudo top",
        )


def _named_processes(processes: list[BusyProcess]) -> list[BusyProcess]:
    named_processes = [process for process in processes if process.share >= MIN_NAMED_SHARE]
    return named_processes[:MAX_NAMED_PROCESSES]


def _total_share(processes: list[BusyProcess]) -> float:
    return sum(process.share for process in processes)


def load(state: HostState) -> Iterator[Disturbance]:
    """Compare the load average of the last minute with the number of CPUs."""
    text = state.host.text("/proc/loadavg")
    try:
        average = float(text.split()[0])
    except (ValueError, IndexError):
        raise Unknown(f"/proc/loadavg: {text[:40]!r} is not a load") from None
    cpus = len(hardware.online_cpus(state.host))
    if average >= max(MIN_LOAD, MIN_LOAD_PER_CPU * cpus):
        summary = f"over the last minute {average:g} processes on average needed one of {cpus} CPUs"
        hint = "wait until this load has gone down; see: uptime"
        yield Disturbance("high_load", "disturbs" if average >= cpus else "weakens", summary, hint)


def cpu_quota(state: HostState) -> Iterator[Disturbance]:
    """Report a quota of CPU time below the number of CPUs: it stops busy threads."""
    quota = cgroups.cpu_quota(state.host)
    if quota is None or quota.value >= len(hardware.online_cpus(state.host)):
        return
    try:
        times_throttled = state.activity.change("times_throttled")
    except Unknown:
        # The quota itself is known.
        times_throttled = 0
    unlimited = "-1" if quota.file.endswith("cfs_quota_us") else "max"
    yield Disturbance(
        "cpu_quota",
        "disturbs" if quota.value < 1 or times_throttled else "weakens",
        f"a CPU quota lets Equipoise use {quota.value:g} CPUs, then stops it until the next period"
        + (f"; it did so {times_throttled} times just now" if times_throttled else ""),
        f"echo {unlimited} | sudo tee {quota.file}; for a container: "
        "docker update --cpu-quota -1 CONTAINER",
    )


def steal(state: HostState) -> Iterator[Disturbance]:
    """Report CPU time that the hypervisor takes away now, or took away since the boot."""
    hint = (
        "use a dedicated host, or measure for longer, because no setting of this machine ends it: "
        "equipoise compare --budget 600 …"
    )
    share = state.activity.steal_share()
    if share >= MIN_STEAL_NOW:
        summary = f"the hypervisor takes away {_percent(share)} of the CPU time for other machines"
        yield Disturbance("steal", "disturbs", summary, hint)
        return
    share = steal_since_boot(state.host)
    if share >= MIN_STEAL_SINCE_BOOT:
        summary = f"since the boot the hypervisor took away {100 * share:.1f} % of the CPU time"
        yield Disturbance("steal", "weakens", summary, hint)


def shared_cores(state: HostState) -> Iterator[Disturbance]:
    """Report that two CPUs share a core (SMT): work on one slows the other."""
    if hardware.threads_share_cores(state.host):
        summary = "two CPUs share a core (SMT): a trial slows down when its twin has work"
        hint = f"echo off | sudo tee {hardware.CPUS_FOLDER}/smt/control"
        yield Disturbance("shared_cores", "weakens", summary, hint)


def full_memory(state: HostState) -> Iterator[Disturbance]:
    """Report that the host's memory, or the memory of our control group, is nearly full."""
    available_bytes = hardware.meminfo(state.host, "MemAvailable")
    total_bytes = hardware.meminfo(state.host, "MemTotal")
    if available_bytes < MIN_FREE_MEMORY_SHARE * total_bytes:
        megabytes = f"{available_bytes / 1e6:.0f} of {total_bytes / 1e6:.0f} MB"
        summary = f"memory is nearly full: {megabytes} are available"
        hint = "end unneeded processes; the largest: ps -e -o pid,rss,comm --sort=-rss | head"
        yield Disturbance("full_memory", "disturbs", summary, hint)
    try:
        limit = cgroups.memory_limit(state.host)
    except Unknown:
        # Without control groups there is no limit.
        limit = None
    if limit is None:
        return
    used_bytes = cgroups.memory_in_use(state.host, limit)
    if used_bytes > (1 - MIN_FREE_MEMORY_SHARE) * limit.value:
        yield Disturbance(
            "full_memory_limit",
            "disturbs",
            f"{used_bytes / 1e6:.0f} MB are in use of the {limit.value / 1e6:.0f} MB "
            "that our control group may have",
            f"raise {limit.file}; for a container: docker update --memory SIZE CONTAINER",
        )


def swap(state: HostState) -> Iterator[Disturbance]:
    """Report memory that moves to or from swap now, or that is in swap."""
    moved_pages = state.activity.change("pages_swapped")
    used_bytes = _swap_in_use(state.host)
    hint = "with enough free memory: sudo swapoff -a && sudo swapon -a; else end unneeded processes"
    if moved_pages > 0:
        summary = f"the host is swapping: {moved_pages} pages in {state.activity.seconds:.1f} s"
        yield Disturbance("swapping", "disturbs", summary, hint)
    elif used_bytes > 0:
        effect = "a process that needs them waits for the disk"
        summary = f"{used_bytes / 1e6:.0f} MB of memory are in swap: {effect}"
        yield Disturbance("swap_in_use", "weakens", summary, hint)


def _swap_in_use(host: Host) -> int:
    """Return the bytes in swap: the sum of the column Used of /proc/swaps, which is in KiB."""
    lines = host.text("/proc/swaps").splitlines()[1:]
    try:
        return 1024 * sum(int(line.split()[3]) for line in lines)
    except (ValueError, IndexError):
        raise Unknown("/proc/swaps does not have the documented format") from None


def full_temporary_folder(state: HostState) -> Iterator[Disturbance]:
    """Report that the temporary folder has few free bytes, or room for few files."""
    try:
        space = state.free_space(state.scratch)
    except OSError as error:
        raise Unknown(f"{state.scratch}: {error.strerror}") from None
    # A trial cannot use the space that is reserved for root (f_bfree).
    free_bytes, total_bytes = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    name = readable(str(state.scratch))
    hint = "make room, or use another folder: export TMPDIR=/var/tmp"
    min_bytes = min(AMPLE_FREE_BYTES, MIN_FREE_DISK_SHARE * total_bytes)
    if free_bytes < max(MIN_FREE_BYTES, min_bytes):
        summary = f"{name} has {free_bytes / 1e6:.0f} MB left of {total_bytes / 1e6:.0f} MB"
        yield Disturbance("small_temporary_folder", "disturbs", summary, hint)
    elif 0 < space.f_files and space.f_favail < MIN_FREE_FILES:
        summary = f"{name} can take only {space.f_favail} more files"
        yield Disturbance("few_temporary_files", "disturbs", summary, hint)


MIN_BUSY_SHARE = 0.25
"""Smallest share of one CPU for which the work of others is reported after a campaign."""
_HINT = "run `equipoise doctor`: it names each disturbance, and what ends it"
_CHECKS_BEFORE = (load, full_memory)
"""Checks before a campaign."""
_CHECKS_AFTER = (steal, cpu_quota, swap)
"""Checks after a campaign, of the time that it took."""
Clock = Callable[[], float]
"""Function that returns seconds."""


class HostWatch(Struct, frozen=True):
    """State of a host at the start of a campaign."""

    host: Host
    first_moment: Moment
    children_s: float
    """CPU seconds of the children of Equipoise that ended before the campaign."""
    disturbances: tuple[str, ...]
    """Sentences about disturbances before the campaign."""


def children_seconds() -> float:
    """Return the CPU seconds of our ended children and of all their ended descendants."""
    cpu_times = os.times()
    return cpu_times.children_user + cpu_times.children_system


def begin_watch(
    host: Host, *, clock: Clock = time.monotonic, children_s: Clock = children_seconds
) -> HostWatch | None:
    """Observe a host before a campaign; ``None`` if its processes are invisible."""
    try:
        first = read_moment(host, clock)
    except Unknown:
        return None
    disturbances = _present_disturbances(_CHECKS_BEFORE, _state(host, first, first))
    return HostWatch(host, first, children_s(), tuple(disturbances))


def busy_host(
    watch: HostWatch, *, clock: Clock = time.monotonic, children_s: Clock = children_seconds
) -> CampaignWarning | None:
    """Observe a host after a campaign; return a warning if the host was busy.

    Call this function when all trials have ended.
    """
    clauses = [f"before the campaign {disturbance}" for disturbance in watch.disturbances]
    try:
        state = _state(watch.host, watch.first_moment, read_moment(watch.host, clock))
        if state.activity.seconds >= WATCH_S:
            work = _work_of_others(state.activity, children_s() - watch.children_s)
            disturbances = (*work, *_present_disturbances(_CHECKS_AFTER, state))
            clauses += [f"during the campaign, {disturbance}" for disturbance in disturbances]
    except Unknown as reason:
        if clauses:
            clauses.append(f"the work of others during the campaign is unknown ({reason})")
    if not clauses:
        return None
    return CampaignWarning("busy_host", f"this host was busy: {'; '.join(clauses)}", _HINT)


def _state(host: Host, first: Moment, last: Moment) -> HostState:
    return HostState(host, Activity(first, last), dict(os.environ))


def _present_disturbances(
    checks: tuple[Callable[[HostState], Iterator[Disturbance]], ...], state: HostState
) -> Iterator[str]:
    """Yield sentences about disturbances; only `equipoise doctor` reports unreadable facts."""
    for check in checks:
        try:
            yield from (
                disturbance.summary
                for disturbance in check(state)
                if disturbance.severity == "disturbs"
            )
        except Unknown:
            continue


def _work_of_others(activity: Activity, own_children_s: float) -> Iterator[str]:
    processes = activity.busy_processes()
    own_share = own_children_s / activity.seconds
    unseen_share = max(0.0, activity.unseen_share() - own_share)
    if unseen_share < MIN_UNSEEN_SHARE:
        unseen_share = 0.0
    total_share = unseen_share + _total_share(processes)
    if total_share < MIN_BUSY_SHARE:
        return
    named_processes = _named_processes(processes)
    unnamed_share = total_share - _total_share(named_processes)
    shares = [
        f"process {process.pid} ({process.name}) {_percent(process.share)}"
        for process in named_processes
    ]
    if unnamed_share >= MIN_NAMED_SHARE:
        others = "others together" if named_processes else "other processes"
        shares.append(f"{others} {_percent(unnamed_share)}")
    yield f"others used {_percent(total_share)} of a CPU: {', '.join(shares)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
