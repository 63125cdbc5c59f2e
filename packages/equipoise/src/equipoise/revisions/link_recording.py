"""Records how a build links its programs, so that the programs can be linked again.

During the build, the compiler finds our programs in place of its linker (``COMPILER_PATH``,
gcc(1)). They run lld, which keeps all inputs of a link in one archive (``--reproduce``, ld.lld(1)).
With the archive, a program is linked again without the build system, and without its sources. The
compiler also finds our programs in place of ``cc1`` and ``cc1plus``. They add
``-ffunction-sections`` and ``-fdata-sections``, so that every function can move alone. rustc runs
our ``cc``, because it would choose its own lld.

A link that lld cannot do is done by the linker that the build asked for, and is not recorded.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.measure.untimed import tail
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.revisions.link_layouts import layout_of, read_symbols, symbols_of, write_symbols
from equipoise.shared.spelling import option

LLD = "ld.lld"
RECORDS = "links.json"
"""File that names the recorded links."""
FOLDER = "links"
"""Folder of the recorded links, beside the working tree of a build."""
_LINKS_VARIABLE = "EQUIPOISE_LINKS"
_RESPONSE = "response.txt"
"""File in each archive of lld: the arguments of the link."""
_SYMBOLS = "symbols.txt"
"""File beside it: the functions and variables of the program."""
_LINKERS = ("ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold")
_COMPILERS = ("cc1", "cc1plus")
_SHUFFLED = (".text*", ".rodata*", ".data*", ".bss*")
"""Sections that a seed puts in another order; the order of ``.init_array`` has a meaning."""
_LINKER_SCRIPT = """\
#!/bin/sh
recording=$(mktemp "${{{links}}}/link-XXXXXXXX") || exit
{lld} --reproduce="$recording" "$@" 2> "$recording.errors" && exec rm -f "$recording.errors"
rm -f "$recording" "$recording.errors"
exec "${{0##*/}}" "$@"
"""
_COMPILER_SCRIPT = """\
#!/bin/sh
exec {compiler} "$@" -ffunction-sections -fdata-sections
"""
_RUST_LINKER = "cc"
_RUST_LINKER_SCRIPT = """\
#!/bin/sh
for word do
  shift
  case $word in
    -fuse-ld=* | -B*/gcc-ld) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {compiler} "$@"
