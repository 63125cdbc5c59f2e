"""Functions that write result documents as JSON, make their schemas, and read them from a file.

See docs/reference/document.md. A file may be damaged or edited. Therefore a file is refused if its
types differ from the schema, or if a value is impossible, such as a negative ratio.
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
from equipoise.model.kinds import ORDINARY, TAG, every_kind, import_path_of, kind_named, load
from equipoise.model.pooled import POOLED_SCHEMA, PooledCampaigns
from equipoise.model.quantities import MAX_MEASURED_VALUE, Interval
from equipoise.model.result import SCHEMA, Comparison, MetricSummary, ResultDocument
from equipoise.report.kind import kind_report

MAX_FILE_BYTES = 1024 * 1024 * 1024
"""Maximum size of a document; a campaign of 100,000 trials writes about 100 MB."""
_HINT = "give a file that Equipoise wrote: `equipoise show last --json result.json` writes one"
"""Hint for a file that is not a result document."""
_DAMAGED_HINT = "write the file again with `equipoise show RUN --json FILE`"
_VERSION_HINT = "read the file with the version of Equipoise that wrote it"
MAX_MIN_EFFECT = 1000.0
"""Largest possible smallest effect that matters, in percent."""
_JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCHEMA_NAMES: dict[type, str] = {ResultDocument: SCHEMA, PooledCampaigns: POOLED_SCHEMA}
"""Schema names of the documents whose field ``schema`` has no default."""


class RatioEstimate(Protocol):
    """Part of a result with a ratio, its interval and its level."""

    @property
    def ratio(self) -> float | None:
        """Estimate of the ratio."""

    @property
    def ratio_ci(self) -> Interval:
        """Interval of the ratio."""

    @property
    def significance_level(self) -> float | None:
        """Probability that the interval is wrong: 1 minus its coverage."""


def encode(document: msgspec.Struct) -> bytes:
    """Return a document as one line of JSON without a line end.

    The same document always gives the same bytes. A finite float keeps every bit. An infinite
    number or NaN becomes null.
    """
    try:
        return msgspec.json.encode(document, enc_hook=_to_python_number)
    except UnicodeEncodeError:
        # A command line may contain bytes that are not Unicode text.
        return msgspec.json.encode(
            _with_escapes(msgspec.to_builtins(document, enc_hook=_to_python_number))
        )


def decode(content: bytes, name: str) -> ResultDocument:
    """Return the document that `encode` wrote into the file ``name``.

    Raise `UnusableInput` if the content is not JSON, or not a result document of this version.
    """
    try:
        fields = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{name}: it is not JSON: {error}", hint=_HINT) from None
    except RecursionError:
        problem = "it is not a result document: its parts are nested too deeply"
        raise UnusableInput(f"{name}: {problem}", hint=_HINT) from None
    version = fields.get("schema") if isinstance(fields, dict) else None
    if version != SCHEMA:
        if version is None:
            raise UnusableInput(f"{name}: the field 'schema' is missing", hint=_HINT)
        problem = f"its schema is {version!r}, but this version of Equipoise reads {SCHEMA!r}"
        raise UnusableInput(f"{name}: {problem}", hint=_VERSION_HINT)
    kind = fields.get(TAG)
    if kind is None:
        raise UnusableInput(f"{name}: the field {TAG!r} is missing", hint=_HINT)
    if kind != ORDINARY and (not isinstance(kind, str) or import_path_of(kind) is None):
        problem = f"campaigns of the kind {kind!r} are not known to this installation"
        raise UnusableInput(f"{name}: {problem}", hint=_VERSION_HINT)
    document_class: type[ResultDocument] = load(kind_named(kind).document)
    # The check of every number is slow, so it runs only if the text may have a huge number.
    if _LONG_NUMBER.search(content) is not None and _has_huge_integer(fields):
        raise UnusableInput(
            f"{name}: it contains an integer that does not fit into 64 bits", hint=_HINT
        )
    if _LARGE_EXPONENT.search(content) is not None and any(
        map(_has_huge_value, _measured_parts(fields, document_class.measured_value_fields))
    ):
        raise UnusableInput(
            f"{name}: it contains a measured value above {MAX_MEASURED_VALUE:g}", hint=_HINT
        )
    # JSON has no infinity, so null in a summary means infinity.
    summaries = {
        key: _with_infinity(fields[key]) for key in ("conditions", "control") if key in fields
    }
    try:
        document: ResultDocument = msgspec.convert({**fields, **summaries}, document_class)
        return document
    except msgspec.ValidationError as error:
        raise UnusableInput(f"{name}: it is not a result document: {error}", hint=_HINT) from None


def read_document(path: Path) -> ResultDocument:
    """Read and check the result document in a file.

    Raise `UnusableInput` if the file cannot be read, or is not a possible result document.
    """
    content = read_whole(path, hint=_HINT, max_bytes=MAX_FILE_BYTES)
    if len(content) > MAX_FILE_BYTES:
        problem = f"it is larger than {MAX_FILE_BYTES >> 30} GiB"
        raise UnusableInput(f"{path}: it is not a result document: {problem}", hint=_HINT)
    document = decode(content, str(path))
    for contradiction in _contradictions(document):
        problem = f"the result has an impossible value: {contradiction}"
        raise UnusableInput(f"{path}: {problem}", hint=_DAMAGED_HINT)
    return document


def schema(document_class: type[msgspec.Struct] = ResultDocument) -> dict[str, Any]:
    """Make the JSON Schema of a class of documents; `ResultDocument` means all kinds of campaign.

    Every document has every field. An infinite number is null, such as the median of a condition
    if most trials timed out.
    """
    defaults = {field.name: field.default for field in msgspec.structs.fields(document_class)}
    name = _SCHEMA_NAMES.get(document_class, defaults["schema"])
    classes: tuple[type[msgspec.Struct], ...] = (document_class,)
    if document_class is ResultDocument:
        classes = tuple(dict.fromkeys(load(kind.document) for kind in every_kind()))
    generated = _with_all_fields(msgspec.json.schema(Union[classes]))  # noqa: UP007 - of a tuple
    for each_class in classes:
        generated["$defs"][each_class.__name__]["properties"]["schema"] = {"const": name}
    return {"$schema": _JSON_SCHEMA_DIALECT, "$id": f"urn:{name}", **generated}


_LONG_NUMBER = re.compile(rb"\d{19}")
"""Pattern of a possible integer of more than 64 bits; other texts may match, too."""


def _has_huge_integer(part: Any) -> bool:
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
"""Pattern of a possible number above `MAX_MEASURED_VALUE`; other texts may match, too."""


def _measured_parts(
    document: dict[str, Any], measured_value_fields: Mapping[str, str]
) -> Iterator[Any]:
    """Yield the parts of a document with measured values.

    ``measured_value_fields`` names parts of a kind of campaign: a key of the document, then an
    inner key.
    """
    yield from (document.get(key) for key in ("conditions", "trials", "why"))
    for key, inner_key in measured_value_fields.items():
        match document.get(key):
            case dict() as part:
                yield part.get(inner_key)


def _has_huge_value(part: Any) -> bool:
    match part:
        case float():
            return abs(part) > MAX_MEASURED_VALUE
        case dict():
            return any(_has_huge_value(part[key]) for key in part if key != "e_value")
        case list():
            return any(map(_has_huge_value, part))
    return False


_SUMMARY_NUMBERS = frozenset(
    name for name, type_name in MetricSummary.__annotations__.items() if type_name == "float"
)
"""Names of the numbers that every `MetricSummary` has. No other part has all of them."""


def _with_infinity(part: Any) -> Any:
    """Replace null by infinity in the numbers that every `MetricSummary` has."""
    match part:
        case dict() if _SUMMARY_NUMBERS <= part.keys():
            infinite_numbers = {key: math.inf for key in _SUMMARY_NUMBERS if part[key] is None}
            return {**part, **infinite_numbers}
        case dict():
            return {key: _with_infinity(value) for key, value in part.items()}
        case list():
            return [_with_infinity(value) for value in part]
    return part


def _to_python_number(value: Any) -> Any:
    item = getattr(value, "item", None)
    if item is None:
        raise NotImplementedError(f"{type(value).__name__} has no place in a result document")
    return item()


def _with_all_fields(part: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that requires every field, and allows null in place of a number."""
    new_schema = {key: value for key, value in part.items() if key != "default"}
    if part.get("type") == "number":
        new_schema["type"] = ["number", "null"]
    if sorted(part.get("anyOf", ()), key=str) == [{"type": "null"}, {"type": "number"}]:
        return {"type": ["number", "null"]}
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            new_schema[key] = _with_all_fields(part[key])
    for key in part.keys() & {"anyOf", "prefixItems"}:
        new_schema[key] = [_with_all_fields(choice) for choice in part[key]]
    for key in part.keys() & {"properties", "$defs"}:
        new_schema[key] = {name: _with_all_fields(inner) for name, inner in part[key].items()}
    if "properties" in part:
        new_schema["required"] = list(part["properties"])
    return new_schema


