"""What an ELF file says of how it is started (elf(5)); no more than that is read."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

_MAGIC = b"\x7fELF"
_LOADER_SEGMENT = 3
_MOST_SEGMENTS = 4096
_LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Elf:
    """An ELF program."""

    loader: str | None
    """The dynamic loader that it names; ``None`` if it is linked statically."""


class NoElf(Exception):
    """The file is no ELF file, or a damaged one."""


def read_elf(path: str) -> Elf:
    """Read the headers of a program.

    Raises
    ------
    NoElf
        It is no ELF file.
    OSError
        It cannot be read.
    """
    with open(path, "rb") as file:
        identity = file.read(16)
        if len(identity) < 16 or not identity.startswith(_MAGIC):
            raise NoElf(f"{path} is no ELF file")
        wide = identity[4] == 2
        order = "<" if identity[5] == 1 else ">"
        header_form = order + ("HHIQQQIHHH" if wide else "HHIIIIIHHH")
        try:
            header = struct.unpack(header_form, file.read(struct.calcsize(header_form)))
            start, size, count = header[4], header[8], header[9]
            for index in range(min(count, _MOST_SEGMENTS)):
                file.seek(start + index * size)
                if wide:
                    kind, _, at, _, _, length = struct.unpack(order + "IIQQQQ", file.read(40))
                else:
                    kind, at, _, _, length = struct.unpack(order + "IIIII", file.read(20))
                if kind == _LOADER_SEGMENT:
                    file.seek(at)
                    name = file.read(min(length, _LONGEST_PATH))
                    return Elf(os.fsdecode(name.split(b"\0", 1)[0]))
        except struct.error:
            raise NoElf(f"{path} is cut short") from None
    return Elf(None)
