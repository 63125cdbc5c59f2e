"""The documents as JSON (design.md §4), and the schemas that they keep to."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import msgspec

from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import OBSERVED_SCHEMA, ObservationResult
from equipoise.model.result import (
    FIRST_SCHEMA,
    POOLED_SCHEMA,
    SCHEMA,
    MetricSummary,
    PooledCampaigns,
    ResultDocument,
)

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def encode(document: ResultDocument | PooledCampaigns | ObservationResult) -> bytes:
    """Write a document as one line of JSON without a line end.

    Fields stand in the order of the data classes, mappings in their own order, so the
    same document always gives the same bytes; every finite float comes back bit for bit
    and what is infinite or not a number is null.
    """
    try:
        return msgspec.json.encode(document, enc_hook=_plain)
    except UnicodeEncodeError:
        # A command line may hold bytes that are no text.
        return msgspec.json.encode(_in_unicode(msgspec.to_builtins(document, enc_hook=_plain)))


def decode(text: bytes, name: str) -> ResultDocument:
    """Read a document that ``encode`` wrote.

    Parameters
    ----------
    name
        Of the file, for what is said of it.

    Raises
    ------
    UnusableInput
        It is no JSON, or no result document of this version.
    """
    hint = "name a file that `equipoise … --json FILE` wrote"
    try:
        read = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{name}: it is no JSON: {error}", hint=hint) from None
    except RecursionError:
        raise UnusableInput(
            f"{name}: it is no result document: its parts are nested too deeply", hint=hint
        ) from None
    found = read.get("schema") if isinstance(read, dict) else None
    if found == FIRST_SCHEMA:
        read, found = {**_of_first_schema(read), "schema": SCHEMA}, SCHEMA
    if found != SCHEMA:
        raise UnusableInput(
            f"{name}: its schema is {'not named' if found is None else repr(found)}, not {SCHEMA}",
            hint=hint,
        )
    # Decimals have fewer digits; texts of digits alone are rare.
    if _LONG_NUMBER.search(text) is not None and _has_huge_integer(read):
        raise UnusableInput(f"{name}: it holds an integer beyond 64 bits", hint=hint)
    try:
        return msgspec.convert(_with_infinities(read), ResultDocument)
    except msgspec.ValidationError as error:
        raise UnusableInput(f"{name}: it is no result document: {error}", hint=hint) from None


def schema() -> dict[str, Any]:
    """Make the JSON Schema of the result document from the data classes.

    Every field is there in every document. A number may be null, where it is infinite:
    a median over trials of which most timed out.
    """
    return _schema_of(ResultDocument, SCHEMA)


def pooled_schema() -> dict[str, Any]:
    """Make the JSON Schema of pooled campaigns, likewise."""
    return _schema_of(PooledCampaigns, POOLED_SCHEMA)


def observed_schema() -> dict[str, Any]:
    """Make the JSON Schema of what was found in a log, likewise."""
    return _schema_of(ObservationResult, OBSERVED_SCHEMA)


def _schema_of(kind: type, name: str) -> dict[str, Any]:
    generated = _as_written(msgspec.json.schema(kind))
    generated["$defs"][kind.__name__]["properties"]["schema"] = {"const": name}
    return {"$schema": _DIALECT, "$id": f"urn:{name}", **generated}


_RENAMED = {"words": "summary", "mend": "hint", "advice_words": "advice_summary"}
"""Fields of ``equipoise.result/1`` under other names, each a text."""
_NAMED_BY_USERS = frozenset({"environment", "levels", "stratum", "unknown", "spread_because"})
"""Mappings whose keys are no fields."""


def _of_first_schema(part: Any) -> Any:
    """Return a part of an ``equipoise.result/1`` document with its fields under today's names."""
    match part:
        case dict():
            return {
                _RENAMED.get(key, key) if isinstance(value, str | None) else key: (
                    value if key in _NAMED_BY_USERS else _of_first_schema(value)
                )
                for key, value in part.items()
            }
        case list():
            return [_of_first_schema(inner) for inner in part]
    return part


_LONG_NUMBER = re.compile(rb"\d{19}")


def _has_huge_integer(part: Any) -> bool:
    """Say whether an integer is beyond what NumPy and the ledger can hold."""
    match part:
        case bool():
            return False
        case int():
            return not -(2**63) <= part < 2**63
        case dict():
            return any(map(_has_huge_integer, part.values()))
        case list():
            return any(map(_has_huge_integer, part))
    return False


_ALWAYS_NUMBERS = frozenset(
    one.name for one in dataclasses.fields(MetricSummary) if one.type == "float"
)
"""Fields that make a mapping a summary."""


def _with_infinities(document: dict[str, Any]) -> dict[str, Any]:
    """Put back what JSON cannot hold: a summary's null is an infinity."""
    told = {key: document[key] for key in ("conditions", "control") if key in document}
    return {**document, **{key: _infinite(part) for key, part in told.items()}}


def _infinite(part: Any) -> Any:
    match part:
        case dict() if _ALWAYS_NUMBERS <= part.keys():
            missing = {key: math.inf for key in _ALWAYS_NUMBERS if part[key] is None}
            return {**part, **missing}
        case dict():
            return {key: _infinite(inner) for key, inner in part.items()}
        case list():
            return [_infinite(inner) for inner in part]
    return part


def _plain(value: Any) -> Any:
    """Turn a number of NumPy into one of Python."""
    item = getattr(value, "item", None)
    if item is None:
        raise NotImplementedError(f"{type(value).__name__} has no place in a result document")
    return item()


def _as_written(part: dict[str, Any]) -> dict[str, Any]:
    """Say in a schema what `encode` does: it writes every field, and null for an infinity."""
    written = {key: value for key, value in part.items() if key != "default"}
    if part.get("type") == "number":
        written["type"] = ["number", "null"]
    if {"type": "null"} in part.get("anyOf", ()):
        others = [choice for choice in part["anyOf"] if choice != {"type": "null"}]
        if others == [{"type": "number"}]:
            return {"type": ["number", "null"]}
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            written[key] = _as_written(part[key])
    for key in ("anyOf", "prefixItems"):
        if key in part:
            written[key] = [_as_written(choice) for choice in part[key]]
    for key in ("properties", "$defs"):
        if key in part:
            written[key] = {name: _as_written(inner) for name, inner in part[key].items()}
    if "properties" in part:
        written["required"] = list(part["properties"])
    return written


def _in_unicode(part: Any) -> Any:
    """Show what is no Unicode text as backslash escapes, everywhere in the document."""
    match part:
        case str():
            return part.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {_in_unicode(key): _in_unicode(value) for key, value in part.items()}
        case list() | tuple():
            return [_in_unicode(element) for element in part]
    return part
