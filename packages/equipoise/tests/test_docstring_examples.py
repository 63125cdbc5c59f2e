"""Every public name of ``equipoise`` has an example in its docstring, and each example runs."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest

import equipoise

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def example_of(name: str) -> doctest.DocTest:
    """Return the examples in the docstring of a public name, which may use names of its module."""
    public = getattr(equipoise, name)
    names = dict(vars(sys.modules[public.__module__]))
    return doctest.DocTestParser().get_doctest(public.__doc__ or "", names, name, None, None)


def test_every_public_name_has_an_example() -> None:
    assert len(equipoise.__all__) == 11
    assert [name for name in equipoise.__all__ if not example_of(name).examples] == []


@pytest.mark.parametrize("name", equipoise.__all__)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example_of(name), out=report.append)
    assert "".join(report) == ""