def _with_escapes(part: Any) -> Any:
    """Replace bytes that are not Unicode text by backslash escapes, everywhere in a document."""
    match part:
        case str():
            return part.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {_with_escapes(key): _with_escapes(value) for key, value in part.items()}
        case list() | tuple():
            return [_with_escapes(element) for element in part]
    return part


def _contradictions(document: ResultDocument) -> Iterator[str]:
    run = document.run
    if not 0 <= run.seed < 2**64:
        yield f"its seed is {run.seed}, not a number from 0 to 2^64 - 1"
    conditions, comparisons = [*document.conditions], [*document.comparisons]
    if document.control is not None:
        conditions.append(document.control.condition)
        comparisons.append(document.control.comparison)
    comparisons += [row.comparison for row in document.steady_state if row.comparison is not None]
    for condition in conditions:
        for metric, summary in condition.metrics.items():
            if not summary.modes:
                yield f"{metric} of {condition.name} has no mode"
        if condition.trials < 0 or condition.failures < 0:
            yield f"{condition.name} has a negative number of trials or failures"
    names = {condition.name for condition in conditions}
    for comparison in comparisons:
        yield from _contradictions_in_comparison(comparison)
        if missing_names := {comparison.baseline, comparison.candidate} - names:
            yield f"the compared condition {min(missing_names)} is missing"
    yield from kind_report(document).contradictions(document)