"""
_ELF_HEADER = b"\x7fELF"
_ELF_TYPE = slice(16, 18)
_LOADABLE_TYPES = (2, 3)
"""``ET_EXEC`` and ``ET_DYN`` (elf(5)): files with their final addresses."""
_LINK_TIMEOUT_S = 600.0
_THREADS = max(1, (os.cpu_count() or 1) // 2)
"""Threads of each link: both revisions are linked at the same time."""


class RecordedLink(Struct, frozen=True):
    """One link of a build, whose output is still in the working tree."""

    folder: str
    """Folder with the inputs, and with the arguments in ``response.txt``."""
    files: tuple[str, ...]
    """Paths of the output and its copies, relative to the root of the working tree."""


class LinkRecorder(Struct, frozen=True):
    """The programs of this host that compile and link while links are recorded."""

    lld: str
    version: str
    """First line of ``ld.lld --version``."""
    compilers: Mapping[str, str]
    """Path of ``cc1`` and ``cc1plus``, by name; without those that the host lacks."""
    rust_linker: str | None
    """Path of the C compiler with which rustc links; ``None`` without rustc or C compiler."""
    rust_variable: str | None
    """Environment variable with which cargo gets this path."""

    def variables(self, links: Path) -> dict[str, str]:
        """Return the environment variables of a build that records its links in a folder."""
        programs = links / "programs"
        search_path = os.environ.get("COMPILER_PATH")
        variables = {
            _LINKS_VARIABLE: str(links),
            "COMPILER_PATH": f"{programs}:{search_path}" if search_path else str(programs),
        }
        if self.rust_variable is not None:
            variables[self.rust_variable] = str(programs / _RUST_LINKER)
        return variables

    def prepare(self, links: Path) -> None:
        """Write the programs that take the place of the linker and the compilers."""
        programs = links / "programs"
        programs.mkdir(parents=True)
        linker = _LINKER_SCRIPT.format(links=_LINKS_VARIABLE, lld=shlex.quote(self.lld))
        scripts = dict.fromkeys(_LINKERS, linker)
        for name, compiler in self.compilers.items():
            scripts[name] = _COMPILER_SCRIPT.format(compiler=shlex.quote(compiler))
        if self.rust_linker is not None:
            script = _RUST_LINKER_SCRIPT.format(compiler=shlex.quote(self.rust_linker))
            scripts[_RUST_LINKER] = script
        for name, script in scripts.items():
            (programs / name).write_text(script)
            (programs / name).chmod(0o700)

    def keep_links(self, links: Path, tree: Path) -> None:
        """Keep the recorded links whose outputs are in a working tree, and remove the others.

        Raise `EquipoiseError` if a recorded link cannot be repeated.
        """
        files = {path.relative_to(tree): _digest(path) for path in _loadable_files(tree)}
        kept: list[RecordedLink] = []
        for archive in sorted(links.glob("link-*")):
            folder = _unpacked(archive)
            output = folder.with_suffix(".output")
            self.link(folder, output)
            digest = _digest(output)
            write_symbols(symbols_of(output), folder / _SYMBOLS)
            output.unlink()
            copies = tuple(str(path) for path, other in files.items() if other == digest)
            if copies and not all(map(_is_part_of_the_build, copies)):
                kept.append(RecordedLink(str(folder), copies))
            else:
                shutil.rmtree(folder.parent)
        (links / RECORDS).write_bytes(msgspec.json.encode(kept))

    def link(self, folder: Path, output: Path, seed: int | None = None) -> None:
        """Link a program again; a seed puts its functions and its data at other addresses.

        Raise `EquipoiseError` with the end of the output if lld fails.
        """
        options: list[str] = []
        order, unused = (folder / f"{output.name}.{suffix}" for suffix in ("order", "o"))
        if seed is not None:
            options = [f"--shuffle-sections={sections}={seed}" for sections in _SHUFFLED]
            if symbols := read_symbols(folder / _SYMBOLS):
                layout = layout_of(symbols, seed)
                order.write_text(layout.order, encoding="utf-8")
                unused.write_bytes(layout.unused)
                options += (f"--symbol-ordering-file={order.name}", "--no-warn-symbol-ordering")
                options.append(unused.name)
        with open(f"{output}.errors", "w+b") as errors:
            done = subprocess.run(
                [self.lld, f"@{_RESPONSE}", *options, f"--threads={_THREADS}", "-o", output],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                timeout=_LINK_TIMEOUT_S,
                check=False,
            )
            message = tail(errors.fileno())
        os.unlink(errors.name)
        for file in (order, unused):
            file.unlink(missing_ok=True)
        if done.returncode != 0:
            raise EquipoiseError(
                f"a program could not be linked again: {message}",
                hint=f"leave out {option('relink')}, or build without options of another linker",
            )


def link_recorder(environment: Mapping[str, str]) -> LinkRecorder:
    """Return the programs of this host that record links; raise `UnusableInput` without lld."""
    search_path = environment.get("PATH")
    # The lld of Rust is linked statically, and starts in half the time.
    lld = _lld_of_rust(search_path) or shutil.which(LLD, path=search_path)
    if lld is None:
        raise UnusableInput(
            f"{option('relink')} needs the linker lld, and this host has no {LLD}",
            hint="install it (Debian and Fedora: the package lld), or leave out the option",
        )
    compiler = shutil.which("cc", path=search_path)
    paths = {} if compiler is None else {name: _path_of(compiler, name) for name in _COMPILERS}
    host = _rust_host(search_path)
    return LinkRecorder(
        lld=lld,
        version=_printed(lld, "--version").partition("\n")[0],
        compilers={name: path for name, path in paths.items() if os.path.isabs(path)},
        rust_linker=compiler if host else None,
        rust_variable=None
        if compiler is None or host is None
        else f"CARGO_TARGET_{host.upper().replace('-', '_')}_LINKER",
    )


def recorder_for_build(build_line: str | None, environment: Mapping[str, str]) -> LinkRecorder:
    """Return the programs that record the links of a build.

    Raise `UnusableInput` if there is no build, or this host has no lld.
    """
    if build_line is None:
        raise UnusableInput(
            f"{option('relink')} links the programs of a build again, but nothing is built",
            hint=f"name the line that builds a revision with {option('build')}",
        )
    return link_recorder(environment)


def recorded_links(tree: Path) -> tuple[RecordedLink, ...]:
    """Return the links of a build that can be repeated, given the root of its working tree."""
    content = (links_folder(tree) / RECORDS).read_bytes()
    return msgspec.json.decode(content, type=tuple[RecordedLink, ...])


def links_folder(tree: Path) -> Path:
    """Return the folder of the recorded links of a build, given the root of its working tree."""
    return tree.parent.parent / FOLDER


def _unpacked(archive: Path) -> Path:
    """Unpack an archive of lld, and return the folder with the arguments of the link."""
    folder = archive.with_name(f"inputs-{archive.name}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    archive.unlink()
    return next(folder.rglob(_RESPONSE)).parent


def _loadable_files(tree: Path) -> Iterator[Path]:
    """Yield the programs and shared libraries of a working tree."""
    for parent, _, names in os.walk(tree):
        for name in names:
            path = Path(parent, name)
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            with path.open("rb") as file:
                header = file.read(_ELF_TYPE.stop)
            is_elf = header.startswith(_ELF_HEADER) and len(header) == _ELF_TYPE.stop
            if is_elf and int.from_bytes(header[_ELF_TYPE], "little") in _LOADABLE_TYPES:
                yield path


def _is_part_of_the_build(file: str) -> bool:
    """Return whether cargo runs or loads a file while it builds: a build script, or a macro."""
    path = Path(file)
    is_script = "build" in path.parts and path.name.startswith("build")
    return is_script or (path.parent.name == "deps" and path.suffix == ".so")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _path_of(compiler: str, name: str) -> str:
    return _printed(compiler, f"-print-prog-name={name}").strip()


def _rust_host(search_path: str | None) -> str | None:
    """Return the platform for which rustc compiles by default; ``None`` without rustc."""
    rustc = shutil.which("rustc", path=search_path)
    found = None if rustc is None else re.search(r"^host: (\S+)$", _printed(rustc, "-vV"), re.M)
    return None if found is None else found[1]


def _lld_of_rust(search_path: str | None) -> str | None:
    """Return the path of the lld that comes with rustc, or ``None``."""
    rustc, host = shutil.which("rustc", path=search_path), _rust_host(search_path)
    if rustc is None or host is None:
        return None
    folder = _printed(rustc, "--print", "sysroot").strip()
    return shutil.which(LLD, path=f"{folder}/lib/rustlib/{host}/bin/gcc-ld")


def _printed(program: str, *options: str) -> str:
    """Return the text that a program prints; an empty text if it fails."""
    done = subprocess.run(
        [program, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout if done.returncode == 0 else ""
