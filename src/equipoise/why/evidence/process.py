"""How a source starts a command to observe it, and reads the document that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from equipoise.measure.installation import native_programs
from equipoise.model.errors import UnusableInput

Document = TypeVar("Document")


class Process(Struct, frozen=True):
    """A command as it would be started, and its complete environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class End(Struct, frozen=True):
    """How the observed command ended: either its exit status or the signal is known."""

    exit: int | None
    signal: int | None


def evidence_program() -> Path:
    """Return the native program that observes (``crates/evidence``).

    Raises
    ------
    UnusableInput
        The program is missing.
    """
    return native_file("equipoise-evidence")


def native_file(name: str) -> Path:
    """Return a native program or library of the package.

    Raises
    ------
    UnusableInput
        The file is missing.
    """
    path = native_programs() / name
    if not path.is_file():
        raise UnusableInput(
            f"{path} is missing",
            hint="run `make build` in a checkout, or install the package again",
        )
    return path


def read_document(file: Path, kind: type[Document], version: int) -> Document:
    """Read the document that the native program wrote.

    Raises
    ------
    UnusableInput
        The native program wrote nothing, or another version of the document.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise UnusableInput(
            f"no evidence was written to {file}: {error.strerror}",
            hint="the observer's standard error says why",
        ) from error
    return decode_document(text, str(file), kind, version)


def decode_document(text: bytes, origin: str, kind: type[Document], version: int) -> Document:
    """Decode a JSON document of the native program; error messages name its ``origin``.

    Raises
    ------
    UnusableInput
        The text is no document, or has another version.
    """
    try:
        actual = msgspec.json.decode(text, type=_Versioned).version
        if actual == version:
            return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise UnusableInput(f"{origin} is no evidence: {error}") from error
    raise UnusableInput(
        f"{origin} is version {actual} of its document, not {version}",
        hint="install the package again: its parts are of different versions",
    )


class _Versioned(Struct, frozen=True):
    version: int
