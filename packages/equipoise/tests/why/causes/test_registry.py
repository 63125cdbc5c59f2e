"""Every rule is in the registry, and the docs say what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.why.causes import functions, memory, processes, system_calls
from equipoise.why.causes.ranking import REMEDIES, RULES

DOCS = Path(__file__).resolve().parents[5] / "docs" / "reference" / "causes.md"


@pytest.mark.parametrize("cause", RULES)
def test_the_docs_list_every_cause(cause: str) -> None:
    _, _, causes = DOCS.read_text(encoding="utf-8").partition("## Causes")
    table, _, _ = causes.partition("## Interventions")
    assert f"`{cause}`" in table


def test_every_cause_has_a_remedy() -> None:
    assert REMEDIES.keys() == RULES.keys()


def test_every_rule_runs_under_its_own_name() -> None:
    rules = {
        name: value
        for module in (functions, memory, processes, system_calls)
        for name, value in vars(module).items()
        if callable(value)
        and value.__module__ == module.__name__
        and getattr(value, "__annotations__", {}) == ANNOTATIONS
        and not name.startswith("_")
    }
    assert rules == dict(RULES)


ANNOTATIONS = {"unclaimed": "UnclaimedTime", "return": "Iterator[Cause]"}
"""Parameters and result of every rule."""
