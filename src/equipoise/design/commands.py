"""From the command line's words to conditions.

A command is split as a POSIX shell splits words and run without a shell, unless one is
asked for; parameters stand in braces, as in hyperfine.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import LAYOUT, Condition, Hooks

MOST_CONDITIONS = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked to compare, in the user's own words."""

    commands: tuple[str | tuple[str, ...], ...]
    """A string is split into words; a tuple of words is taken as it is."""
    names: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    """``WHICH:KEY=VALUE`` each."""
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shell: str | None = None
    layouts: int = 0
    """How many layouts ``{layout}`` in a command stands for; 0: for nothing."""
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()


def conditions_of(asked: Asked, native_programs: Path, *, least: int = 2) -> tuple[Condition, ...]:
    """Make the conditions that were asked for, the baseline first.

    Parameters
    ----------
    native_programs
        The folder of the package's own programs, where ``equipoise-workload`` is looked
        for first.
    least
        How many commands are needed.

    Raises
    ------
    UnusableInput
        Fewer than ``least`` commands, an empty one, open quotes, a program that does not exist
        or cannot be executed, or options that name no condition.
    """
    spelled = _with_parameters(asked)
    if len(spelled) < least:
        number = "two commands" if least == 2 else "one command"
        raise UnusableInput(
            f"compare needs at least {number}, got {len(spelled)}",
            hint="give the baseline first: equipoise compare 'OLD COMMAND' 'NEW COMMAND'",
        )
    if len(spelled) > MOST_CONDITIONS:
        raise UnusableInput(
            f"{len(spelled)} conditions are more than the {MOST_CONDITIONS} of one block",
            hint="give fewer parameter values",
        )
    names = _names(asked, [one.text for one in spelled])
    environments = _environments(asked, names)
    hooks = _hooks(asked, [one.levels for one in spelled])
    return tuple(
        Condition(
            name=name,
            command=_argument_vector(
                one.words, asked.shell, _Finder(native_programs, environment, asked.layouts)
            ),
            levels=one.levels,
            environment=environment,
            hooks=hook,
        )
        for name, one, environment, hook in zip(names, spelled, environments, hooks, strict=True)
    )


