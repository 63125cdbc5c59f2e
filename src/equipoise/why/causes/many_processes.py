"""Many processes are started that do next to nothing."""

from __future__ import annotations

import re

from equipoise.why.causes.calls import FOR_CHILDREN, FORKS, PAGE_FAULT, most_more
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, is_more, of_faster, of_slower, sides

CAUSE = "many_processes"
WORDS = "many more processes are started, each for little work"

_LOADER = re.compile(r"ld-(linux|musl)[\w.-]*")
_DOORS = (
    *FORKS,
    "execve",
    "execveat",
    "exit_group",
    "exit",
    *FOR_CHILDREN,
    PAGE_FAULT,
    "mmap",
    "munmap",
    "mprotect",
    "brk",
    "openat",
    "close",
    "newfstatat",
    "access",
    "read",
    "pread64",
    "arch_prctl",
    "rt_sigprocmask",
    "rt_sigaction",
)
"""Where a process begins, loads its program and ends."""

_TINY_S = 0.01
"""Each of them uses a processor for less."""

_TIMES = 2.0


def find(remaining: Remaining) -> tuple[Found, ...]:
    """At least twice the processes, of which each is tiny."""
    difference = remaining.difference
    processes, programs = difference.processes, difference.programs
    if processes is None or not is_more(processes):
        return ()
    if of_slower(difference, processes) < _TIMES * of_faster(difference, processes):
        return ()
    on_processor = difference.on_processor
    if on_processor is not None and on_processor.extra > _TINY_S * processes.extra:
        return ()
    executed = programs is not None and is_more(programs)
    syscall = most_more(difference, ("execve", "execveat") if executed else FORKS)
    loading = [one for one in remaining.functions if _LOADER.fullmatch(one.module)]
    extra = remaining.extra(doors=_DOORS, functions=loading, waits=(*FOR_CHILDREN, *FORKS))
    return (
        extra.found(
            cause=CAUSE,
            kind="process",
            evidence={
                "syscall": syscall,
                "processes": sides(processes),
                "programs": None if programs is None else sides(programs),
            },
            words=(
                f"many small processes are started: {instead(difference, processes)}"
                f"{'' if syscall is None else f' ({syscall})'}"
            ),
        ),
    )
