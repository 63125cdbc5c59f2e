"""Whether a server that is ready is what its condition says: looked up in its own processes.

A wrapper may drop a variable, a preload may be refused, a daemon may set its own CPUs: what
stands in the plan is not yet what runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from equipoise.measure.servers.processes import field_of, lines_of
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import PADDING_VARIABLE, Process

TUNABLES = "GLIBC_TUNABLES"


def check_effect(
    name: str,
    environment: Mapping[str, str],
    process: Process,
    user: int | None,
    processes: tuple[int, ...],
) -> None:
    """Refuse a server in one of whose processes something did not take effect.

    Parameters
    ----------
    environment
        What the condition sets.
    user
        The number of the user that it should run as; ``None`` for our own.

    Raises
    ------
    ConditionFailed
        It names the process, and what is not as it should be.
    """
    for one in processes:
        # What it starts may well have other variables of its own.
        tunables = environment.get(TUNABLES) if one == processes[0] else None
        for problem in _problems(one, environment, tunables, process, user):
            raise ConditionFailed(
                f"the server of {name} did not take effect: its process {one} {problem}",
                hint="start the program itself, without a wrapper that changes its surroundings",
            )


def _problems(
    pid: int,
    environment: Mapping[str, str],
    tunables: str | None,
    process: Process,
    user: int | None,
) -> Iterator[str]:
    mapped = {line.split(maxsplit=5)[5] for line in lines_of(pid, "maps") if line.count("/")}
    if not mapped:
        # It has ended meanwhile.
        return
    for library in environment.get("LD_PRELOAD", "").replace(":", " ").split():
        if "/" in library and os.path.realpath(library) not in mapped:
            yield f"does not map {library}"
    if tunables is not None and _has_lost(pid, f"{TUNABLES}={tunables}"):
        yield f"does not have {TUNABLES}={tunables}"
    if process.cpus is not None:
        allowed = _cpus(field_of(pid, "Cpus_allowed_list"))
        if allowed is not None and not allowed <= set(process.cpus):
            yield f"may use the CPUs {sorted(allowed)}, not only {list(process.cpus)}"
    if process.huge_pages is False and field_of(pid, "THP_enabled") == "1":
        yield "gets transparent huge pages"
    if user is not None and field_of(pid, "Uid") not in (None, "\t".join([str(user)] * 4)):
        yield f"does not run as user {user}"


def _has_lost(pid: int, variable: str) -> bool:
    """Whether a variable is not among those that a process began with.

    Some servers write their title over them; of those nothing can be said.
    """
    variables = "".join(lines_of(pid, "environ"))
    is_whole = f"\0{PADDING_VARIABLE}=" in variables
    # The C library cuts its tunables apart where they stand.
    return is_whole and all(one not in variables for one in (variable, variable.replace(":", "\0")))


def _cpus(listed: str | None) -> set[int] | None:
    if not listed:
        return None
    cpus: set[int] = set()
    for part in listed.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
