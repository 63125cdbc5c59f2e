"""Files that are in the page cache when a trial begins, or are not; that is done untimed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator

from equipoise.measure.environment.host import Host, Unknown
from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Alter, Intervention
from equipoise.why.interventions.preloads import NOTHING, SEEN, told, why_not_own
from equipoise.why.interventions.settings import with_prepared

CAUSES = frozenset({"cold_file"})
IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs", "proc", "sysfs"})
_NO_FILE = "the evidence names no file that is there: give one as an argument of the commands"


def offered(case: Case) -> tuple[Intervention, ...]:
    """For the files that the evidence names, else those that are arguments of the commands."""
    evidence = map(os.path.abspath, case.evidence(CAUSES, "file"))
    named = [file for file in evidence if os.path.isfile(file)]
    files = tuple(dict.fromkeys(named or _arguments(case)))
    kept = told("keep_cache", case.site)
    several = "the file" if len(files) == 1 else "the files"
    return (
        Intervention(
            only_confirms=True,
            name="warm_files",
            words=f"reading {several} into the page cache",
            causes=CAUSES,
            alter=_prepared(files, _read_in),
            verified="the line before each trial must succeed: it reads the files to their end",
            impossible_because=None if files else _NO_FILE,
        ),
        Intervention(
            name="keep_cache",
            words=f"keeping {several} in the page cache",
            causes=CAUSES,
            alter=lambda one: kept(_prepared(files, _read_in)(one)),
            sham=told(NOTHING, case.site),
            verified=f"{SEEN}, and the line before each trial must succeed",
            impossible_because=why_not_own(case.site) if files else _NO_FILE,
        ),
        Intervention(
            only_confirms=True,
            name="cold_files",
            words=f"dropping {several} from the page cache",
            causes=CAUSES,
            alter=_prepared(files, _dropped),
            verified="the line before each trial must succeed: it writes the files to the disk and "
            "tells the kernel that they are not needed (POSIX_FADV_DONTNEED); what another process "
            "maps stays",
            impossible_because=_cannot_be_cold(files, case.host) if files else _NO_FILE,
        ),
    )


def _arguments(case: Case) -> Iterator[str]:
    for condition in case.pair:
        folder = os.path.abspath(condition.process.working_folder or ".")
        for word in condition.command[1:]:
            path = os.path.join(folder, word)
            if os.path.isfile(path):
                yield path


def _prepared(files: tuple[str, ...], line_of: Callable[[str], str]) -> Alter:
    # A file that a trial has removed meanwhile is no failure.
    lines = [f"{{ [ ! -f {word} ] || {line_of(word)}; }}" for word in map(shlex.quote, files)]

    def alter(condition: Condition) -> Condition:
        return with_prepared(condition, " && ".join(lines)) if lines else condition

    return alter


def _read_in(word: str) -> str:
    return f"cat < {word} > /dev/null"


def _dropped(word: str) -> str:
    # `dd` with nothing to copy advises about the whole file (its manual, "nocache").
    return f"{{ sync {word} && dd if={word} iflag=nocache count=0 status=none; }}"


def _cannot_be_cold(files: tuple[str, ...], host: Host) -> str | None:
    try:
        mounts = host.text("/proc/self/mountinfo")
    except Unknown:
        # Then the line before each trial tells.
        return None
    for file in files:
        kind = _file_system(os.path.realpath(file), mounts)
        if kind in IN_MEMORY:
            return f"{file} is in memory ({kind}): put it on a disk"
    return None


def _file_system(path: str, mounts: str) -> str:
    """The kind of the file system that a path is in (proc(5), ``/proc/pid/mountinfo``)."""
    found, kind = "", "unknown"
    for line in mounts.splitlines():
        before, _, behind = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # A later mount hides an earlier one at the same place.
        if inside and len(point) >= len(found):
            found, kind = point, behind.split()[0]
    return kind
