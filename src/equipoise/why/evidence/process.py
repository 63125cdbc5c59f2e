"""How a source starts a command to observe it, and reads the document that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from equipoise.measure.installation import native_programs, present
from equipoise.model.errors import UnusableInput

Document = TypeVar("Document")

EVIDENCE_PROGRAM = "equipoise-evidence"
"""Native program that observes (``crates/evidence``)."""
VERSION = 1
"""Version of the documents that this program writes."""


class Process(Struct, frozen=True):
    """A command as it would be started, and its complete environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class End(Struct, frozen=True):
    """How the observed command ended: either its exit status or the signal is known."""

    exit: int | None
    signal: int | None


def under_observer(process: Process, document: Path, *options: str) -> Process:
    """Return the process under the native observer, which writes the document.

    Raise `UnusableInput` if the observer is missing.
    """
    observer = (str(native_file(EVIDENCE_PROGRAM)), *options, "--output", str(document), "--")
    return Process((*observer, *process.command), process.environment)


def native_file(name: str) -> Path:
    """Return a native program or library of the package.

    Raise `UnusableInput` if the file is missing.
    """
    path = native_programs() / name
    return present(path, f"{path} is missing")


def read_document(file: Path, kind: type[Document]) -> Document:
    """Read the document that the native program wrote.

    Raise `UnusableInput` if the native program wrote nothing, or another version of the document.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise UnusableInput(
            f"no evidence was written to {file}: {error.strerror}",
            hint="the observer's standard error says why",
        ) from error
    return decode_document(text, str(file), kind)


def decode_document(text: bytes, origin: str, kind: type[Document]) -> Document:
    """Decode a JSON document of the native program; error messages name its ``origin``.

    Raise `UnusableInput` if the text is no document, or has another version.
    """
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
        if version == VERSION:
            return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise UnusableInput(f"{origin} is no evidence: {error}") from error
    raise UnusableInput(
        f"{origin} is version {version} of its document, not {VERSION}",
        hint="install the package again: its parts are of different versions",
    )


class _Versioned(Struct, frozen=True):
    version: int
