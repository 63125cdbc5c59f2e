"""Documents as JSON, their schemas, and reading a document from a file.

See docs/reference/document.md. A file may be somebody else's or damaged: it has the types of the
schema or is refused, and so is what no campaign computes, because pages and figures take its
logarithm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Union

import msgspec

from equipoise.files.writing import read_whole
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import ORDINARY, TAG, every_kind, kind_named, load, place_of
from equipoise.model.pooled import POOLED_SCHEMA, PooledCampaigns
from equipoise.model.quantities import MAX_MEASURED_VALUE, Interval
from equipoise.model.result import SCHEMA, Comparison, MetricSummary, ResultDocument
from equipoise.report.kind import report_kind

MAX_BYTES = 1024 * 1024 * 1024
"""A campaign of 100,000 trials writes about 100 MB."""
_HINT = "name a file that `equipoise … --json FILE` wrote"
MAX_MIN_EFFECT = 1000.0
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCHEMAS: dict[type, str] = {ResultDocument: SCHEMA, PooledCampaigns: POOLED_SCHEMA}
"""Names of the schemas of documents whose field ``schema`` has no default."""


class RatioWithLevel(Protocol):
    """A part of a result with a ratio, its interval and its level."""

    @property
    def ratio(self) -> float | None:
        """The ratio."""

    @property
    def ratio_ci(self) -> Interval:
        """Its interval."""

    @property
    def level(self) -> float | None:
        """1 minus the coverage of the interval."""


def encode(document: msgspec.Struct) -> bytes:
    """Write a document as one line of JSON without a line end.

    Fields are in the order of the data classes, mappings in their own order, so the
    same document always gives the same bytes; every finite float comes back bit for bit
    and what is infinite or not a number is null.
    """
    try:
        return msgspec.json.encode(document, enc_hook=_plain)
    except UnicodeEncodeError:
        # A command line may hold bytes that are not text.
        return msgspec.json.encode(_in_unicode(msgspec.to_builtins(document, enc_hook=_plain)))


def decode(text: bytes, name: str) -> ResultDocument:
    """Read a document that ``encode`` wrote.

    Raise `UnusableInput` if the text is not JSON, or not a result document of this version.

    Parameters
    ----------
    name
        Name of the file, for the messages.
    """
    try:
        read = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{name}: it is not JSON: {error}", hint=_HINT) from None
    except RecursionError:
        what = "it is not a result document: its parts are nested too deeply"
        raise UnusableInput(f"{name}: {what}", hint=_HINT) from None
    version = read.get("schema") if isinstance(read, dict) else None
    if version != SCHEMA:
        what = f"its schema is {'not named' if version is None else repr(version)}, not {SCHEMA}"
        raise UnusableInput(f"{name}: {what}", hint=_HINT)
    kind = read.get(TAG)
    if kind is None:
        raise UnusableInput(f"{name}: its kind of campaign is not named", hint=_HINT)
    if kind != ORDINARY and (not isinstance(kind, str) or place_of(kind) is None):
        what = f"campaigns of the kind {kind!r} are not known to this installation"
        raise UnusableInput(f"{name}: {what}", hint=_HINT)
    of_kind: type[ResultDocument] = load(kind_named(kind).document)
    # Decimals have fewer digits; texts of digits alone are rare.
    if _LONG_NUMBER.search(text) is not None and _has_huge_integer(read):
        raise UnusableInput(
            f"{name}: it contains an integer that does not fit into 64 bits", hint=_HINT
        )
    if _LARGE_EXPONENT.search(text) is not None and any(
        map(_is_beyond_measure, _measured(read, of_kind.measured_below))
    ):
        raise UnusableInput(f"{name}: a value is beyond {MAX_MEASURED_VALUE:g}", hint=_HINT)
    # JSON cannot hold an infinity: a summary's null is one.
    infinite = {key: _infinite(read[key]) for key in ("conditions", "control") if key in read}
    try:
        document: ResultDocument = msgspec.convert({**read, **infinite}, of_kind)
        return document
    except msgspec.ValidationError as error:
        raise UnusableInput(f"{name}: it is not a result document: {error}", hint=_HINT) from None


def read_document(path: Path) -> ResultDocument:
    """Read and check the result document in a file.

    Raise `UnusableInput` if the file cannot be read, or holds no document that a campaign writes.
    """
    content = read_whole(path, hint=_HINT, max_bytes=MAX_BYTES)
    if len(content) > MAX_BYTES:
        raise UnusableInput(f"{path} is larger than {MAX_BYTES >> 30} GiB", hint=_HINT)
    document = decode(content, str(path))
    for what in _impossible(document):
        raise UnusableInput(f"{path}: it is not a result document: {what}", hint=_HINT)
    return document


def schema(kind: type[msgspec.Struct] = ResultDocument) -> dict[str, Any]:
    """Make the JSON Schema of a kind of document from its data classes.

    That of result documents is the union over all kinds of campaign.

    Every field is there in every document. A number may be null, where it is infinite:
    a median over trials of which most timed out.
    """
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    name = _SCHEMAS.get(kind, defaults["schema"])
    kinds: tuple[type[msgspec.Struct], ...] = (kind,)
    if kind is ResultDocument:
        kinds = tuple(dict.fromkeys(load(each_kind.document) for each_kind in every_kind()))
    generated = _as_written(msgspec.json.schema(Union[kinds]))  # noqa: UP007 - of a tuple
    for document_type in kinds:
        generated["$defs"][document_type.__name__]["properties"]["schema"] = {"const": name}
    return {"$schema": _DIALECT, "$id": f"urn:{name}", **generated}


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


_LARGE_EXPONENT = re.compile(rb"[eE]\+?\d{3}|\d{100}")
"""A number without any of these is not beyond `MAX_MEASURED_VALUE`."""


def _measured(document: dict[str, Any], measured_below: Mapping[str, str]) -> Iterator[Any]:
    """Yield the parts of a document that hold what was measured.

    Ratios and e-values elsewhere may be larger, and are computed with as logarithms.
    """
    yield from (document.get(key) for key in ("conditions", "trials", "why"))
    for key, below in measured_below.items():
        match document.get(key):
            case dict() as part:
                yield part.get(below)


def _is_beyond_measure(part: Any) -> bool:
    match part:
        case float():
            return abs(part) > MAX_MEASURED_VALUE
        case dict():
            return any(_is_beyond_measure(part[key]) for key in part if key != "e_value")
        case list():
            return any(map(_is_beyond_measure, part))
    return False


_ALWAYS_NUMBERS = frozenset(
    name for name, kind in MetricSummary.__annotations__.items() if kind == "float"
)
"""Fields that make a mapping a summary."""


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
    if sorted(part.get("anyOf", ()), key=str) == [{"type": "null"}, {"type": "number"}]:
        return {"type": ["number", "null"]}
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            written[key] = _as_written(part[key])
    for key in part.keys() & {"anyOf", "prefixItems"}:
        written[key] = [_as_written(choice) for choice in part[key]]
    for key in part.keys() & {"properties", "$defs"}:
        written[key] = {name: _as_written(inner) for name, inner in part[key].items()}
    if "properties" in part:
        written["required"] = list(part["properties"])
    return written


def _in_unicode(part: Any) -> Any:
    """Show bytes that are not Unicode text as backslash escapes, everywhere in the document."""
    match part:
        case str():
            return part.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {_in_unicode(key): _in_unicode(value) for key, value in part.items()}
        case list() | tuple():
            return [_in_unicode(element) for element in part]
    return part


def _impossible(document: ResultDocument) -> Iterator[str]:
    """Yield contradictions that no campaign computes."""
    run = document.run
    if not 0 <= run.seed < 2**64:
        yield f"its seed is {run.seed}"
    conditions, compared = [*document.conditions], [*document.comparisons]
    if document.control is not None:
        conditions.append(document.control.condition)
        compared.append(document.control.comparison)
    compared += [row.comparison for row in document.steady_state if row.comparison is not None]
    for condition in conditions:
        for metric, summary in condition.metrics.items():
            if not summary.modes:
                yield f"{metric} of {condition.name} has no mode"
        if condition.trials < 0 or condition.failures < 0:
            yield f"{condition.name} has fewer than no trials"
    names = {condition.name for condition in conditions}
    for comparison in compared:
        yield from _impossible_comparison(comparison)
        if not {comparison.baseline, comparison.candidate} <= names:
            yield f"it compares {comparison.candidate} with {comparison.baseline}, and lacks one"
    yield from report_kind(document).contradictions(document)


def is_possible_ratio(part: RatioWithLevel) -> bool:
    """Return whether a ratio is possible, with its interval and its level."""
    is_ratio = part.ratio is None or 0.0 < part.ratio < math.inf
    level = part.level
    is_level = level is not None and 0.0 < level < 1.0
    return is_ratio and is_interval_of_ratios(part.ratio_ci) and is_level


def _impossible_comparison(comparison: Comparison) -> Iterator[str]:
    named = f"{comparison.candidate} against {comparison.baseline}"
    if not 0.0 <= comparison.min_effect <= MAX_MIN_EFFECT:
        yield f"{named} has a smallest effect of {comparison.min_effect:g} percent"
    if not (0.0 < comparison.alpha < 1.0 and 0.0 < comparison.level < 1.0):
        yield f"{named} has no alpha between 0 and 1"
    ratios = [
        comparison.ratio,
        comparison.mean_ratio,
        *(answer.ratio for answer in comparison.answers),
    ]
    if any(ratio is not None and not 0.0 <= ratio < math.inf for ratio in ratios):
        yield f"{named} has a ratio below 0"
    if comparison.blocks < 0:
        yield f"{named} has {comparison.blocks} blocks"
    if not 0.0 < comparison.equivalence_level < 1.0:
        yield f"{named} has an equivalence interval without a level between 0 and 1"
    if any(not 0.0 < stretch.ratio < math.inf for stretch in comparison.ratio_segments):
        yield f"{named} has a stretch with a ratio below 0"
    for interval in (comparison.ratio_ci, comparison.mean_ratio_ci, comparison.equivalence_ci):
        if not is_interval_of_ratios(interval):
            yield f"{named} has an interval {interval[0]} to {interval[1]}"


def is_interval_of_ratios(interval: Interval) -> bool:
    """Return whether both ends of an interval may be those of a ratio, in their order."""
    low, high = interval
    return (
        (low is None or 0.0 <= low < math.inf)
        and (high is None or 0.0 < high < math.inf)
        and (low is None or high is None or low <= high)
    )
