"""Run a program that the kernel forbids ``clone3``, as old container engines do (seccomp(2)).

``python -m tests.chaos.without_clone3 PROGRAM [ARGUMENT …]``
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_MODE_FILTER = 2
_CLONE3 = 435
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06


def forbid_clone3() -> None:
    """Let ``clone3`` fail with EPERM in this process and its descendants."""
    instructions = (
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_JUMP_IF_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )
    program = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *one) for one in instructions)
    )
    head = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(head), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    forbid_clone3()
    os.execvp(sys.argv[1], sys.argv[1:])
