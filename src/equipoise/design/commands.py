"""From commands to conditions: words, parameters, names, environments, hooks and programs.

A command is split as a POSIX shell splits words and run without a shell, unless the user names
one. Parameters stand in braces, as in hyperfine.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.coin import Addresses
from equipoise.design.limits import CampaignLimits
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import LAYOUT, PRIMARY_METRIC, Condition, Hooks

MOST_CONDITIONS = 1000


class CompareOptions(Struct, frozen=True):
    """What the user wants to compare, and how; not yet checked but for its numbers."""

    commands: tuple[str | tuple[str, ...], ...]
    """A string is split into words; a tuple of words is used as it is."""
    names: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    """``WHICH:KEY=VALUE`` each."""
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of each name that stands in braces in a command."""
    shell: str | None = None
    """Shell that runs the commands; by default none does."""
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    input: str | None = None
    """File for standard input; ``null`` or ``None`` for nothing."""
    output: str = "null"
    """``null``, ``inherit``, ``count`` or a file."""
    metrics: str | Sequence[str] = (PRIMARY_METRIC,)
    """The first decides; a text is split at commas."""
    ignore_failure: bool = False
    washout: bool = False
    """Run each condition twice in a row and count the second run."""
    control: bool = False
    """Run the baseline a second time, to check the tool."""
    what_varies: bool = False
    """Find the sources of chance of one command instead of comparing several."""
    layouts: int | None = None
    """Number of memory layouts to compare over."""
    aslr: Addresses | None = None
    """Whether the kernel draws the addresses in the layouts."""
    ranking: bool | None = None
    """Also ask which condition is the fastest; by default, where that is possible."""
    limits: CampaignLimits = CampaignLimits()


def conditions_of(options: CompareOptions, native_programs: Path) -> tuple[Condition, ...]:
    """Return a condition for each command and parameter value, the baseline first.

    The package's own programs in ``native_programs`` are found before those on the PATH. Raise
    `UnusableInput` if there is no command, one is empty or has open quotes, a program does not
    exist or cannot be executed, or an option names no condition.
    """
    commands = list(_filled_commands(options))
    if not commands:
        raise UnusableInput(
            "compare needs a command",
            hint="give the baseline first: equipoise compare 'OLD COMMAND' 'NEW COMMAND'",
        )
    if len(commands) > MOST_CONDITIONS:
        raise UnusableInput(
            f"{len(commands)} conditions are more than the {MOST_CONDITIONS} of one block",
            hint="give fewer parameter values",
        )
    names = _names(options.names, [command.text for command in commands])
    environments = _environments(options.environments, names)
    hooks = _hooks(options, [command.levels for command in commands])
    return tuple(
        Condition(
            name,
            _argument_vector(command, options, native_programs, environment),
            levels=command.levels,
            environment=environment,
            hooks=hook,
        )
        for name, command, environment, hook in zip(
            names, commands, environments, hooks, strict=True
        )
    )


