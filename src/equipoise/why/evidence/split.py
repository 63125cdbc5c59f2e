"""User, system and waiting time, from the usual accounting of a trial."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """Where the wall time of one trial went, in seconds; what is not known is ``None``."""

    wall_s: float
    user_s: float | None
    system_s: float | None
    waiting_s: float | None
    """Wall time in which no thread ran, without the next."""
    queueing_s: float | None
    """Wall time in which the main thread could have run, and waited for a processor; ``None`` where
    that was not read, and then it is in the time before."""
    unseen: tuple[str, ...]
    """What could not be seen, in words."""


def split(
    wall_s: float,
    user_s: float | None,
    system_s: float | None,
    run_delay_s: float | None = None,
) -> Split:
    """The split of one trial's wall time.

    Where threads or processes ran at the same time, what they used is more than what passed, and
    how long all of them waited cannot be told from it.

    Parameters
    ----------
    run_delay_s
        How long the main thread waited for a processor. Others' delays are not known: while the
        main thread waits for them, they are waiting time.
    """
    if user_s is None or system_s is None:
        return Split(wall_s, user_s, system_s, None, None, ("user and system time: not accounted",))
    waiting_s = wall_s - user_s - system_s
    if waiting_s < 0:
        several = "waiting time: several threads or processes ran at the same time"
        return Split(wall_s, user_s, system_s, None, None, (several,))
    if run_delay_s is None:
        return Split(wall_s, user_s, system_s, waiting_s, None, ())
    queueing_s = min(run_delay_s, waiting_s)
    return Split(wall_s, user_s, system_s, waiting_s - queueing_s, queueing_s, ())
