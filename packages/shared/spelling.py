"""How messages name an option: ``--min-effect`` on a terminal, ``min_effect`` in Python.

A room below the command line never writes ``--min-effect`` into a message. It writes
``option("min_effect")``, and the face that runs decides how that reads, as a program decides on
the language of its messages. Python's spelling is the default. The command line, and a process
that works for it, chooses its own around all of its work::

    with command_line_spelling():
        ...

A message is spelled where it is made. A warning that a campaign has recorded keeps its spelling.

Each package has a copy of this module, and a process may use several. So the choice lies in the
interpreter's own table of options (``sys._xoptions``): it holds for every copy, whichever is loaded
first, and no process that is started inherits it.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

Value = str | float | bool | list[str] | None

_SPELLING = "equipoise_spelling"
"""Option of the interpreter that holds the choice, for all threads and all copies."""
_COMMAND_LINE = "command line"


@contextmanager
def command_line_spelling() -> Iterator[None]:
    """Spell options as the command line does while the block runs."""
    before = sys._xoptions.get(_SPELLING)
    sys._xoptions[_SPELLING] = _COMMAND_LINE
    try:
        yield
    finally:
        if before is None:
            del sys._xoptions[_SPELLING]
        else:
            sys._xoptions[_SPELLING] = before


def _is_command_line() -> bool:
    return sys._xoptions.get(_SPELLING) == _COMMAND_LINE


_ON_THE_COMMAND_LINE: dict[tuple[str, Value], str] = {
    ("names", None): "-n/--command-name",
    ("placebo_outcomes", None): "--placebo-outcome",
    ("ranking", True): "--ranking on",
    ("ranking", False): "--ranking off",
    ("ratio", False): "--difference",
}
"""Options whose spelling no rule gives."""
_IN_PYTHON: dict[tuple[str, Value], str] = {
    ("input", "FILE"): "a shell: sh -c 'A < FILE'",
}
"""Options that no function has, and what replaces them."""


def option(name: str, value: Value = None) -> str:
    """Return an option as the user of this process types it.

    Examples
    --------
    On the command line and in Python:

    - ``option("min_effect")``: ``--min-effect`` and ``min_effect``
    - ``option("blocks", 40)``: ``--blocks 40`` and ``blocks=40``
    - ``option("missing", "drop")``: ``--missing drop`` and ``missing="drop"``
    - ``option("patient", True)``: ``--patient`` and ``patient=True``
    - ``option("exact", ["a", "b"])``: ``--exact a,b`` and ``exact=["a", "b"]``

    Parameters
    ----------
    name
        Name of the argument in Python.
    value
        Value to give; without one, the option alone is named. ``True`` gives a flag.
    """
    irregular = _ON_THE_COMMAND_LINE if _is_command_line() else _IN_PYTHON
    if not isinstance(value, list) and (name, value) in irregular:
        return irregular[name, value]
    if not _is_command_line():
        return name if value is None else f"{name}={_python_value(value)}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is None or value is True else f"{flag} {_word(value)}"


def _python_value(value: Value) -> str:
    if isinstance(value, bool | int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _word(value: Value) -> str:
    if isinstance(value, str | int | float):
        return shlex.quote(str(value))
    assert value is not None, "only an option with a value has a word for it"
    return shlex.quote(",".join(value))
