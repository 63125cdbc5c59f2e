"""Every public name of ``equipoise`` has an example in its docstring, and each example runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import equipoise
from tests.docs.docstring_examples import examples_of, failure_of


def test_every_public_name_has_an_example() -> None:
    assert len(equipoise.__all__) == 11
    examples = examples_of(equipoise)
    assert [name for name, test in examples.items() if not test.examples] == []


@pytest.mark.parametrize("name", equipoise.__all__)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert failure_of(examples_of(equipoise)[name]) == ""
