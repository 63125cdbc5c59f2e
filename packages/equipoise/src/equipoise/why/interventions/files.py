"""Interventions in files: syncs, buffers, standard output, the page cache.

`preload_intervention` makes the change in a preloaded library, which replaces functions of libc.
``cannot_refute`` is set if the gap may stay although the cause exists. ``changed_property`` is what
an intervention must change to test its cause; by default, the evidence of the cause.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from equipoise.measure.environment.system import Host, Unknown
from equipoise.model.plan import Condition, Output
from equipoise.why.interventions.intervention import (
    Alter,
    Case,
    Intervention,
    preload_intervention,
    variable_value,
    with_preparation,
    with_variables,
)

_WRITE_CAUSES = frozenset({"tiny_writes"})
_COLD_FILE_CAUSES = frozenset({"cold_file"})
_UNBUFFERED_PYTHON = "PYTHONUNBUFFERED"
"""Variable that makes Python write each line at once, unless the variable is empty."""
_MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs", "proc", "sysfs"})
_NO_FILE_REASON = "the evidence names no existing file: give one as an argument of the commands"
_READ_LINE_FORMAT = "cat < {0} > /dev/null"
_DROP_LINE_FORMAT = "{{ sync {0} && dd if={0} iflag=nocache count=0 status=none; }}"
"""Shell line that drops the file ``{0}`` from the page cache (manual of dd, ``nocache``)."""


def file_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions in files."""

    def buffered_python(condition: Condition) -> Condition:
        is_set = variable_value(condition, _UNBUFFERED_PYTHON, case.site)
        return with_variables(condition, {_UNBUFFERED_PYTHON: ""} if is_set else {})

    return (
        # Without fsync, a power failure loses data, so no user should keep this change.
        preload_intervention(
            case, "quick_sync", "answering fsync at once", frozenset({"sync_per_record"})
        ),
        preload_intervention(
            case,
            "large_buffers",
            "giving stdio buffers of 256 KiB",
            _WRITE_CAUSES | {"tiny_reads"},
            further_change=buffered_python,
        ),
        preload_intervention(
            case,
            "late_flush",
            "giving stdio buffers of 256 KiB that fflush leaves alone",
            _WRITE_CAUSES,
            further_change=buffered_python,
        ),
        Intervention(
            name="output_discarded",
            summary="throwing the output away (/dev/null)",
            causes=_WRITE_CAUSES,
            alter=_with_output(Output("discard"), case),
            cannot_refute=True,
            changed_property="the output",
        ),
        Intervention(
            name="output_to_file",
            summary="sending the output to a file",
            causes=_WRITE_CAUSES,
            # The output "count" goes to a file without a name, which the launcher makes.
            alter=_with_output(Output("count"), case),
            cannot_refute=True,
            changed_property="the output",
            advice="{command} > FILE",
        ),
        *_page_cache_interventions(case),
    )


def _with_output(output: Output, case: Case) -> Alter:
    def alter(condition: Condition) -> Condition:
        current = condition.output or case.output
        is_same = current == output or (output.kind == "count" and current.kind == "file")
        return condition if is_same else replace(condition, output=output)

    return alter


def _page_cache_interventions(case: Case) -> Iterator[Intervention]:
    """Yield the interventions that read or drop files before each trial."""
    evidence_files = map(os.path.abspath, case.names_in_evidence(_COLD_FILE_CAUSES, "file"))
    existing_files = [file for file in evidence_files if os.path.isfile(file)]
    files = tuple(dict.fromkeys(existing_files or _file_arguments(case)))
    files_phrase = "the file" if len(files) == 1 else "the files"
    no_file_reason = None if files else _NO_FILE_REASON
    yield Intervention(
        name="warm_files",
        summary=f"reading {files_phrase} into the page cache",
        causes=_COLD_FILE_CAUSES,
        alter=_before_each_trial(files, _READ_LINE_FORMAT),
        impossible_because=no_file_reason,
        cannot_refute=True,
    )
    yield preload_intervention(
        case,
        "keep_cache",
        f"keeping {files_phrase} in the page cache",
        _COLD_FILE_CAUSES,
        further_change=_before_each_trial(files, _READ_LINE_FORMAT),
        impossible_because=no_file_reason,
    )
    yield Intervention(
        name="cold_files",
        summary=f"dropping {files_phrase} from the page cache",
        causes=_COLD_FILE_CAUSES,
        alter=_before_each_trial(files, _DROP_LINE_FORMAT),
        impossible_because=no_file_reason or _no_cold_files_reason(files, case.host),
        cannot_refute=True,
    )


def _file_arguments(case: Case) -> Iterator[str]:
    """Yield the existing files among the arguments of both commands."""
    for condition in case.conditions:
        folder = os.path.abspath(condition.process.working_folder or ".")
        for argument in condition.command[1:]:
            path = os.path.join(folder, argument)
            if os.path.isfile(path):
                yield path


def _before_each_trial(files: tuple[str, ...], line_format: str) -> Alter:
    # A trial may remove a file, so a missing file is not a failure.
    paths = map(shlex.quote, files)
    lines = [f"{{ [ ! -f {path} ] || {line_format.format(path)}; }}" for path in paths]

    def alter(condition: Condition) -> Condition:
        return with_preparation(condition, " && ".join(lines)) if lines else condition

    return alter


def _no_cold_files_reason(files: tuple[str, ...], host: Host) -> str | None:
    try:
        mounts = host.text("/proc/self/mountinfo")
    except Unknown:
        # If a file of an unknown file system cannot be dropped, the shell line fails.
        return None
    for file in files:
        file_system = _file_system_type(os.path.realpath(file), mounts)
        if file_system in _MEMORY_FILE_SYSTEMS:
            return f"{file} is in memory ({file_system}): put it on a disk"
    return None


def _file_system_type(path: str, mounts: str) -> str:
    """Return the type of a path's file system (proc(5), ``/proc/pid/mountinfo``)."""
    type_by_mount_point = {"": "unknown"}
    for line in mounts.splitlines():
        mount_fields, _, system_fields = line.partition(" - ")
        mount_point = mount_fields.split()[4].replace("\\040", " ")
        if path == mount_point or path.startswith(mount_point.rstrip("/") + "/"):
            # A later mount hides an earlier one at the same mount point.
            type_by_mount_point[mount_point] = system_fields.split()[0]
    return type_by_mount_point[max(type_by_mount_point, key=len)]
