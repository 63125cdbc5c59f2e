"""The layout of a link: a seed gives each function and each variable a place of its own.

The place of a function depends on the seed and on its name, not on what else the program has. So
one seed gives two revisions the same layout, as far as they have the same functions, and a function
that a commit adds moves no other one.

lld puts functions in the order of a list of symbols (``--symbol-ordering-file``, ld.lld(1)). Each
stands behind an unused section, which begins at a multiple of the *span* and has a random size.
"""

from __future__ import annotations

import hashlib
import platform
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
"""Header of a file, of a section, and a symbol (elf(5))."""
_IDENTITY = b"\x7fELF\x02\x01\x01"
"""Beginning of a file for a little-endian machine of 64 bits."""
_MACHINES = {"x86_64": 62, "aarch64": 183}
"""Numbers of machines (elf(5)): lld refuses an object for another machine."""
_PROGBITS, _SYMBOLS, _STRINGS, _NOBITS = 1, 2, 3, 8
_WRITE, _ALLOC, _EXECUTE, _RETAIN = 0x1, 0x2, 0x4, 0x200000
"""Flags of sections; a retained section stays with ``--gc-sections``."""
_OBJECT, _FUNCTION = 1, 2
"""Types of symbols that have a place."""
_STEP = 16
"""Alignment of functions in bytes: sizes of unused sections are multiples of it."""
_MIN_SPAN, _MAX_SPAN = 64, 4096
_MAX_UNUSED_BYTES = 1 << 18
"""Bytes of unused sections of a kind, from which the span follows."""
_MAX_UNUSED_SECTIONS = 20_000
"""An object may have about 65,000 sections; further symbols are only put in order."""
_UNSTABLE = re.compile(r"17h[0-9a-f]{16}E|(?<=Cs)[0-9A-Za-z]+_|\.llvm\.\d+")
"""Parts of a name that differ between folders or builds: the hashes of Rust and LLVM."""


class Symbol(Struct, frozen=True, order=True):
    """A function or a variable of a program."""

    name: str
    section: str
    """Section of the linked program: ``.text``, ``.rodata``, ``.data`` or ``.bss``."""


class LinkLayout(Struct, frozen=True):
    """The layout of one link."""

    order: str
    """List of symbols, one a line."""
    unused: bytes
    """Object file with the unused sections."""


class _Kind(Struct, frozen=True):
    type: int
    flags: int


_KINDS = {
    ".text": _Kind(_PROGBITS, _ALLOC | _EXECUTE),
    ".rodata": _Kind(_PROGBITS, _ALLOC),
    ".data": _Kind(_PROGBITS, _ALLOC | _WRITE),
    ".bss": _Kind(_NOBITS, _ALLOC | _WRITE),
}


def symbols_of(program: Path) -> list[Symbol]:
    """Return the functions and variables of a linked program, each once.

    Without a table of symbols, or for a machine that is not known here, there are none.
    """
    content = program.read_bytes()
    if not content.startswith(_IDENTITY) or platform.machine() not in _MACHINES:
        return []
    header = _HEADER.unpack_from(content)
    table, count, names_index = header[6], header[12], header[13]
    sections = [_SECTION.unpack_from(content, table + _SECTION.size * i) for i in range(count)]
    names = [_text_at(content, sections[names_index][4] + section[0]) for section in sections]
    symbols: set[Symbol] = set()
    for section in sections:
        if section[1] != _SYMBOLS:
            continue
        strings, start, size = sections[section[6]][4], section[4], section[5]
        for name, info, _, place, _, _ in _SYMBOL.iter_unpack(content[start : start + size]):
            if info & 0xF in (_OBJECT, _FUNCTION) and 0 < place < count and names[place] in _KINDS:
                symbols.add(Symbol(_text_at(content, strings + name), names[place]))
    return sorted(symbol for symbol in symbols if symbol.name and symbol.name.isprintable())


