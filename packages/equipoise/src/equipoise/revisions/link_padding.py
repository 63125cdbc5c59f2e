"""Object files without a use, whose sections move everything else of a link.

A shuffle alone gives a small program only few layouts, and two revisions with different functions
other ones: three functions have six orders. With unused sections of random sizes between them, each
function can start at any multiple of 16 bytes, in both revisions alike.
"""

from __future__ import annotations

import platform
import random
import struct

from msgspec import Struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
"""Header of the file and of a section (elf(5))."""
_MACHINES = {"x86_64": 62, "aarch64": 183}
"""Numbers of machines (elf(5)): lld refuses an object for another machine."""
_PROGBITS, _STRINGS, _NOBITS = 1, 3, 8
_WRITE, _ALLOC, _EXECUTE, _RETAIN = 0x1, 0x2, 0x4, 0x200000
"""Flags of sections; a retained section stays with ``--gc-sections``."""


class _Kind(Struct, frozen=True):
    """Sections of one kind, and how large they may be."""

    prefix: str
    type: int
    flags: int
    count: int
    step: int
    """Alignment, of which each size is a multiple."""
    max_steps: int


_KINDS = (
    _Kind(".text", _PROGBITS, _ALLOC | _EXECUTE, 8, 16, 16),
    _Kind(".rodata", _PROGBITS, _ALLOC, 4, 16, 16),
    _Kind(".data", _PROGBITS, _ALLOC | _WRITE, 4, 16, 16),
    _Kind(".bss", _NOBITS, _ALLOC | _WRITE, 4, 16, 128),
)


def padding_object(seed: int) -> bytes | None:
    """Return an object file for this host whose sections have sizes that the seed gives.

    ``None`` if the host's machine is not known here.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    generator = random.Random(seed)
    names = bytearray(b"\0")
    content = bytearray(_HEADER.size)
    headers = [_SECTION.pack(*(0,) * 10)]

    def add(name: str, kind: int, flags: int, body: bytes | None, size: int, align: int) -> None:
        offset = len(content)
        headers.append(
            _SECTION.pack(len(names), kind, flags, 0, offset, size, 0, 0, align, 0),
        )
        names.extend(name.encode() + b"\0")
        content.extend(body or b"")

    for kind in _KINDS:
        for index in range(kind.count):
            size = kind.step * generator.randint(0, kind.max_steps)
            body = None if kind.type == _NOBITS else b"\xcc" * size
            name = f"{kind.prefix}.equipoise_padding_{index}"
            add(name, kind.type, kind.flags | _RETAIN, body, size, kind.step)
    # The names include the name of their own section.
    all_names = bytes(names) + b".shstrtab\0"
    add(".shstrtab", _STRINGS, 0, all_names, len(all_names), 1)
    content.extend(b"\0" * (-len(content) % 8))
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    content[: _HEADER.size] = _HEADER.pack(
        *(identity, 1, machine, 1, 0, 0, len(content), 0, _HEADER.size, 0, 0, _SECTION.size),
        *(len(headers), len(headers) - 1),
    )
    return bytes(content) + b"".join(headers)
