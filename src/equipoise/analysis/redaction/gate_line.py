"""The line that runs a gate again, as its plan keeps it, with the values in it replaced."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from equipoise.analysis.redaction.assignments import (
    Replace,
    command_with_values_replaced,
    with_values_replaced,
)
from equipoise.analysis.redaction.shell_words import simple_commands
from equipoise.model.placeholders import quoted_but_for_placeholders


def gate_line_with_values_replaced(line: str, replace: Replace) -> str:
    """Replace the values that ``--build``, ``--bench`` and the command behind ``--`` set."""
    words = next(simple_commands(line), ())
    texts = tuple(word.text for word in words)
    changed = tuple(_changed(texts, replace))
    for word, text in reversed(tuple(zip(words, changed, strict=True))):
        if text != word.text:
            quoted = quoted_but_for_placeholders(text, shlex.quote)
            line = line[: word.start] + quoted + line[word.end :]
    return line


def _changed(words: tuple[str, ...], replace: Replace) -> Iterator[str]:
    command = words.index("--") + 1 if "--" in words else len(words)
    for place, word in enumerate(words[:command]):
        option = words[place - 1] if place else ""
        if option == "--build":
            yield with_values_replaced(word, replace)
        elif option == "--bench":
            yield _benchmark(word, replace)
        else:
            yield word
    yield from command_with_values_replaced(words[command:], replace)


def _benchmark(word: str, replace: Replace) -> str:
    name, equals, line = word.partition("=")
    command = tuple(shlex.split(line))
    changed = command_with_values_replaced(command, replace)
    return word if changed == command else f"{name}{equals}{shlex.join(changed)}"