def _text_at(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode("utf-8", "replace")


def layout_of(symbols: Sequence[Symbol], seed: int) -> LinkLayout:
    """Return the layout that a seed gives to symbols, of which there is at least one."""
    placed = sorted((_draws(symbol, seed), symbol) for symbol in symbols)
    spans = {section: _span([each.section for each in symbols], section) for section in _KINDS}
    lines: list[str] = []
    unused = _Object()
    for (_, draw), symbol in placed[:_MAX_UNUSED_SECTIONS]:
        span = spans[symbol.section]
        name = f"equipoise_unused_{len(lines)}"
        unused.add(name, symbol.section, span, _STEP * (1 + draw % (span // _STEP)))
        lines += (name, symbol.name)
    lines += (symbol.name for _, symbol in placed[_MAX_UNUSED_SECTIONS:])
    return LinkLayout("\n".join(lines) + "\n", unused.content())


def _draws(symbol: Symbol, seed: int) -> tuple[int, int]:
    """Return two random numbers: for the order, and for the size of the unused section."""
    name = _UNSTABLE.sub("", symbol.name)
    text = f"{seed} {symbol.section} {name}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def _span(sections: Sequence[str], section: str) -> int:
    """Return the largest power of two that keeps the unused sections of a kind small."""
    span = _MAX_SPAN
    while span > _MIN_SPAN and span * sections.count(section) > _MAX_UNUSED_BYTES:
        span //= 2
    return span


class _Object:
    """An object file that has only unused sections, each with a local symbol."""

    def __init__(self) -> None:
        self._body = bytearray(_HEADER.size)
        self._names = bytearray(b"\0")
        self._headers = [_SECTION.pack(*(0,) * 10)]
        self._symbols = [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]

    def add(self, name: str, section: str, alignment: int, size: int) -> None:
        kind = _KINDS[section]
        index = len(self._headers)
        self._symbols.append(_SYMBOL.pack(len(self._names), _OBJECT, 0, index, 0, size))
        body = b"" if kind.type == _NOBITS else bytes(size)
        self._append(name, kind.type, kind.flags | _RETAIN, body, size, alignment, section)

    def content(self) -> bytes:
        """Return the file."""
        symbols = b"".join(self._symbols)
        index = len(self._headers)
        self._append(
            *(".symtab", _SYMBOLS, 0, symbols, len(symbols), 8),
            link=index + 1,
            info=len(self._symbols),
            entry=_SYMBOL.size,
        )
        # The names include the name of their own section.
        names = bytes(self._names) + b".strtab\0"
        self._append(".strtab", _STRINGS, 0, names, len(names), 1)
        self._body.extend(b"\0" * (-len(self._body) % 8))
        self._body[: _HEADER.size] = _HEADER.pack(
            _IDENTITY.ljust(16, b"\0"),
            *(1, _MACHINES[platform.machine()], 1, 0, 0, len(self._body), 0),
            *(_HEADER.size, 0, 0, _SECTION.size, len(self._headers), index + 1),
        )
        return bytes(self._body) + b"".join(self._headers)

    def _append(
        self,
        name: str,
        type: int,
        flags: int,
        body: bytes,
        size: int,
        alignment: int,
        prefix: str = "",
        *,
        link: int = 0,
        info: int = 0,
        entry: int = 0,
    ) -> None:
        self._body.extend(b"\0" * (-len(self._body) % 8))
        start = len(self._names)
        self._names.extend(name.encode() + b"\0")
        if prefix:
            start = len(self._names)
            self._names.extend(f"{prefix}.{name}".encode() + b"\0")
        self._headers.append(
            _SECTION.pack(
                start, type, flags, 0, len(self._body), size, link, info, alignment, entry
            )
        )
        self._body.extend(body)


def write_symbols(symbols: Sequence[Symbol], file: Path) -> None:
    """Write symbols to a file for `read_symbols`."""
    lines = (f"{symbol.section} {symbol.name}\n" for symbol in symbols)
    file.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")


def read_symbols(file: Path) -> list[Symbol]:
    """Return the symbols in a file of `write_symbols`; none if the file does not exist."""
    return list(_symbols_in(file)) if file.exists() else []


def _symbols_in(file: Path) -> Iterator[Symbol]:
    for line in file.read_text(encoding="utf-8", errors="surrogatepass").splitlines():
        section, _, name = line.partition(" ")
        yield Symbol(name, section)