def with_control(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Add the control: the baseline once more, the same file under another name."""
    taken = {condition.name for condition in conditions}
    name = f"{conditions[0].name} (control)"
    while name in taken:
        name += "'"
    return (*conditions, replace(conditions[0], name=name))


@dataclass(frozen=True, slots=True)
class _Spelled:
    """One command with its parameters filled in."""

    text: str
    words: str | tuple[str, ...]
    levels: dict[str, str]


def _with_parameters(asked: Asked) -> list[_Spelled]:
    settings = [
        dict(zip(asked.parameters, values, strict=True))
        for values in itertools.product(*asked.parameters.values())
    ]
    spelled: list[_Spelled] = []
    for words in asked.commands:
        seen: set[str | tuple[str, ...]] = set()
        for setting in settings:
            filled = (
                _fill(words, setting)
                if isinstance(words, str)
                else tuple(_fill(word, setting) for word in words)
            )
            if filled in seen:
                continue
            seen.add(filled)
            used = {key: value for key, value in setting.items() if _mentions(words, key)}
            text = filled if isinstance(filled, str) else shlex.join(filled)
            spelled.append(_Spelled(text, filled, used))
    unused = [key for key in asked.parameters if not any(_mentions(w, key) for w in asked.commands)]
    if unused:
        raise UnusableInput(
            f"no command mentions the parameter {{{unused[0]}}}",
            hint=f"write {{{unused[0]}}} where its value belongs, or leave the parameter out",
        )
    return spelled


def _fill(text: str, setting: Mapping[str, str]) -> str:
    for key, value in setting.items():
        text = text.replace("{" + key + "}", value)
    return text


def _mentions(words: str | tuple[str, ...], key: str) -> bool:
    parts = (words,) if isinstance(words, str) else words
    return any("{" + key + "}" in part for part in parts)


def _names(asked: Asked, texts: Sequence[str]) -> list[str]:
    if len(asked.names) > len(texts):
        raise UnusableInput(
            f"{len(asked.names)} names for {len(texts)} commands",
            hint="give at most one -n/--command-name for each command",
        )
    wanted = [*asked.names, *texts[len(asked.names) :]]
    taken: Counter[str] = Counter()
    names: list[str] = []
    for name in wanted:
        taken[name] += 1
        unique = name if taken[name] == 1 else f"{name} ({taken[name]})"
        while unique in names:
            taken[name] += 1
            unique = f"{name} ({taken[name]})"
        names.append(unique)
    return names


def _environments(asked: Asked, names: Sequence[str]) -> list[dict[str, str]]:
    environments: list[dict[str, str]] = [{} for _ in names]
    for setting in asked.environments:
        which, key, value = _split_setting(setting, names)
        environments[_position(which, setting, names)][key] = value
    return environments


def _split_setting(setting: str, names: Sequence[str]) -> tuple[str, str, str]:
    # A name may hold a colon itself, so known names are tried before the first colon.
    for name in sorted(names, key=len, reverse=True):
        if setting.startswith(f"{name}:"):
            which, assignment = name, setting[len(name) + 1 :]
            break
    else:
        which, _, assignment = setting.partition(":")
    key, equals, value = assignment.partition("=")
    if not which or not key or not equals:
        raise UnusableInput(
            f"--env {setting!r} is not of the form WHICH:KEY=VALUE",
            hint="WHICH is a name or a position from 1, as in --env '2:LD_PRELOAD=lib.so'",
        )
    return which, key, value


def _position(which: str, setting: str, names: Sequence[str]) -> int:
    if which in names:
        return names.index(which)
    if which.isascii() and which.isdigit() and 1 <= int(which) <= len(names):
        return int(which) - 1
    known = ", ".join(f"{index + 1} = {name}" for index, name in enumerate(names))
    raise UnusableInput(
        f"--env {setting!r} names no condition: {which!r}", hint=f"the conditions are {known}"
    )


def _hooks(asked: Asked, levels: Sequence[Mapping[str, str]]) -> list[Hooks]:
    def each(option: str, given: Sequence[str]) -> list[str | None]:
        if len(given) > 1 and len(given) != len(levels):
            raise UnusableInput(
                f"{len(given)} times --{option} for {len(levels)} conditions",
                hint=f"give --{option} once for all conditions, or once for each",
            )
        if not given:
            return [None] * len(levels)
        templates = given if len(given) > 1 else [given[0]] * len(levels)
        return [_fill(text, level) for text, level in zip(templates, levels, strict=True)]

    columns = zip(
        each("setup", asked.setup),
        each("prepare", asked.prepare),
        each("conclude", asked.conclude),
        each("cleanup", asked.cleanup),
        strict=True,
    )
    return [Hooks(*column) for column in columns]


@dataclass(frozen=True, slots=True)
class _Finder:
    """Where the programs of one condition are looked for."""

    native_programs: Path
    environment: Mapping[str, str]
    layouts: int

    def find(self, name: str) -> str:
        return find_programs(name, self.native_programs, self.environment, layouts=self.layouts)


def _argument_vector(
    words: str | tuple[str, ...], shell: str | None, finder: _Finder
) -> tuple[str, ...]:
    if shell is not None:
        line = words if isinstance(words, str) else shlex.join(words)
        if not line.strip():
            raise _empty_command()
        front = _split(shell)
        if not front:
            raise _empty_command()
        return (finder.find(front[0]), *front[1:], "-c", line)
    split = _split(words) if isinstance(words, str) else list(words)
    if not split or not split[0]:
        raise _empty_command()
    for word in split:
        if "\0" in word:
            raise UnusableInput(
                f"the command {words!r} holds a null byte",
                hint="no program can be given one: leave it out",
            )
    return (finder.find(split[0]), *split[1:])


def _empty_command() -> UnusableInput:
    return UnusableInput("a command is empty", hint="write the program that is to be run")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UnusableInput(
            f"cannot split the command {text!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash",
        ) from error


SHELL_OPTION = "check its spelling; a shell built-in or a pipeline needs --shell default"


def find_program(
    name: str, native_programs: Path, environment: Mapping[str, str], hint: str = SHELL_OPTION
) -> str:
    """Find a program now: a missing one is bad input, not a failed trial.

    Parameters
    ----------
    hint
        What to do where there is none.

    Raises
    ------
    UnusableInput
        There is none of that name, or it cannot be executed.
    """
    own = native_programs / name
    if "/" not in name and name.startswith("equipoise-") and own.is_file():
        return str(own)
    found = shutil.which(name, path=environment.get("PATH"))
    if found is not None:
        return os.path.abspath(found)
    if "/" in name and os.path.isdir(name):
        raise UnusableInput(f"{name} is a folder, not a program", hint="name a program in it")
    if "/" in name and os.path.exists(name):
        raise UnusableInput(f"{name} cannot be executed", hint=f"chmod +x {shlex.quote(name)}")
    raise UnusableInput(
        f"there is no program {name!r}" + ("" if "/" in name else " on the PATH"),
        hint=hint,
    )


def find_programs(
    name: str,
    native_programs: Path,
    environment: Mapping[str, str],
    hint: str = SHELL_OPTION,
    *,
    layouts: int,
) -> str:
    """Find the program of every layout where ``{layout}`` is in the name; it stays there.

    Raises
    ------
    UnusableInput
        One of them is not there, or cannot be executed.
    """
    if LAYOUT not in name or not layouts:
        return find_program(name, native_programs, environment, hint)
    found = [
        find_program(name.replace(LAYOUT, str(layout)), native_programs, environment, hint)
        for layout in range(1, layouts + 1)
    ]
    if "/" in name:
        return os.path.abspath(name)
    return os.path.join(os.path.dirname(found[0]), name)


def parameter_list(text: str) -> tuple[str, ...]:
    """The values of ``-L NAME VALUES``: split at commas, ``\\,`` is a comma."""
    values: list[str] = [""]
    escaped = False
    for character in text:
        if escaped:
            values[-1] += character if character in ",\\" else "\\" + character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            values.append("")
        else:
            values[-1] += character
    if escaped:
        values[-1] += "\\"
    return tuple(values)


_MOST_COUNTED = 10**15


def parameter_scan(low: str, high: str, step: str | None) -> tuple[str, ...]:
    """The values of ``-P NAME MIN MAX`` with ``-D STEP``, in decimal arithmetic.

    Raises
    ------
    UnusableInput
        A bound or the step is no number, the bounds cross, or there are too many values.
    """
    try:
        start, end = Decimal(low), Decimal(high)
        stride = Decimal(step) if step is not None else Decimal(1)
    except InvalidOperation as error:
        raise UnusableInput(
            f"--parameter-scan {low} {high} with step {step or 1} is not made of numbers",
            hint="as in -P threads 1 8 -D 1",
        ) from error
    if not (start.is_finite() and end.is_finite() and stride.is_finite()) or stride <= 0:
        raise UnusableInput("the step of --parameter-scan must be above zero", hint="as in -D 0.5")
    if start > end:
        raise UnusableInput(
            f"--parameter-scan begins at {low}, above its end {high}", hint="exchange them"
        )
    try:
        steps = (end - start) / stride
    except ArithmeticError:
        # The quotient has more digits than the largest exponent allows.
        steps = Decimal("Infinity")
    if steps >= MOST_CONDITIONS:
        # A count of thousands of digits could not be printed.
        count = int(steps) + 1 if steps < _MOST_COUNTED else f"{_MOST_COUNTED} or more"
        raise UnusableInput(
            f"--parameter-scan makes {count} values, over {MOST_CONDITIONS}",
            hint="take a larger step with -D",
        )
    return tuple(str(start + stride * index) for index in range(int(steps) + 1))
