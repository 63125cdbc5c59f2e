"""Memory and the temporary folder: what is nearly full, or handed out by chance."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.host_state import HostState
from equipoise.measure.environment.cgroups import memory_in_use, memory_limit
from equipoise.measure.environment.hardware import HUGE_PAGES, meminfo, transparent_huge_pages
from equipoise.measure.environment.host import Host, Unknown, readable
from equipoise.model.host import Disturbance

FREE_MEMORY = 0.10
"""Fraction of memory below which it counts as nearly full."""
LEAST_BYTES = 256 << 20
NEARLY_FULL_BYTES = 1 << 30
FREE_DISK = 0.05
LEAST_FILES = 1000


def full_memory(state: HostState) -> Iterator[Disturbance]:
    """Check the host's memory, then the limit of our control group."""
    available = meminfo(state.host, "MemAvailable")
    total = meminfo(state.host, "MemTotal")
    if available < FREE_MEMORY * total:
        what = f"memory is nearly full: {available / 1e6:.0f} of {total / 1e6:.0f} MB are available"
        hint = "end what is not needed; the largest: ps -e -o pid,rss,comm --sort=-rss | head"
        yield Disturbance("full_memory", "disturbs", what, hint)
    try:
        limit = memory_limit(state.host)
    except Unknown:
        # Without control groups there is no limit.
        limit = None
    if limit is None:
        return
    used = memory_in_use(state.host, limit)
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


def huge_pages(state: HostState) -> Iterator[Disturbance]:
    """Report huge pages for every process: whether a trial gets them depends on free memory."""
    if transparent_huge_pages(state.host) == "always":
        yield Disturbance(
            "huge_pages",
            "weakens",
            "transparent huge pages are handed out unasked: whether a trial gets them, and "
            "so its time and memory, depends on how fragmented memory is",
            f"echo madvise | sudo tee {HUGE_PAGES}",
        )


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
