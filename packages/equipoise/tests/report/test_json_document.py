"""The document is the same bytes every time, and always keeps to its schema."""

from __future__ import annotations

import functools
import json
import math
import operator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG
from equipoise.model.pooled import PooledCampaigns
from equipoise.model.record import CampaignWarning
from equipoise.model.result import (
    SCHEMA,
    CarryOver,
    Comparison,
    ConditionResult,
    ControlResult,
    MetricSummary,
    ResultDocument,
    RunInfo,
    TrialRow,
)
from equipoise.model.series import SeriesResult
from equipoise.model.why import Explanation
from equipoise.report.json_document import decode, encode, schema
from equipoise_matching.observation.result import ObservationResult
from packages.equipoise.tests.documents import comparison_of, document_of, row_of


def _summary(median: float = 0.125) -> MetricSummary:
    summary = document_of("old").conditions[0].metrics["wall_s"]
    return replace(summary, median=median, median_ci=(0.1, None))


def _comparison(e_value: float = 40.0) -> Comparison:
    comparison = comparison_of("old", "new", 1.03, 2)
    carried = CarryOver(1.0, (0.9, 1.1), 2)
    return replace(comparison, e_value=e_value, carry_over=carried)


def _row(wall_s: float | None = 0.125, condition: str = "old") -> TrialRow:
    return row_of(
        condition,
        wall_s,
        user_s=0.1,
        max_rss_bytes=4096,
        unknown={"sys_s": "not reported"},
        covariates={"load_1": 0.5, "temperature": None},
        metrics={"latency_s": 0.25},
        iterations={"latency_s": [0.2, 0.3]},
    )


def _document(**changed: Any) -> ResultDocument:
    document = ResultDocument(
        schema=SCHEMA,
        run=RunInfo("20261120-113005-4f2a", "compare", "", None, 7, 2, "verdict"),
        environment={"zulu": 1, "alpha": [1.5, None]},
        conditions=(
            ConditionResult("old", {"allocator": "glibc"}, ("old",), 2, 0, {"wall_s": _summary()}),
            ConditionResult("new", {}, ("new", "-x"), 2, 0, {}),
        ),
        comparisons=(_comparison(),),
        control=None,
        why=(),
        warnings=(CampaignWarning("code", "words", "hint"),),
        trials=(_row(), _row(0.13, "new")),
    )
    return replace(document, **changed)


def _control() -> ControlResult:
    condition = ConditionResult("old (control)", {}, ("old",), 2, 0, {"wall_s": _summary()})
    return ControlResult(condition, _comparison(), excludes_one=False, summary="no difference")


def _validate(encoded: bytes) -> None:
    jsonschema.Draft202012Validator(schema()).validate(json.loads(encoded))


def test_fields_stand_in_the_order_of_the_data_classes() -> None:
    decoded = json.loads(encode(_document()))
    assert list(decoded) == [TAG, *ResultDocument.__struct_fields__]
    assert list(decoded["comparisons"][0]) == list(Comparison.__struct_fields__)
    assert list(decoded["trials"][0]) == list(TrialRow.__struct_fields__)


def test_mappings_keep_their_own_order() -> None:
    assert list(json.loads(encode(_document()))["environment"]) == ["zulu", "alpha"]


def test_an_interval_is_a_pair_whose_unknown_end_is_null() -> None:
    summary = json.loads(encode(_document()))["conditions"][0]["metrics"]["wall_s"]
    assert summary["median_ci"] == [0.1, None]


