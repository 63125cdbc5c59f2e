"""A file is read from its disk that the other condition finds in memory."""

from __future__ import annotations

from equipoise.why.causes.callers import caller
from equipoise.why.causes.calls import PAGE_FAULT, READS, file_with_most
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import called, counted, is_more, known_file, of_slower

CAUSE = "cold_file"
WORDS = "a file that is not in the page cache is read from its disk"

_BLOCK_BYTES = 512
"""The unit of the kernel's account of block reads."""


def find(remaining: Remaining) -> tuple[Found, ...]:
    """More blocks from the disk, and waits where files are read."""
    difference = remaining.difference
    blocks = difference.accounts.get("block_reads")
    if blocks is None or not is_more(blocks):
        return ()
    waited = [one for one in remaining.waits if one.door in (*READS, PAGE_FAULT)]
    mapped = is_more(difference.accounts.get("major_faults"))
    doors = (*READS, PAGE_FAULT) if mapped else READS
    extra = remaining.extra(doors=doors, waits=doors)
    if extra.waited_s <= 0:
        return ()
    file = file_with_most(difference, lambda change: change.seconds)
    heaviest = max(waited, key=lambda one: remaining.waits[one].extra, default=None)
    syscall = heaviest.door if heaviest is not None and heaviest.door in READS else None
    reader = None
    if syscall is None and heaviest is not None and heaviest.function is not None:
        reader = caller(difference, heaviest.function, 0.0) or heaviest.function
    bytes_read = _BLOCK_BYTES * of_slower(difference, blocks)
    return (
        extra.found(
            cause=CAUSE,
            kind="file_io",
            evidence={
                "syscall": syscall,
                "function": None if reader is None else called(reader),
                **known_file(file),
                "bytes_from_disk": {
                    "baseline": _BLOCK_BYTES * blocks.baseline,
                    "candidate": _BLOCK_BYTES * blocks.candidate,
                },
            },
            words=(
                f"{file or 'a file'} is not in memory: {counted(bytes_read)} bytes are read from "
                "the disk"
            ),
        ),
    )
