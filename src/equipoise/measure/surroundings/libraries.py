"""Which libraries a condition maps when it starts: asked of its own dynamic loader, untimed.

The loader lists what it would map (``LOADER --list PROGRAM``, ld.so(8)) and ends before the
program's first instruction. It sees the condition's ``LD_PRELOAD``, ``LD_LIBRARY_PATH`` and
run paths as the program would; what a program opens later by dlopen it does not see.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equipoise.measure.surroundings.elf import NoElf, read_elf
from equipoise.measure.surroundings.host import Unknown
from equipoise.measure.surroundings.variables import readable

_LINE = re.compile(r"^\s*(?P<name>\S.*?)(?: => (?P<path>.*?))?(?: \(0x[0-9a-f]+\))?$")
_VIRTUAL = ("linux-vdso", "linux-gate")
_MOST_SCRIPTS = 5
"""The kernel follows so many "#!" lines (execve(2))."""
_SCRIPT_BYTES = 256
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a command maps at its start."""

    program: str | None
    """The file that runs in the end: of a script its interpreter."""
    libraries: dict[str, str] | None
    """Real path by name; empty if it is linked statically, ``None`` if it is not known."""
    problems: tuple[str, ...] = ()
    """What the loader complained of: a preload that did not load, a library not found."""
    unknown_because: str | None = None


@dataclass(frozen=True, slots=True)
class _Start:
    """A program about to be started."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def mapped_libraries(
    command: Sequence[str],
    environment: Mapping[str, str],
    working_folder: str,
    timeout_s: float = 10.0,
) -> Mapped:
    """Find the libraries that a command maps when it starts; the command itself does not run.

    Scripts are followed to their interpreter, and ``env`` to the program that it starts.

    Parameters
    ----------
    command
        Its argument vector; a program without a slash is looked for on the condition's PATH.
    environment
        The complete environment of the condition.
    working_folder
        Where it would run.
    timeout_s
        Seconds that the loader may take.
    """
    program: str | None = None
    try:
        start, program = _in_the_end(_Start(tuple(command), environment), working_folder)
        loader = _loader_of(program)
        if loader is None:
            return Mapped(readable(program), {}, _without_loader(start.environment))
        return _listed(loader, program, start.environment, working_folder, timeout_s)
    except Unknown as reason:
        return Mapped(
            None if program is None else readable(program), None, unknown_because=str(reason)
        )
    except ValueError as error:
        # A zero byte in a name or in the environment: nothing can be started with it.
        return Mapped(None, None, unknown_because=f"it cannot be started: {error}")


def loader_of(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str
) -> str | None:
    """The dynamic loader of the program that a command runs in the end.

    ``None`` if it is linked statically.

    Raises
    ------
    Unknown
        It cannot be told.
    """
    return _loader_of(_in_the_end(_Start(tuple(command), environment), working_folder)[1])


def _in_the_end(start: _Start, working_folder: str) -> tuple[_Start, str]:
    """The program that runs after every "#!" and every ``env``, and its file."""
    for _ in range(_MOST_SCRIPTS):
        program = _found(start, working_folder)
        if os.path.basename(program) == "env":
            start = _through_env(start)
            continue
        interpreter = _interpreter(program)
        if interpreter is None:
            return start, program
        start = _Start((*interpreter, program, *start.arguments[1:]), start.environment)
    raise Unknown(f"{readable(start.arguments[0])}: more scripts in a row than the kernel follows")


def _found(start: _Start, working_folder: str) -> str:
    name = start.arguments[0] if start.arguments else ""
    if "/" in name:
        path: str | None = os.path.join(working_folder, name)
    else:
        path = shutil.which(name, path=start.environment.get("PATH", os.defpath))
    if path is None or not os.path.isfile(path):
        raise Unknown(f"there is no program {readable(name) or '(empty)'!r}")
    return path


def _through_env(start: _Start) -> _Start:
    environment = dict(start.environment)
    for index, argument in enumerate(start.arguments[1:], start=1):
        if argument in ("-i", "-", "--ignore-environment"):
            environment = {}
        elif argument.startswith("-"):
            raise Unknown(f"env {readable(argument)!r} is not followed")
        elif _ASSIGNMENT.fullmatch(argument):
            name, _, value = argument.partition("=")
            environment[name] = value
        else:
            return _Start(start.arguments[index:], environment)
    raise Unknown("env starts no program")


def _interpreter(program: str) -> tuple[str, ...] | None:
    """The words of the "#!" line; the kernel passes all behind the first as one."""
    try:
        with open(program, "rb") as file:
            first = file.read(_SCRIPT_BYTES)
    except OSError as error:
        raise Unknown(f"{readable(program)}: {error.strerror}") from None
    if not first.startswith(b"#!"):
        return None
    words = os.fsdecode(first[2:].split(b"\n", 1)[0]).strip().split(None, 1)
    if not words:
        raise Unknown(f"{readable(program)}: its '#!' names no interpreter")
    if os.path.basename(words[0]) == "env" and words[1:] and words[1].startswith("-S"):
        return (words[0], *words[1][2:].split())
    return tuple(word.strip() for word in words)


def _loader_of(program: str) -> str | None:
    try:
        return read_elf(program).loader
    except NoElf as error:
        raise Unknown(readable(str(error))) from None
    except OSError as error:
        raise Unknown(f"{readable(program)}: {error.strerror}") from None


def _without_loader(environment: Mapping[str, str]) -> tuple[str, ...]:
    if environment.get("LD_PRELOAD"):
        return ("LD_PRELOAD does nothing here: the program is linked statically",)
    return ()


def _listed(
    loader: str, program: str, environment: Mapping[str, str], folder: str, timeout_s: float
) -> Mapped:
    try:
        done = subprocess.run(
            [loader, "--list", program],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unknown(f"{loader} took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise Unknown(f"{loader}: {error.strerror}") from None
    complaints = [
        line.strip() for line in done.stderr.decode("utf-8", "backslashreplace").splitlines()
    ]
    if done.returncode != 0:
        raise Unknown(f"{loader}: {' / '.join(complaints) or f'exit status {done.returncode}'}")
    libraries: dict[str, str] = {}
    for line in done.stdout.decode("utf-8", "backslashreplace").splitlines():
        found = _LINE.match(line)
        if found is None or found["name"].startswith(_VIRTUAL):
            continue
        name, path = found["name"], found["path"]
        if path == "not found":
            complaints.append(f"{name} is not found")
        elif path or "/" in name:
            libraries[os.path.basename(name)] = os.path.realpath(os.path.join(folder, path or name))
    return Mapped(readable(program), libraries, tuple(filter(None, complaints)))