def is_possible_ratio(part: RatioEstimate) -> bool:
    """Return whether the ratio, the interval and the level of a part are possible."""
    is_ratio = part.ratio is None or 0.0 < part.ratio < math.inf
    level = part.significance_level
    is_level = level is not None and 0.0 < level < 1.0
    return is_ratio and is_interval_of_ratios(part.ratio_ci) and is_level


def _contradictions_in_comparison(comparison: Comparison) -> Iterator[str]:
    name = f"{comparison.candidate} against {comparison.baseline}"
    if not 0.0 <= comparison.min_effect <= MAX_MIN_EFFECT:
        effect = f"a smallest effect of {comparison.min_effect:g} percent"
        yield f"{name} has {effect}, not of 0 to {MAX_MIN_EFFECT:g}"
    if not (0.0 < comparison.alpha < 1.0 and 0.0 < comparison.significance_level < 1.0):
        yield f"{name} has no alpha between 0 and 1, or no such level"
    ratios = [comparison.ratio, comparison.mean_ratio]
    ratios += (answer.ratio for answer in comparison.answers)
    if any(ratio is not None and not 0.0 <= ratio < math.inf for ratio in ratios):
        yield f"{name} has a ratio below 0, or an infinite ratio"
    if comparison.blocks < 0:
        yield f"{name} has {comparison.blocks} blocks"
    if not 0.0 < comparison.equivalence_level < 1.0:
        yield f"{name} has an equivalence interval without a level between 0 and 1"
    if any(not 0.0 < segment.ratio < math.inf for segment in comparison.ratio_segments):
        yield f"{name} has a segment of blocks whose ratio is not a positive number"
    for interval in (comparison.ratio_ci, comparison.mean_ratio_ci, comparison.equivalence_ci):
        if not is_interval_of_ratios(interval):
            yield f"{name} has an interval {interval[0]} to {interval[1]}, which ratios cannot have"


def is_interval_of_ratios(interval: Interval) -> bool:
    """Return whether the ends of an interval are possible ratios in ascending order."""
    low, high = interval
    return (
        (low is None or 0.0 <= low < math.inf)
        and (high is None or 0.0 < high < math.inf)
        and (low is None or high is None or low <= high)
    )
