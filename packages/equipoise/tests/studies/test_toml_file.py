"""The lines of keys are found in any valid spelling of a file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from equipoise.model.study import Keys
from equipoise.studies.reader.toml_file import key_lines

TEXT = '''# a comment with = and [brackets]
title = "a # b"   # and a comment

[a.b]
"quoted key" = """
[not.a.table]
x = 1
"""
'literal' = \'\'\'{ y = 2 }\'\'\'
list = [
  1, # one
  "two ]",
  { inline = true, deep = { key = 1 } },
]
dotted.key.here = 1979-05-27 07:32:00
[[array]]
name = 1
[[array]]
name = 2
[array.below]
z = [[1, 2], [3]]
'''


def paths(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """Return every key and element that ``tomllib`` finds."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inside:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths(item, (*path, key))


def test_every_key_has_its_line() -> None:
    lines = key_lines(TEXT)
    rows = TEXT.splitlines()
    assert set(lines) >= set(paths(tomllib.loads(TEXT)))
    for path, line in lines.items():
        if isinstance(path[-1], str) and path[-1] != "deep":
            assert path[-1] in rows[line - 1]
    assert rows[lines["a", "b", "list", 1] - 1].strip() == '"two ]",'
    assert rows[lines["array", 1, "name"] - 1] == "name = 2"
    assert rows[lines["array", 1, "below", "z"] - 1] == "z = [[1, 2], [3]]"


def test_an_empty_file_has_no_keys() -> None:
    assert key_lines("") == key_lines("# nothing\n\n") == {}