def with_control(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Add the control: the baseline once more, under another name."""
    names = {condition.name for condition in conditions}
    name = f"{conditions[0].name} (control)"
    while name in names:
        name += "'"
    return (*conditions, replace(conditions[0], name=name))


class _FilledCommand(Struct, frozen=True):
    """One command with its parameters filled in."""

    words: str | tuple[str, ...]
    levels: dict[str, str]

    @property
    def text(self) -> str:
        return self.words if isinstance(self.words, str) else shlex.join(self.words)


def _filled_commands(options: CompareOptions) -> Iterator[_FilledCommand]:
    """Yield each command with each combination of its parameters' values, each text once."""
    for key in options.parameters:
        if not any(_mentions(command, key) for command in options.commands):
            raise UnusableInput(
                f"no command mentions the parameter {{{key}}}",
                hint=f"write {{{key}}} where its value belongs, or leave the parameter out",
            )
    for command in options.commands:
        levels: dict[str | tuple[str, ...], dict[str, str]] = {}
        for values in itertools.product(*options.parameters.values()):
            setting = dict(zip(options.parameters, values, strict=True))
            used = {key: value for key, value in setting.items() if _mentions(command, key)}
            if isinstance(command, str):
                levels.setdefault(_fill(command, setting), used)
            else:
                levels.setdefault(tuple(_fill(word, setting) for word in command), used)
        yield from itertools.starmap(_FilledCommand, levels.items())


def _fill(text: str, setting: Mapping[str, str]) -> str:
    for key, value in setting.items():
        text = text.replace("{" + key + "}", value)
    return text


def _mentions(words: str | tuple[str, ...], key: str) -> bool:
    parts = (words,) if isinstance(words, str) else words
    return any("{" + key + "}" in part for part in parts)


def _names(chosen: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return a name for each command; a repeated name gets a number."""
    if len(chosen) > len(texts):
        raise UnusableInput(
            f"{len(chosen)} names for {len(texts)} commands",
            hint="give at most one -n/--command-name for each command",
        )
    names: dict[str, None] = {}
    for name in [*chosen, *texts[len(chosen) :]]:
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        candidates = itertools.chain([name], numbered)
        names[next(unique for unique in candidates if unique not in names)] = None
    return list(names)


def _environments(settings: Sequence[str], names: Sequence[str]) -> list[dict[str, str]]:
    environments: list[dict[str, str]] = [{} for _ in names]
    positions = {str(index + 1): index for index in range(len(names))}
    positions |= {name: index for index, name in enumerate(names)}
    for setting in settings:
        # A name may hold a colon itself, so known names are tried before the first colon.
        prefixes = (name for name in names if setting.startswith(f"{name}:"))
        which = max(prefixes, key=len, default=setting.partition(":")[0])
        key, equals, value = setting[len(which) + 1 :].partition("=")
        if not which or not key or not equals:
            raise UnusableInput(
                f"--env {setting!r} is not of the form WHICH:KEY=VALUE",
                hint="WHICH is a name or a position from 1, as in --env '2:LD_PRELOAD=lib.so'",
            )
        if which not in positions:
            known = ", ".join(f"{index} = {name}" for index, name in enumerate(names, start=1))
            raise UnusableInput(
                f"--env {setting!r} names no condition: {which!r}",
                hint=f"the conditions are {known}",
            )
        environments[positions[which]][key] = value
    return environments


def _hooks(options: CompareOptions, levels: Sequence[Mapping[str, str]]) -> list[Hooks]:
    columns: list[Sequence[str | None]] = []
    for option in ("setup", "prepare", "conclude", "cleanup"):
        lines: tuple[str, ...] = getattr(options, option)
        if len(lines) > 1 and len(lines) != len(levels):
            raise UnusableInput(
                f"{len(lines)} times --{option} for {len(levels)} conditions",
                hint=f"give --{option} once for all conditions, or once for each",
            )
        templates = lines if len(lines) > 1 else lines * len(levels)
        filled = [_fill(text, level) for text, level in zip(templates, levels, strict=False)]
        columns.append(filled or [None] * len(levels))
    return [Hooks(*lines) for lines in zip(*columns, strict=True)]


def _argument_vector(
    command: _FilledCommand,
    options: CompareOptions,
    native_programs: Path,
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    if options.shell is not None:
        shell = split_command(options.shell)
        words = [*shell, "-c", command.text] if shell and command.text.strip() else []
    elif isinstance(command.words, str):
        words = split_command(command.words)
    else:
        words = list(command.words)
    if not words or not words[0]:
        raise UnusableInput("a command is empty", hint="write the program that is to be run")
    if any("\0" in word for word in words):
        raise UnusableInput(
            f"the command {command.words!r} holds a null byte",
            hint="no program can be given one: leave it out",
        )
    layouts = options.layouts or 0
    return (find_programs(words[0], native_programs, environment, layouts=layouts), *words[1:])


def split_command(text: str, problem: str = "cannot split the command") -> list[str]:
    """Return the words of a command, as a POSIX shell splits them.

    ``problem`` begins the message of the error, and the text follows. Raise `UnusableInput` if a
    quote is left open.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UnusableInput(
            f"{problem} {text!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash",
        ) from error


SHELL_OPTION = "check its spelling; a shell built-in or a pipeline needs --shell default"


def find_program(
    name: str, native_programs: Path, environment: Mapping[str, str], hint: str = SHELL_OPTION
) -> str:
    """Return the path of a program. A missing one is bad input, not a failed trial.

    Raise `UnusableInput` if it cannot be executed, or, with ``hint``, if there is none.
    """
    has_folder = "/" in name
    own = native_programs / name
    if not has_folder and name.startswith("equipoise-") and own.is_file():
        return str(own)
    path = shutil.which(name, path=environment.get("PATH"))
    if path is not None:
        return os.path.abspath(path)
    if has_folder and os.path.isdir(name):
        raise UnusableInput(f"{name} is a folder, not a program", hint="name a program in it")
    if has_folder and os.path.exists(name):
        raise UnusableInput(f"{name} cannot be executed", hint=f"chmod +x {shlex.quote(name)}")
    where = "" if has_folder else " on the PATH"
    raise UnusableInput(f"there is no program {name!r}{where}", hint=hint)


def find_programs(
    name: str,
    native_programs: Path,
    environment: Mapping[str, str],
    hint: str = SHELL_OPTION,
    *,
    layouts: int,
) -> str:
    """Return the path of a program; ``{layout}`` in its name stays, and stands for every layout.

    Raise `UnusableInput` if one of them is not there, or cannot be executed.
    """
    if LAYOUT not in name or not layouts:
        return find_program(name, native_programs, environment, hint)
    paths = [
        find_program(name.replace(LAYOUT, str(layout)), native_programs, environment, hint)
        for layout in range(1, layouts + 1)
    ]
    if "/" in name:
        return os.path.abspath(name)
    return os.path.join(os.path.dirname(paths[0]), name)


def parameters_from(
    lists: Sequence[tuple[str, str]], scans: Sequence[tuple[str, str, str]], step: str | None
) -> dict[str, tuple[str, ...]]:
    """Return the values of each parameter, from ``-L``, ``-P`` and ``-D``.

    Raise `UnusableInput` if a parameter is given twice, or a scan cannot be made.
    """
    values = [(name, parameter_list(text)) for name, text in lists]
    values += [(name, parameter_scan(low, high, step)) for name, low, high in scans]
    for name, count in Counter(name for name, _ in values).most_common(1):
        if count > 1:
            raise UnusableInput(
                f"the parameter {name} is given twice", hint="leave one of them out"
            )
    return dict(values)


def parameter_list(text: str) -> tuple[str, ...]:
    r"""Return the values of ``-L NAME VALUES``: split at commas; ``\,`` is a comma."""
    values = [""]
    for token in re.findall(r"\\[,\\]|.", text, re.DOTALL):
        if token == ",":
            values.append("")
        else:
            # Of an escaped character the backslash goes.
            values[-1] += token[-1]
    return tuple(values)


_MOST_COUNTED = 10**15


def parameter_scan(low: str, high: str, step: str | None) -> tuple[str, ...]:
    """Return the values of ``-P NAME MIN MAX`` with ``-D STEP``, in decimal arithmetic.

    Raise `UnusableInput` if a bound or the step is no number, the bounds cross, or there are too
    many values.
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


_PLAIN_PATH = re.compile(r"[\w@%+=:,./ -]*")
"""Letters of any language, digits, and signs that mean nothing to a shell but a separator."""


def refuse_in_shell_line(line: str, paths: Mapping[str, str], hint: str) -> None:
    """Refuse a path with signs that a shell would interpret, where a line names it in braces.

    ``paths`` has the path that each name stands for. How a sign would have to be quoted depends on
    what surrounds it in the line, including substitutions within quotes, so Equipoise does not try.
    Raise `UnusableInput`, which names the path.
    """
    for name, path in paths.items():
        if "{" + name + "}" in line and _PLAIN_PATH.fullmatch(path) is None:
            raise UnusableInput(
                f"{{{name}}} stands for {path}, which has signs that a shell would interpret",
                hint=hint,
            )
