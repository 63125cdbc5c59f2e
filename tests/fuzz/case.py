"""A case, its outcome, and a find as a file of the corpus."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

CORPUS = Path(__file__).parent / "corpus"

Kind = Literal["read", "refused", "find"]


@dataclass(frozen=True, slots=True)
class Case:
    """One input of one target."""

    variant: str
    """What is done with the content: a format, a command, the ending of a report."""
    content: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended: with a result, with an error for the user, or as a find."""

    kind: Kind
    signature: str = ""
    """Of a find: equal for two cases that show the same defect."""
    detail: str = ""


class WrongResult(Exception):
    """A target found that the result of a case is not right."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is fuzzed."""

    name: str
    describes: str
    """Row heading in the table of results."""
    share: int
    """Cases of this target among 100."""
    make: Callable[[random.Random], Case]
    run: Callable[[Case, Path], None]
    """Runs a case in an empty folder. Raises `EquipoiseError` where the input is refused and
    `WrongResult` where a result is not right."""
    cpu_seconds: Callable[[str], float] = lambda variant: 5.0
    """Limit for a case of this variant."""


def generator_of(seed: int, target: str, number: int) -> random.Random:
    """Return the random source of one case: any case can be made again alone."""
    return random.Random(f"{seed}/{target}/{number}")


def to_json(case: Case, why: str) -> str:
    """Write a case as a file of the corpus; text stays readable."""
    document: dict[str, Any] = {"why": why, "variant": case.variant}
    try:
        document["text"] = case.content.decode()
    except UnicodeDecodeError:
        document["base64"] = base64.b64encode(case.content).decode()
    return json.dumps(document, indent=1) + "\n"


def from_json(text: str) -> Case:
    """Read a file of the corpus."""
    document = json.loads(text)
    content = document["text"].encode() if "text" in document else None
    return Case(
        document["variant"],
        base64.b64decode(document["base64"]) if content is None else content,
    )


def corpus_of(target: str) -> list[Path]:
    """List the finds of a target."""
    return sorted((CORPUS / target).glob("*.json"))
