"""Every document that the tests make keeps to its own schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from equipoise.model.result import ResultDocument
from equipoise.report.json_document import encode, schema

_VALIDATOR = jsonschema.Draft202012Validator(schema())


def validated(document: ResultDocument) -> ResultDocument:
    """The document itself, after its JSON was held against the schema."""
    _VALIDATOR.validate(json.loads(encode(document)))
    return document


def valid_result(text: str) -> Any:
    """The result document in a text, held against the schema."""
    result = json.loads(text)
    _VALIDATOR.validate(result)
    return result