def test_the_same_document_gives_the_same_bytes() -> None:
    assert encode(_document()) == encode(_document())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_float_comes_back_bit_for_bit(value: float) -> None:
    decoded = json.loads(encode(_document(trials=(_row(value),))))
    assert repr(float(decoded["trials"][0]["wall_s"])) == repr(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_are_null_and_keep_to_the_schema(value: float) -> None:
    document = _document(
        conditions=(
            ConditionResult("old", {}, ("old",), 1, 1, {"wall_s": _summary(median=value)}),
        ),
        comparisons=(replace(_comparison(e_value=value), ratio=value, ratio_ci=(value, value)),),
        why=(_explanation(ratio=value),),
        environment={"load": value},
        trials=(replace(_row(value), covariates={"load_1": value}, iterations={"a": [value]}),),
    )
    encoded = encode(document)
    decoded = json.loads(encoded, parse_constant=_refuse)
    assert decoded["conditions"][0]["metrics"]["wall_s"]["median"] is None
    assert decoded["comparisons"][0]["ratio_ci"] == [None, None]
    assert decoded["trials"][0]["iterations"] == {"a": [None]}
    assert decoded["why"][0]["evidence"] == {"ratio": None}
    _validate(encoded)


def _explanation(**evidence: Any) -> Explanation:
    return Explanation("name", "function", evidence, "open", None, (None, None), "words")


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_numbers_of_numpy_are_numbers() -> None:
    misleads: Any = np.bool_(True)
    document = _document(
        comparisons=(replace(_comparison(), ratio=np.float64(1.5), minimum_misleads=misleads),),
        why=(_explanation(blocks=np.int64(3)),),
    )
    decoded = json.loads(encode(document))
    assert decoded["comparisons"][0]["ratio"] == 1.5
    assert decoded["comparisons"][0]["minimum_misleads"] is True
    assert decoded["why"][0]["evidence"] == {"blocks": 3}


def test_a_written_document_is_read_back_with_the_infinities_of_a_summary() -> None:
    document = _document(
        control=_control(),
        conditions=(
            ConditionResult("old", {}, ("old",), 1, 1, {"wall_s": _summary(median=math.inf)}),
        ),
    )
    assert decode(encode(document), "result.json") == document


def test_a_document_of_an_earlier_version_is_read_without_what_it_did_not_have() -> None:
    earlier = json.loads(encode(_document()))
    del earlier["steady_state"]
    for condition in earlier["conditions"]:
        del condition["iterations"]
    assert decode(json.dumps(earlier).encode(), "result.json") == _document()


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_an_integer_that_no_array_holds_is_refused(number: int) -> None:
    document = json.loads(encode(document_of(blocks=3)))
    document["trials"][2]["block"] = number
    with pytest.raises(
        UnusableInput, match="result.json: it contains an integer that does not fit into 64 bits"
    ):
        decode(json.dumps(document).encode(), "result.json")


@pytest.mark.parametrize("value", [1e101, -1.7976931348623157e308])
def test_a_value_beyond_every_measurement_is_refused(value: float) -> None:
    for path in (("conditions", 0, "metrics", "wall_s", "median"), ("trials", 0, "wall_s")):
        read = json.loads(encode(document_of()))
        *outer, last = path
        functools.reduce(operator.getitem, outer, read)[last] = value
        with pytest.raises(UnusableInput, match=r"a measured value above 1e\+100"):
            decode(json.dumps(read).encode(), "x.json")


def test_an_e_value_may_be_larger_than_every_measurement() -> None:
    read = json.loads(encode(document_of()))
    read["comparisons"][0]["e_value"] = 1e250
    assert decode(json.dumps(read).encode(), "x.json").comparisons[0].e_value == 1e250


def test_a_text_of_many_digits_is_no_number() -> None:
    document = json.loads(encode(document_of("7" * 30, "8" * 30, blocks=3)))
    assert decode(json.dumps(document).encode(), "result.json").conditions[0].name == "7" * 30


def test_a_value_without_a_place_in_a_document_is_a_defect_that_shows() -> None:
    with pytest.raises(NotImplementedError, match="object has no place"):
        encode(_document(why=(_explanation(what=object()),)))


def test_bytes_of_a_command_line_that_are_no_text_are_shown_as_escapes() -> None:
    document = _document(
        conditions=(ConditionResult("ls \udcff", {}, ("ls", "\udcff"), 0, 0, {}),),
        trials=(_row(condition="ls \udcff"),),
    )
    encoded = encode(document)
    decoded = json.loads(encoded)
    assert decoded["conditions"][0]["command"] == ["ls", r"\udcff"]
    assert decoded["trials"][0]["condition"] == r"ls \udcff"
    assert list(decoded) == [TAG, *ResultDocument.__struct_fields__]
    _validate(encoded)


def test_a_document_keeps_to_the_schema_and_the_schema_to_its_dialect() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    _validate(encode(_document()))
    _validate(encode(_document(conditions=(), comparisons=(), trials=(), warnings=())))
    _validate(encode(_document(control=_control(), why=(_explanation(),))))


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ((), "schema", "equipoise.result/2"),
        ((), "trials", None),
        (("run",), "seed", 1.5),
        (("comparisons", 0), "verdict", "better"),
        (("comparisons", 0), "ratio_ci", [1.0]),
        (("comparisons", 0), "minimum_misleads", None),
        (("trials", 0), "phase", "cooldown"),
        (("trials", 0), "wall_s", "0.125"),
        (("trials", 0), "exit", 0.5),
        (("conditions", 0), "command", "old"),
    ],
)
def test_the_schema_refuses_what_is_no_such_document(
    place: tuple[str | int, ...], key: str, value: object
) -> None:
    decoded = json.loads(encode(_document()))
    part = decoded
    for step in place:
        part = part[step]
    part[key] = value
    with pytest.raises(jsonschema.ValidationError):
        _validate(json.dumps(decoded).encode())


def test_the_schema_asks_for_every_field() -> None:
    complete = json.loads(encode(_document()))
    for name in ResultDocument.__struct_fields__:
        with pytest.raises(jsonschema.ValidationError):
            _validate(json.dumps({k: v for k, v in complete.items() if k != name}).encode())
    for name in TrialRow.__struct_fields__:
        row = {key: value for key, value in complete["trials"][0].items() if key != name}
        with pytest.raises(jsonschema.ValidationError):
            _validate(json.dumps({**complete, "trials": [row]}).encode())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("result", ResultDocument),
        ("pooled", PooledCampaigns),
        ("observed", ObservationResult),
        ("series", SeriesResult),
    ],
    ids=("result", "pooled", "observed", "series"),
)
def test_the_published_schemas_are_the_generated_ones(name: str, kind: type) -> None:
    published = Path(__file__).parents[4] / "docs" / f"{name}.schema.json"
    # Written by `make schema`.
    assert json.loads(published.read_text(encoding="utf-8")) == schema(kind)
