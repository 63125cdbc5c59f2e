"""Changes to bytes, lines and JSON that readers may fail on."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from packages.equipoise.tests.payloads import PAYLOADS

MARKER = "fuzzed"
"""Name of an element that no page of ours has."""
TEXTS = (
    *PAYLOADS,
    f"<{MARKER} onload=alert(1)>",
    f'"><{MARKER}>',
    f"</script><{MARKER}>",
    f"</style></title><{MARKER} onclick='x'>",
    "",
    "\x00",
    "0",
    "-1",
    "nan",
    "1e999",
    "null",
    "wall_s",
    "{size}",
    "{port}{folder}{",
    "x" * 5000,
)
NUMBERS: tuple[float | int, ...] = (
    0,
    -0.0,
    1,
    -1,
    2,
    0.5,
    255,
    65536,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    10**400,
    1e-320,
    5e-324,
    1e-9,
    1e18,
    1.7e308,
    -1.7e308,
    float("inf"),
    float("-inf"),
    float("nan"),
)
TOKENS = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"="),
    *(b"\n", b"\r", b"\t", b"\\", b"\\u0000", b"nan", b"-inf", b"1e999", b"-", b"null", b"[["),
    *(
        b"9223372036854775808",
        b"-1",
        b"0",
        b"%",
        b";",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xe2\x80\xa8",
    ),
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def mutated_bytes(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Apply a few changes that know nothing of the format."""
    for _ in range(generator.choice((1, 1, 1, 2, 4, 16))):
        content = generator.choice(_BYTE_CHANGES)(generator, content, others)
    return content


def _flip(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    if not content:
        return content
    place = generator.randrange(len(content))
    changed = bytes((content[place] ^ (1 << generator.randrange(8)),))
    return content[:place] + changed + content[place + 1 :]


def _insert(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    place = generator.randint(0, len(content))
    length = generator.choice((0, 0, 1, 5))
    return content[:place] + generator.choice(TOKENS) + content[place + length :]


def _remove(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    begin, end = _range(generator, content)
    return content[:begin] + content[end:]


def _repeat(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    begin, end = _range(generator, content)
    times = generator.choice((2, 2, 3, 50))
    return content[:begin] + content[begin:end] * times + content[end:]


def _cut(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    return content[: generator.randint(0, len(content))]


def _splice(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    other = generator.choice(others) if others else content
    return content[: generator.randint(0, len(content))] + other[generator.randint(0, len(other)) :]


def _number(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    one = generator.choice(found)
    return content[: one.start()] + str(any_number(generator)).encode() + content[one.end() :]


def _lines(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        return content
    first, second = generator.randrange(len(lines)), generator.randrange(len(lines))
    match generator.randrange(3):
        case 0:
            lines[first], lines[second] = lines[second], lines[first]
        case 1:
            lines.insert(second, lines[first])
        case _:
            del lines[first]
    return b"".join(lines)


def _text(generator: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    place = generator.randint(0, len(content))
    text = any_text(generator).encode("utf-8", "surrogateescape")
    return content[:place] + text + content[place:]


_Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
_BYTE_CHANGES: tuple[_Change, ...] = (
    *(_flip, _insert, _insert, _remove, _repeat, _cut, _splice, _number, _number, _number),
    *(_lines, _lines, _text),
)


def _range(generator: random.Random, content: bytes) -> tuple[int, int]:
    begin = generator.randint(0, len(content))
    return begin, min(len(content), begin + generator.choice((1, 2, 8, 40, 200)))


def mutated_tree(generator: random.Random, tree: Any) -> Any:
    """Change a few values of a tree of dictionaries and lists; the original stays as it is."""
    tree = json.loads(json.dumps(tree))
    for _ in range(generator.choice((1, 1, 2, 3, 8))):
        tree = _changed_once(generator, tree)
    return tree


def _changed_once(generator: random.Random, tree: Any) -> Any:
    """Change one value: every depth is as probable as every other one."""
    holder: Any = None
    key: Any = None
    value = tree
    while isinstance(value, dict | list) and value and generator.random() < 0.85:
        holder = value
        key = (
            generator.choice(list(value))
            if isinstance(value, dict)
            else generator.randrange(len(value))
        )
        value = holder[key]
    if holder is None:
        return any_value(generator) if generator.random() < 0.1 else tree
    # A reader that checks types would see little else than wrong ones.
    if generator.random() < 0.7:
        holder[key] = _of_the_same_type(generator, value)
        return tree
    match generator.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[any_text(generator)] = holder.pop(key)
        case 1 | 2 if isinstance(holder, list):
            holder.insert(generator.randint(0, len(holder)), value)
        case 2 | 3:
            holder[key] = _of_another_type(generator, value)
        case 4 if isinstance(value, list):
            holder[key] = (value * generator.choice((2, 3, 20)))[:5000]
        case 4 | 5 if isinstance(value, int | float):
            holder[key] = any_number(generator)
        case 4 | 5 if isinstance(value, str):
            holder[key] = any_text(generator)
        case _:
            holder[key] = any_value(generator)
    return tree


def _of_the_same_type(generator: random.Random, value: Any) -> Any:
    """Return another value that a check of types lets through."""
    match value:
        case bool():
            return not value
        case int():
            whole = [one for one in NUMBERS if isinstance(one, int)]
            return generator.choice((*whole, generator.randrange(-3, 30)))
        case float():
            return float(min(1e308, max(-1e308, any_number(generator))))
        case str():
            return any_text(generator)
        case list() if value:
            place = generator.randrange(len(value))
            other = generator.randrange(len(value))
            return generator.choice(
                (
                    value[:place],
                    value[:place] + value[place + 1 :],
                    value[:place] + [value[other]] + value[place:],
                    value[::-1],
                    (value * 20)[:500],
                )
            )
        case dict() if value:
            one = generator.choice(list(value))
            return {any_text(generator) if key == one else key: part for key, part in value.items()}
    return value


def _of_another_type(generator: random.Random, value: Any) -> Any:
    choices: list[Any] = [None, [value], {"a": value}, str(value), True, 0, -1.5, [], {}, ""]
    return generator.choice(choices)


def any_value(generator: random.Random) -> Any:
    """Return a value that is often of a wrong type."""
    match generator.randrange(8):
        case 0 | 1 | 2:
            return any_number(generator)
        case 3 | 4:
            return any_text(generator)
        case 5:
            return generator.choice((None, True, False, [], {}, [[]], {"": None}))
        case 6:
            return [any_number(generator) for _ in range(generator.randrange(5))]
        case _:
            return {any_text(generator): any_number(generator)}


def any_number(generator: random.Random) -> float | int:
    """Return a number, mostly at some edge."""
    if generator.random() < 0.3:
        return generator.choice(
            (
                generator.randrange(-5, 100),
                generator.random(),
                10.0 ** generator.randrange(-300, 300),
            )
        )
    return generator.choice(NUMBERS)


def any_text(generator: random.Random) -> str:
    """Return a text that does something wherever it is not escaped."""
    return generator.choice(TEXTS)


def json_bytes(tree: Any) -> bytes:
    """Encode a tree; numbers that JSON lacks as the standard library writes them."""
    return json.dumps(tree).encode()
