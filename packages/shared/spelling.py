"""Spelling of options in messages: ``--min-effect`` on a terminal, ``min_effect`` in Python.

A message names an option by ``option("min_effect")``. Python's spelling is the default. Inside the
block ``with command_line_spelling():`` the command line's spelling is used. The spelling is chosen
when the message is created.

Each package has a copy of this module, and a process may use several copies. Therefore the choice
is stored in the interpreter (``sys._xoptions``). Child processes do not inherit the choice.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

Value = str | float | bool | list[str] | None
"""Value of an option in a message; ``None`` for the option alone."""
_CHOICE_KEY = "equipoise_spelling"
"""Key of the choice in ``sys._xoptions``."""
_COMMAND_LINE = "command line"
"""Value of the choice; without it, Python's spelling is used."""


@contextmanager
def command_line_spelling() -> Iterator[None]:
    """Use the spelling of the command line inside the block."""
    previous_choice = sys._xoptions.get(_CHOICE_KEY)
    sys._xoptions[_CHOICE_KEY] = _COMMAND_LINE
    try:
        yield
    finally:
        if previous_choice is None:
            del sys._xoptions[_CHOICE_KEY]
        else:
            sys._xoptions[_CHOICE_KEY] = previous_choice


def _is_command_line() -> bool:
    return sys._xoptions.get(_CHOICE_KEY) == _COMMAND_LINE


_ON_THE_COMMAND_LINE: dict[tuple[str, Value], str] = {
    ("names", None): "-n/--command-name",
    ("placebo_outcomes", None): "--placebo-outcome",
    ("ranking", True): "--ranking on",
    ("ranking", False): "--ranking off",
    ("ratio", False): "--difference",
}
"""Options with an irregular spelling."""
_IN_PYTHON: dict[tuple[str, Value], str] = {("input", "FILE"): "a shell: sh -c 'A < FILE'"}
"""Texts for options that only the command line has."""


def option(name: str, value: Value = None) -> str:
    """Return an option in the spelling of this process.

    ``name`` is the argument's name in Python. Without a ``value``, the option stands alone.

    Examples
    --------
    On the command line and in Python:

    - ``option("min_effect")``: ``--min-effect`` and ``min_effect``
    - ``option("blocks", 40)``: ``--blocks 40`` and ``blocks=40``
    - ``option("missing", "drop")``: ``--missing drop`` and ``missing="drop"``
    - ``option("patient", True)``: ``--patient`` and ``patient=True``
    - ``option("exact", ["a", "b"])``: ``--exact a,b`` and ``exact=["a", "b"]``
    """
    irregular = _ON_THE_COMMAND_LINE if _is_command_line() else _IN_PYTHON
    if not isinstance(value, list) and (name, value) in irregular:
        return irregular[name, value]
    if not _is_command_line():
        return name if value is None else f"{name}={_python_value(value)}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is None or value is True else f"{flag} {_shell_word(value)}"


def _python_value(value: Value) -> str:
    if isinstance(value, bool | int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _shell_word(value: Value) -> str:
    if isinstance(value, str | int | float):
        return shlex.quote(str(value))
    assert value is not None, "only an option with a value has a word for it"
    return shlex.quote(",".join(value))
