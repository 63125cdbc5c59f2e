"""What goes wrong in a repetition, and when: drawn before it begins."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from benchmarks.cluster.fleet import LABORATORY, Fleet, TrialKey

SHORT_CUT_S = 20.0
LONG_CUT_S = 60.0
"""Longer than the 30 s after which TCP of Dask gives a connection up."""

Seen = dict[TrialKey, tuple[float | None, float]]


class Fault(Struct, frozen=True):
    """Something that goes wrong."""

    kind: str
    at_s: float
    """Seconds after the first trial of the slowest host."""
    host: int | None = None
    lasts_s: float = 0.0

    @property
    def name(self) -> str:
        """What it is, where and when."""
        where = "" if self.host is None else f" host{self.host}"
        lasting = f" for {self.lasts_s:.0f} s" if self.lasts_s else ""
        return f"{self.kind}{where}{lasting} at {self.at_s:.0f} s"


class Injected(Struct, frozen=True):
    """A fault that happened, and what the hosts had committed before."""

    fault: Fault
    hit: bool
    """Whether there was still something to be hit."""
    committed: tuple[Seen, ...]


def drawn_faults(
    window_s: float, shorter: float, with_cables: bool, chance: random.Random
) -> tuple[Fault, ...]:
    """Draw the faults of a repetition.

    Parameters
    ----------
    window_s
        Seconds that every host measures at least.
    shorter
        Factor of the time that a cut lasts.
    with_cables
        Whether the hosts have cables to be pulled.
    """
    killed, short, long = chance.sample(range(3), 3)
    worker_at = chance.uniform(0.0, 0.5 * window_s)
    faults = [
        Fault("worker killed", worker_at, killed),
        Fault("laboratory killed", chance.uniform(worker_at, 0.9 * window_s), killed),
        Fault("scheduler restarted", chance.uniform(0.0, 0.9 * window_s), None, 3.0),
        Fault("coordinator killed", chance.uniform(0.0, 0.9 * window_s)),
    ]
    if with_cables:
        cuts = ((short, SHORT_CUT_S * shorter), (long, LONG_CUT_S * shorter))
        faults += [
            Fault("cut off", chance.uniform(0.0, max(0.0, 0.9 * window_s - lasts)), host, lasts)
            for host, lasts in cuts
        ]
    return tuple(sorted(faults, key=lambda fault: fault.at_s))


def inject(fleet: Fleet, faults: Sequence[Fault]) -> Callable[[], list[Injected]]:
    """Let faults happen from now on; the returned function waits for the last one."""
    began = time.monotonic()
    happened: list[Injected] = []
    errors: list[Exception] = []

    def happen(fault: Fault) -> None:
        time.sleep(max(0.0, began + fault.at_s - time.monotonic()))
        committed = tuple(host.trials() for host in fleet.hosts)
        try:
            hit = _HAPPEN[fault.kind](fleet, fault)
        except Exception as error:
            errors.append(error)
        else:
            happened.append(Injected(fault, hit, committed))

    threads = [threading.Thread(target=happen, args=(fault,)) for fault in faults]
    for thread in threads:
        thread.start()

    def wait() -> list[Injected]:
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return happened

    return wait


def _kill_worker(fleet: Fleet, fault: Fault) -> bool:
    return fleet.hosts[_host(fault)].kill("distributed.cli.dask_worker")


def _kill_laboratory(fleet: Fleet, fault: Fault) -> bool:
    return fleet.hosts[_host(fault)].kill(LABORATORY)


def _restart_scheduler(fleet: Fleet, fault: Fault) -> bool:
    fleet.kill_scheduler()
    time.sleep(fault.lasts_s)
    fleet.start_scheduler()
    return True


def _kill_coordinator(fleet: Fleet, fault: Fault) -> bool:
    return fleet.kill_coordinator()


def _cut(fleet: Fleet, fault: Fault) -> bool:
    fleet.network.cut(_host(fault))
    time.sleep(fault.lasts_s)
    fleet.network.mend(_host(fault))
    return True


def _host(fault: Fault) -> int:
    assert fault.host is not None
    return fault.host


_HAPPEN: dict[str, Callable[[Fleet, Fault], bool]] = {
    "worker killed": _kill_worker,
    "laboratory killed": _kill_laboratory,
    "scheduler restarted": _restart_scheduler,
    "coordinator killed": _kill_coordinator,
    "cut off": _cut,
}
