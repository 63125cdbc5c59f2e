"""Forbids a process some system calls, as a container with a seccomp profile does."""

from __future__ import annotations

import ctypes
import errno
import struct

LOAD_WORD = 0x20
JUMP_IF_EQUAL = 0x15
ANSWER = 0x06
ALLOW = 0x7FFF0000
REFUSE = 0x00050000
NUMBER_OF_THE_CALL = 0
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

IO_URING_SETUP = 425
"""The same number on every architecture."""


CLONE3 = 435
"""The same number on every architecture."""


def forbid(call: int, error: int = errno.EPERM) -> None:
    """Make a system call fail with EPERM or another error in this process and its children.

    Raises OSError if the kernel has no filters.
    """
    steps = [
        (LOAD_WORD, 0, 0, NUMBER_OF_THE_CALL),
        (JUMP_IF_EQUAL, 0, 1, call),
        (ANSWER, 0, 0, REFUSE | error),
        (ANSWER, 0, 0, ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    filtering = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filtering, 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
