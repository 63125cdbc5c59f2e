"""Find the libraries that a command loads, and the settings of its C library and BLAS.

The command's own dynamic loader lists the libraries and settings (ld.so(8)), in untimed runs:

- ``LOADER --list PROGRAM`` lists the libraries that the program maps at its start. It does not run
  the program.
- ``LD_DEBUG=libs`` names each library that a run initialises, also libraries opened by dlopen.
- ``LOADER --list-tunables`` lists the values of the C library's tunables (glibc 2.33 and later).

A BLAS is a library of linear algebra. It chooses its routines by the type of the processor core,
and writes its choice to standard error.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from equipoise.measure.environment.system import Unknown, readable
from equipoise.measure.untimed import describe_signal, run_untimed
from equipoise.model.plan import TUNABLES_VARIABLE

OPENBLAS_VARIABLE = "OPENBLAS_CORETYPE"
BLIS_VARIABLE = "BLIS_ARCH_TYPE"
CORE_VARIABLES = (OPENBLAS_VARIABLE, BLIS_VARIABLE)
"""Variables with which a user chooses the type of core for a BLAS."""
_LISTED_LIBRARY = re.compile(r"^\s*(?P<name>\S.*?)(?: => (?P<path>.*?))?(?: \(0x[0-9a-f]+\))?$")
_VIRTUAL_LIBRARIES = ("linux-vdso", "linux-gate")
"""Libraries of the kernel, which are not files."""
_INITIALISED_LIBRARY = re.compile(r"calling init: (?P<path>/.*)$", re.MULTILINE)
_LISTED_TUNABLE = re.compile(r"^(?P<name>[\w.]+): (?P<value>\S+) \(min: .*\)$")
_VERBOSE_VARIABLES = {"OPENBLAS_VERBOSE": "2", "BLIS_ARCH_DEBUG": "1"}
"""Variables with which BLAS libraries report the type of core that they chose."""
_OPENBLAS_CORE = re.compile(r"^Core: (?P<core>\S+)$", re.MULTILINE)
_BLIS_CORE = re.compile(r"^libblis: selecting sub-configuration '(?P<core>\S+)'\.$", re.MULTILINE)
_MAX_SCRIPTS = 5
"""Maximum number of scripts that run each other through "#!" lines (execve(2))."""
_MAX_SCRIPT_LINE_BYTES = 256
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ELF_MAGIC = b"\x7fELF"
_INTERPRETER_SEGMENT = 3
"""Type of the ELF segment with the path of the dynamic loader (PT_INTERP of elf(5))."""
_MAX_SEGMENTS = 4096
_MAX_PATH_BYTES = 4096
_LOADER_TIMEOUT_S = 10.0


class MappedLibraries(Struct, frozen=True):
    """Libraries that a command maps at its start."""

    program: str | None
    """File of the program; for a script, its interpreter."""
    libraries: dict[str, str] | None
    """Real paths by file name; empty if the program is linked statically, ``None`` if unknown."""
    problems: tuple[str, ...] = ()
    """Complaints of the loader, such as a missing library."""
    unknown_because: str | None = None
    """Reason why the libraries are unknown."""


def mapped_libraries(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str
) -> MappedLibraries:
    """Find the libraries that a command maps at its start, without running the command.

    ``environment`` is the complete environment of the command. If the name of the program has no
    slash, the program is searched on this PATH. For a script, the libraries of the interpreter are
    listed; for ``env``, the libraries of the program that ``env`` starts.
    """
    program: str | None = None
    try:
        program, environment = _final_program(command, environment, working_folder)
        loader = _elf_loader(program)
        if loader is not None:
            return _listed_libraries(loader, program, environment, working_folder)
        problem = "LD_PRELOAD does nothing here: the program is linked statically"
        problems = (problem,) if environment.get("LD_PRELOAD") else ()
        return MappedLibraries(readable(program), {}, problems)
    except Unknown as reason:
        name = None if program is None else readable(program)
        return MappedLibraries(name, None, unknown_because=str(reason))
    except ValueError as error:
        # A name or an environment with a null byte cannot start.
        return MappedLibraries(None, None, unknown_because=f"it cannot be started: {error}")


def opened_libraries(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str, timeout_s: float
) -> frozenset[str]:
    """Run a command once; return the real paths of the libraries that its processes opened.

    Raise `Unknown` if the command cannot be run, or takes longer than ``timeout_s`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="equipoise-") as scratch:
        log_variables = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": os.path.join(scratch, "libs")}
        _run_once(command, {**environment, **log_variables}, working_folder, timeout_s)
        texts = (file.read_text("utf-8", "backslashreplace") for file in Path(scratch).iterdir())
        paths = {match["path"] for text in texts for match in _INITIALISED_LIBRARY.finditer(text)}
    return frozenset(os.path.realpath(path) for path in paths)


def ignored_tunables(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str
) -> tuple[str, ...]:
    """Return a sentence for each requested tunable of glibc that has no effect.

    The loader ignores an unknown name or value without a message. The result is empty for a
    statically linked program. ``environment`` is the complete environment of the condition. Raise
    `Unknown` if the program cannot be read, or its loader lists no tunables.
    """
    program, _ = _final_program(command, environment, working_folder)
    loader = _elf_loader(program)
    if loader is None:
        return ()
    without_preload = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    process = _run_loader([loader, "--list-tunables"], without_preload, None)
    matches = map(_LISTED_TUNABLE.match, _decode(process.stdout).splitlines())
    values_in_force = {match["name"]: match["value"] for match in matches if match}
    if process.returncode != 0 or not values_in_force:
        raise Unknown(f"{loader} lists no tunables")
    settings = (
        setting.partition("=") for setting in environment.get(TUNABLES_VARIABLE, "").split(":")
    )
    sentences: list[str] = []
    for name, value in {name: value for name, _, value in settings if name}.items():
        if name not in values_in_force:
            sentences.append(f"{loader} has no tunable {name!r}")
        elif _number(value) is None or _number(value) != _number(values_in_force[name]):
            sentences.append(f"{name} is {values_in_force[name]}, not {value}")
    return tuple(sentences)


class BlasCores(Struct, frozen=True):
    """Types of core for which the BLAS libraries of one command chose their routines."""

    openblas: tuple[str, ...] = ()
    blis: tuple[str, ...] = ()

    @property
    def cores(self) -> tuple[str, ...]:
        """All core types, those of OpenBLAS first."""
        return self.openblas + self.blis


def blas_cores(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str, timeout_s: float
) -> BlasCores:
    """Run a command once; return the core types that its BLAS libraries chose.

    OpenBLAS reports its choice when it is loaded, BLIS at its first use. Raise `Unknown` if the
    command cannot be run, takes longer than ``timeout_s`` seconds, or is ended by a signal.
    """
    variables = {**environment, **_VERBOSE_VARIABLES}
    with tempfile.TemporaryFile() as errors:
        status = _run_once(command, variables, working_folder, timeout_s, errors)
        errors.seek(0)
        text = _decode(errors.read())
    if status < 0:
        cause = ": the CPU lacks instructions of that core type" if -status == signal.SIGILL else ""
        raise Unknown(f"it was ended by {describe_signal(-status)}{cause}")
    return BlasCores(_distinct_cores(_OPENBLAS_CORE, text), _distinct_cores(_BLIS_CORE, text))


def _distinct_cores(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match["core"] for match in pattern.finditer(text)))


def _final_program(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str
) -> tuple[str, Mapping[str, str]]:
    """Return the program behind scripts ("#!") and ``env``, and its environment."""
    argv = tuple(command)
    for _ in range(_MAX_SCRIPTS):
        program = _program_file(argv[0] if argv else "", environment, working_folder)
        if os.path.basename(program) == "env":
            argv, environment = _command_of_env(argv, environment)
            continue
        interpreter = _script_interpreter(program)
        if interpreter is None:
            return program, environment
        argv = (*interpreter, program, *argv[1:])
    raise Unknown(f"{readable(argv[0])}: more scripts in a row than the kernel follows")


def _program_file(name: str, environment: Mapping[str, str], working_folder: str) -> str:
    search_path = environment.get("PATH", os.defpath)
    in_folder = os.path.join(working_folder, name)
    path = in_folder if "/" in name else shutil.which(name, path=search_path)
    if path is None or not os.path.isfile(path):
        raise Unknown(f"there is no program {readable(name) or '(empty)'!r}")
    return path


def _command_of_env(
    argv: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    environment = dict(environment)
    for index, argument in enumerate(argv[1:], start=1):
        if argument in ("-i", "-", "--ignore-environment"):
            environment = {}
        elif argument.startswith("-"):
            raise Unknown(f"env {readable(argument)!r} is not followed")
        elif _ASSIGNMENT.fullmatch(argument):
            name, _, value = argument.partition("=")
            environment[name] = value
        else:
            return argv[index:], environment
    raise Unknown("env starts no program")


def _script_interpreter(program: str) -> tuple[str, ...] | None:
    """Return the interpreter of a script with its one argument; ``None`` for other programs."""
    try:
        with open(program, "rb") as file:
            beginning = file.read(_MAX_SCRIPT_LINE_BYTES)
    except OSError as error:
        raise Unknown(f"{readable(program)}: {error.strerror}") from None
    if not beginning.startswith(b"#!"):
        return None
    argv = os.fsdecode(beginning[2:].split(b"\n", 1)[0]).strip().split(None, 1)
    if not argv:
        raise Unknown(f"{readable(program)}: its '#!' names no interpreter")
    if os.path.basename(argv[0]) == "env" and argv[1:] and argv[1].startswith("-S"):
        return (argv[0], *argv[1][2:].split())
    return tuple(argument.strip() for argument in argv)


def _elf_loader(program: str) -> str | None:
    """Return the dynamic loader that an ELF program names (elf(5)); ``None`` if it names none."""
    try:
        with open(program, "rb") as file:
            return _read_interpreter_segment(file)
    except OSError as error:
        raise Unknown(f"{readable(program)}: {error.strerror}") from None
    except ValueError:
        raise Unknown(f"{readable(program)} is not an ELF file") from None
    except struct.error:
        raise Unknown(f"{readable(program)} is cut short") from None


def _read_interpreter_segment(file: IO[bytes]) -> str | None:
    # Byte 4 of an ELF file gives the word size, and byte 5 the byte order. The header also has the
    # start of the segment table, and the size and number of its entries.
    identity = file.read(16)
    if len(identity) < 16 or not identity.startswith(_ELF_MAGIC):
        raise ValueError
    is_64_bit = identity[4] == 2
    byte_order = "<" if identity[5] == 1 else ">"
    header_format = byte_order + ("HHIQQQIHHH" if is_64_bit else "HHIIIIIHHH")
    header = struct.unpack(header_format, file.read(struct.calcsize(header_format)))
    table_start, entry_bytes, count = header[4], header[8], header[9]
    for index in range(min(count, _MAX_SEGMENTS)):
        file.seek(table_start + index * entry_bytes)
        if is_64_bit:
            segment_type, _, offset, _, _, length = struct.unpack(
                byte_order + "IIQQQQ", file.read(40)
            )
        else:
            segment_type, offset, _, _, length = struct.unpack(byte_order + "IIIII", file.read(20))
        if segment_type == _INTERPRETER_SEGMENT:
            file.seek(offset)
            return os.fsdecode(file.read(min(length, _MAX_PATH_BYTES)).split(b"\0", 1)[0])
    return None


def _listed_libraries(
    loader: str, program: str, environment: Mapping[str, str], folder: str
) -> MappedLibraries:
    """Return the libraries that the loader lists; its error lines become problems."""
    process = _run_loader([loader, "--list", program], environment, folder)
    complaints = [line.strip() for line in _decode(process.stderr).splitlines()]
    if process.returncode != 0:
        raise Unknown(f"{loader}: {' / '.join(complaints) or f'exit status {process.returncode}'}")
    libraries: dict[str, str] = {}
    for line in _decode(process.stdout).splitlines():
        match = _LISTED_LIBRARY.match(line)
        if match is None or match["name"].startswith(_VIRTUAL_LIBRARIES):
            continue
        name, path = match["name"], match["path"]
        if path == "not found":
            complaints.append(f"{name} is not found")
        elif path or "/" in name:
            libraries[os.path.basename(name)] = os.path.realpath(os.path.join(folder, path or name))
    return MappedLibraries(readable(program), libraries, tuple(filter(None, complaints)))


def _run_loader(
    command: list[str], environment: Mapping[str, str], folder: str | None
) -> subprocess.CompletedProcess[bytes]:
    loader = command[0]
    try:
        return subprocess.run(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LOADER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unknown(f"{loader} took longer than {_LOADER_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise Unknown(f"{loader}: {error.strerror}") from None


def _run_once(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    timeout_s: float,
    errors: IO[bytes] | None = None,
) -> int:
    try:
        return run_untimed(command, environment, folder, timeout_s, errors)
    except subprocess.TimeoutExpired:
        raise Unknown(f"it took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise Unknown(f"{command[0]}: {error.strerror}") from None


def _decode(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
