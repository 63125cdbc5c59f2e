"""Crash files: the traceback of a defect of Equipoise, for a bug report, without secrets."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

CRASHES_FOLDER = Path("equipoise", "crashes")
"""Folder of crash files, below the user's state folder."""
SECRET_MARK = "[left out]"
"""Text that replaces a secret value."""
MAX_SUMMARY_LETTERS = 200
"""Maximum length of an error in one line."""
_ENV_OPTION = "--env"
_SECRET_OPTIONS = (_ENV_OPTION, "--prepare", "--setup", "--conclude", "--cleanup", "--build")
"""Options whose values may contain secrets: environment variables and shell lines."""
_MIN_SECRET_LETTERS = 4
"""Minimum length of a secret in a traceback; a shorter text is too common to be removed."""


def write_crash_file(error: BaseException, arguments: Sequence[str]) -> Path | None:
    """Write the traceback to a file that only this user can read.

    The file is in ``$XDG_STATE_HOME/equipoise/crashes`` (by default ``~/.local/state/…``), or in
    the temporary folder. Values of ``--env`` and the lines of hooks and builds are left out.

    Return the file, or ``None`` if no folder accepts it.
    """
    content = _crash_report(error, arguments).encode("utf-8", "backslashreplace")
    utc_time = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    name = f"equipoise-crash-{utc_time}-{secrets.token_hex(4)}.txt"
    for folder in _possible_folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = folder / name
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(file, flags, 0o600), "wb") as stream:
                stream.write(content)
        except OSError:
            continue
        return file
    return None


def summary(error: BaseException, arguments: Sequence[str]) -> str:
    """Return the error in one line, without secrets."""
    _, secret_values = without_secrets(arguments)
    line = " ".join(traceback.format_exception_only(error)[-1].split())
    for secret in secret_values:
        line = line.replace(secret, SECRET_MARK)
    return line if len(line) <= MAX_SUMMARY_LETTERS else f"{line[:MAX_SUMMARY_LETTERS]}…"


def _possible_folders() -> Iterator[Path]:
    home_folder = os.environ.get("HOME", "")
    state_folder = os.environ.get("XDG_STATE_HOME", "")
    # By the XDG specification, a relative path is ignored.
    if os.path.isabs(state_folder):
        yield Path(state_folder) / CRASHES_FOLDER
    elif os.path.isabs(home_folder):
        yield Path(home_folder, ".local", "state") / CRASHES_FOLDER
    # `gettempdir` fails if there is no temporary folder.
    with contextlib.suppress(OSError):
        yield Path(tempfile.gettempdir())


def _crash_report(error: BaseException, arguments: Sequence[str]) -> str:
    public_arguments, secret_values = without_secrets(arguments)
    trace = "".join(traceback.format_exception(error))
    for secret in secret_values:
        trace = trace.replace(secret, SECRET_MARK)
    return (
        f"equipoise {_version_of_equipoise()}\nPython {sys.version}\n{platform.platform()}\n"
        f"arguments: {public_arguments!r}\n\n{trace}"
    )


def without_secrets(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without secret values, and the secret values."""
    public_arguments: list[str] = []
    secret_values: list[str] = []
    # Option whose secret value is the next argument; empty if the next argument is not secret.
    secret_option = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if secret_option:
            public_arguments.append(_public_value(secret_option, argument, secret_values))
            secret_option = ""
        elif equals and name in _SECRET_OPTIONS:
            public_arguments.append(f"{name}={_public_value(name, value, secret_values)}")
        else:
            public_arguments.append(argument)
            secret_option = argument if argument in _SECRET_OPTIONS else ""
    return public_arguments, [value for value in secret_values if len(value) >= _MIN_SECRET_LETTERS]


def _public_value(option: str, value: str, secret_values: list[str]) -> str:
    """Return the value of an option without its secret; add the secret to ``secret_values``."""
    variable, equals, secret = value.partition("=")
    if option == _ENV_OPTION and equals:
        secret_values.append(secret)
        return f"{variable}={SECRET_MARK}"
    secret_values.append(value)
    return SECRET_MARK


def _version_of_equipoise() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("equipoise")
    except PackageNotFoundError:
        return "of an unknown version"
