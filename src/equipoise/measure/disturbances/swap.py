"""Memory that was moved to disk, and comes back in the middle of a trial."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.disturbances.window import change
from equipoise.measure.surroundings.host import Host, Unknown
from equipoise.model.host import Disturbance

MEND = "if there is memory enough: sudo swapoff -a && sudo swapon -a; else end what is not needed"


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if pages move now, or if some lie on disk."""
    moved = change(scene.window.first.pages_swapped, scene.window.last.pages_swapped)
    used = used_bytes(scene.host)
    if moved > 0:
        yield Disturbance(
            "swapping",
            "disturbs",
            f"the host is swapping: {moved} pages in {scene.window.seconds:.1f} s",
            MEND,
        )
    elif used > 0:
        yield Disturbance(
            "swap_in_use",
            "weakens",
            f"{used / 1e6:.0f} MB of memory lie in swap: who needs them again waits for the disk",
            MEND,
        )


def used_bytes(host: Host) -> int:
    """Bytes that lie in swap.

    Raises
    ------
    Unknown
        The kernel does not say.
    """
    try:
        return (
            sum(int(line.split()[3]) for line in host.text("/proc/swaps").splitlines()[1:]) * 1024
        )
    except (ValueError, IndexError):
        raise Unknown("/proc/swaps has another form than the kernel documents") from None
