"""Text and mappings as they stand in the ledger, and the digests that find them again.

Mappings are JSON as the standard library writes it: only it keeps infinities and the
undecodable bytes of a command line (lone surrogates), which stricter encoders refuse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from equipoise.model.plan import Condition, Plan, Process

Decoded = TypeVar("Decoded")

_strict_json = msgspec.json.Decoder()


def to_text(value: Any) -> str:
    """Encode frozen data or a mapping as JSON; `from_text` gives it back, floats bit for bit."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def mapping_to_text(mapping: Mapping[str, Any]) -> str | None:
    """Encode a mapping that is rarely filled; an empty one costs nothing (NULL)."""
    return json.dumps(mapping, separators=(",", ":")) if mapping else None


def from_text(text: str) -> Any:
    """Decode what `to_text` wrote.

    Raises
    ------
    ValueError
        If it is not JSON.
    """
    try:
        return _strict_json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def read_as(text: str, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    """Decode what `to_text` or `mapping_to_text` wrote as one type.

    Raises
    ------
    ValueError
        If it is not JSON, or JSON of another type.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(text), decoder.type)


def storable(text: str) -> str:
    """Text that SQLite can hold: what is no Unicode text is shown as a backslash escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def digest_of_text(text: str) -> bytes:
    """16 bytes that name a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def digest_of_commands(plan: Plan) -> bytes:
    """16 bytes that name what a plan runs: each condition's command and environment, in order.

    Names, hooks, budgets and seeds are left out: campaigns that differ in those alone
    answer the same question. An imported run is never the same as a campaign of our own.
    """
    runs = [_what_runs(condition) for condition in plan.conditions]
    # What another tool ran answers no question of ours, whatever its benchmarks are called.
    return digest_of_text(to_text(runs if plan.imported is None else {"imported": runs}))


def _what_runs(condition: Condition) -> Sequence[Any]:
    usual = (condition.command, sorted(condition.environment.items()))
    # What is as usual is left out, so that the digests of older ledgers stay what they are.
    if condition.output is not None:
        return (*usual, condition.process, condition.server, condition.output)
    if condition.process == Process() and condition.server is None:
        return usual
    return (*usual, condition.process, condition.server)
