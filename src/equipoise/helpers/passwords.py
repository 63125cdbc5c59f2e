"""Hand a server's password to a load generator in a file that only this user may read.

A command line and an environment can be read by others. Both helpers take ``--password-file=FILE``
for this reason: in a study, ``--password-file={password_file}``.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from equipoise.helpers.equipoise_metrics import VARIABLE

OPTION = "--password-file="
_LONGEST_BYTES = 1024
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,512}")
"""Passwords that need no quotes in any configuration file."""


def split_password_file(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the arguments without ``--password-file``, and the password; ``None`` without one.

    Raises
    ------
    SystemExit
        The file cannot be read, or holds no plain password.
    """
    files = [word.removeprefix(OPTION) for word in arguments if word.startswith(OPTION)]
    others = [word for word in arguments if not word.startswith(OPTION)]
    return others, read_password(files[-1]) if files else None


def read_password(path: str) -> str:
    """Return the first line of a regular file, which is opened without following a link.

    Raises
    ------
    SystemExit
        The file cannot be read, or holds no plain password.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            text = file.read(_LONGEST_BYTES) or b""
    except OSError as error:
        raise SystemExit(f"cannot read the password file {path}: {error.strerror}") from None
    line = text.partition(b"\n")[0].decode("ascii", "replace")
    if _PLAIN.fullmatch(line) is None:
        raise SystemExit(
            f"the password file {path} must hold one line of letters, digits, - and _ only"
        )
    return line


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user may enter; it is removed after the block.

    It lies beside ``EQUIPOISE_METRICS``: Equipoise removes that folder, should this process be
    killed before.
    """
    metrics_file = os.environ.get(VARIABLE)
    parent = None if metrics_file is None else os.path.dirname(metrics_file)
    with tempfile.TemporaryDirectory(prefix="client-", dir=parent) as folder:
        yield Path(folder)


def write_private(path: Path, text: str) -> Path:
    """Write a new file that only this user may read, and return its path."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    return path
