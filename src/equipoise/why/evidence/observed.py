"""What the sources share: how a command is started to be observed, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec

from equipoise.measure.installation import native_programs
from equipoise.model.errors import UnusableInput

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True)
class Process:
    """A command as it would be started, and its complete environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class End:
    """How the observed command ended: one of the two is there."""

    exit: int | None
    signal: int | None


def evidence_program() -> Path:
    """The native program that observes (``crates/evidence``).

    Raises
    ------
    UnusableInput
        It is not there.
    """
    return _native("equipoise-evidence")


def recorder_library() -> Path:
    """The preloadable library that records allocations (``crates/interpose/recorder``).

    Raises
    ------
    UnusableInput
        It is not there.
    """
    return _native("libequipoise_recorder.so")


def read_document(file: Path, kind: type[Document], version: int) -> Document:
    """What the native program wrote.

    Raises
    ------
    UnusableInput
        It wrote nothing, or another version of the document.
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
    """Decode a document of the native program.

    Parameters
    ----------
    origin
        Name of the file or the program in an error message.

    Raises
    ------
    UnusableInput
        The text is no document, or has another version.
    """
    try:
        found = msgspec.json.decode(text, type=_Versioned).version
        if found == version:
            return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise UnusableInput(f"{origin} is no evidence: {error}") from error
    raise UnusableInput(
        f"{origin} is version {found} of its document, not {version}",
        hint="install the package again: its parts are of different versions",
    )


@dataclass(frozen=True, slots=True)
class _Versioned:
    version: int


def _native(name: str) -> Path:
    place = native_programs() / name
    if not place.is_file():
        raise UnusableInput(
            f"{place} is missing",
            hint="run `make build` in a checkout, or install the package again",
        )
    return place
