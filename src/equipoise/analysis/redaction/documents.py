"""A result document that was read from a file, without values that it may hold.

The documents of the first release have every value that a command sets (``env TOKEN=x PROGRAM``)
and every recorded variable. A document that this release wrote without them comes back as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from equipoise.analysis.redaction.assignments import command_with_values_replaced
from equipoise.analysis.redaction.records import without_hidden_variables
from equipoise.analysis.redaction.values import Assigned, HiddenValues, hidden_values
from equipoise.model.result import ResultDocument


def document_without_hidden_values(document: ResultDocument) -> ResultDocument:
    """Hide what the commands of a document set, and the variables of its environment."""
    assigned: list[Assigned] = []
    for condition in document.conditions:
        command_with_values_replaced(
            condition.command, lambda name, value: assigned.append((name, value))
        )
    hidden = hidden_values(assigned)
    environment = without_hidden_variables(document.environment)
    if environment != document.environment:
        document = dataclasses.replace(document, environment=environment)
    if hidden.pattern is None or _shows_nothing(hidden):
        return document
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for condition in document.conditions:
        shown = hidden.in_command(condition.command)
        texts |= dict(zip(condition.command, shown, strict=True))
        if shown != condition.command:
            names[condition.name] = hidden.in_line(condition.name)
    hidden = hidden.with_names(names)
    replaced: ResultDocument = _replaced(document, texts, hidden)
    return replaced


def _shows_nothing(hidden: HiddenValues) -> bool:
    return all(value == text for (_, value), text in hidden.placeholders.items())


def _replaced(part: Any, texts: Mapping[str, str], hidden: HiddenValues) -> Any:
    match part:
        case str():
            return texts[part] if part in texts else hidden.in_text(part)
        case dict():
            return {
                hidden.in_text(key): _replaced(value, texts, hidden) for key, value in part.items()
            }
        case list():
            return [_replaced(one, texts, hidden) for one in part]
        case tuple():
            return tuple(_replaced(one, texts, hidden) for one in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    fields = {one.name: getattr(part, one.name) for one in dataclasses.fields(part)}
    changed = {name: _replaced(value, texts, hidden) for name, value in fields.items()}
    return part if changed == fields else dataclasses.replace(part, **changed)
