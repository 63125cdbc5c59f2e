"""Makes conditions from commands: arguments, parameters, names, environments, hooks, programs.

A command is split into arguments as in a POSIX shell. By default it runs without a shell. A
parameter is a name in braces, such as ``{n}``, that stands for several values. Each command gives a
condition for each combination of these values. Hooks are commands that run before or after trials.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.design.coin import Addresses
from equipoise.design.limits import CampaignLimits
from equipoise.model.errors import UnusableInput
from equipoise.model.packages import PROGRAMS_OF_STUDIES, missing_studies_error, own_file
from equipoise.model.plan import COMMAND, LAYOUT, PRIMARY_METRIC, Condition, Contrast, Hooks, Output
from equipoise.shared.spelling import option

MAX_CONDITIONS = 1000
"""Maximum number of conditions in a block."""
NO_SHELL = "none"
"""Value of ``--shell`` with which shell syntax is allowed, but has no meaning."""


class CompareOptions(Struct, frozen=True):
    """Options of `compare`; the creation of an object checks only the numbers."""

    commands: tuple[str | tuple[str, ...], ...]
    """Commands; a string is split into arguments, a tuple of arguments is used unchanged."""
    names: tuple[str, ...] = ()
    """Names that the user chose, in the order of the commands."""
    environments: tuple[str, ...] = ()
    """Environment variables: ``CONDITION:KEY=VALUE``; or as in hyperfine ``KEY=VALUE …``, once for
    all commands or once for each command."""
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of each parameter, by its name without the braces."""
    pairs: tuple[str, ...] = ()
    """Compared pairs, as ``BASELINE:CANDIDATE`` with positions from 1; see `contrasts_of`."""
    shell: str | None = None
    """Shell that runs the commands; by default no shell, and shell syntax is an error."""
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    """Hooks: ``setup`` before the first trial of a condition, ``prepare`` before each trial,
    ``conclude`` after each trial, and ``cleanup`` after the last trial."""
    input: str | None = None
    """File for standard input; ``null`` or ``None`` for no input."""
    outputs: tuple[str, ...] = ()
    """Standard output of all commands, or of each: ``null``, ``inherit``, ``count`` or a file."""
    metrics: str | Sequence[str] = (PRIMARY_METRIC,)
    """Metrics, the primary metric first; a string is split at commas."""
    ignore_failure: bool = False
    ignored_exits: tuple[int, ...] = ()
    """Exit statuses that are ignored; if empty, all statuses."""
    washout: bool = False
    """Whether a washout runs before each counted trial."""
    duet: bool = False
    """Whether the two trials of a block run at once, each on CPUs of its own."""
    control: bool = False
    """Whether the baseline runs a second time, to check the tool."""
    adjust: bool = False
    """Whether costs are adjusted by covariates that are read before each trial."""
    what_varies: bool = False
    """Whether to find why the times of one command vary."""
    layouts: int | None = None
    """Number of memory layouts."""
    aslr: Addresses | None = None
    """Whether memory addresses are random in the layouts."""
    ranking: bool | None = None
    """Whether to rank the conditions; by default, if this is possible."""
    limits: CampaignLimits = CampaignLimits()


def conditions_of(options: CompareOptions, native_programs: Path) -> tuple[Condition, ...]:
    """Return a condition for each command and combination of parameter values, the baseline first.

    Programs are in the folder ``native_programs`` or in the PATH.

    Raise `UnusableInput` if there is no command, if a command is empty or has an open quote, if a
    program does not exist or cannot be executed, or if an option does not name a condition.
    """
    commands = list(_filled_commands(options))
    if not commands:
        raise UnusableInput(
            "compare needs a command",
            hint="give the baseline first: equipoise compare 'OLD COMMAND' 'NEW COMMAND'",
        )
    if len(commands) > MAX_CONDITIONS:
        raise UnusableInput(
            f"there are {len(commands)} conditions, but a block has at most {MAX_CONDITIONS}",
            hint="give fewer parameter values",
        )
    names = _condition_names(options, commands)
    environments = _environment_of_each(options, names, commands)
    hooks = _hooks_of_each(options, commands)
    outputs = _outputs_of_each(options, commands)
    return tuple(
        Condition(
            name,
            _argument_vector(command, options, native_programs, environment),
            levels=command.levels,
            environment=environment,
            hooks=hooks_of_condition,
            output=output,
        )
        for name, command, environment, hooks_of_condition, output in zip(
            names, commands, environments, hooks, outputs, strict=True
        )
    )


def output_of_all(options: CompareOptions) -> Output:
    """Return the destination of standard output of conditions without their own destination."""
    return output_from(options.outputs[0]) if len(options.outputs) == 1 else Output()


def output_from(destination: str) -> Output:
    """Read a value of ``--output``; raise `UnusableInput` for a file in a missing folder."""
    match destination:
        case "null":
            return Output("discard")
        case "inherit" | "count":
            return Output(destination)
        case _:
            folder = Path(destination).resolve().parent
            if not folder.is_dir():
                raise UnusableInput(
                    f"{option('output', destination)}: there is no folder {folder}",
                    hint=f"create it first: mkdir -p {shlex.quote(str(folder))}",
                )
            return Output("file", os.path.abspath(destination))


def _outputs_of_each(
    options: CompareOptions, commands: Sequence[_FilledCommand]
) -> list[Output | None]:
    if len(options.outputs) < 2:
        return [None] * len(commands)
    destinations = _values_for_each(options.outputs, "output", options, commands)
    return [
        None if destination is None else output_from(destination) for destination in destinations
    ]


def contrasts_of(
    options: CompareOptions, conditions: Sequence[Condition]
) -> tuple[Contrast, ...] | None:
    """Return the contrasts of the pairs that the user chose, or of commands with parameters.

    ``None`` if every condition is compared with the first condition. With a parameter, the baseline
    of a candidate is the first command with the same value. If the candidate does not have the
    parameter, its baseline is the first command with its first value.

    Raise `UnusableInput` if a pair names a condition that does not exist.
    """
    if options.pairs:
        return tuple(_contrast_of_pair(pair, len(conditions)) for pair in options.pairs)
    factor = _command_factor(options)
    first_levels = conditions[0].levels
    if factor not in first_levels:
        return None
    settings = [_without_factor(condition.levels, factor) for condition in conditions]
    baselines = [
        index
        for index, condition in enumerate(conditions)
        if condition.levels[factor] == first_levels[factor]
    ]
    contrasts: list[Contrast] = []
    for index, setting in enumerate(settings):
        if index in baselines:
            continue
        # A command may lack a parameter. Parameters of both commands must be equal.
        matching_baselines = (
            baseline for baseline in baselines if _settings_agree(settings[baseline], setting)
        )
        baseline = next(matching_baselines, None)
        if baseline is None:
            return None
        contrasts.append(Contrast(baseline, index, factor, setting))
    return tuple(contrasts)


def _settings_agree(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> bool:
    return all(candidate[key] == baseline[key] for key in baseline.keys() & candidate.keys())


def _without_factor(levels: Mapping[str, str], factor: str) -> dict[str, str]:
    return {name: level for name, level in levels.items() if name != factor}


def _contrast_of_pair(pair: str, condition_count: int) -> Contrast:
    if re.fullmatch("[0-9]+:[0-9]+", pair):
        baseline, candidate = (int(position) - 1 for position in pair.split(":"))
        if baseline != candidate and {baseline, candidate} <= set(range(condition_count)):
            return Contrast(baseline, candidate)
    raise UnusableInput(
        f"{option('pair', pair)} does not name two of the {condition_count} conditions",
        hint=f"give the positions of baseline and candidate, from 1: {option('pair', '1:2')}",
    )


def _command_factor(options: CompareOptions) -> str:
    """Return the name of the factor whose levels are the commands."""
    return COMMAND if COMMAND not in options.parameters else "program"


def with_control(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Add the control: the baseline a second time, with another name."""
    names = {condition.name for condition in conditions}
    name = f"{conditions[0].name} (control)"
    while name in names:
        name += "'"
    return (*conditions, replace(conditions[0], name=name))


class _FilledCommand(Struct, frozen=True):
    """A command in which values replace the parameters."""

    command: str | tuple[str, ...]
    levels: dict[str, str]
    """Values of the parameters that the command uses."""
    setting: dict[str, str]
    """Values of all parameters."""
    index: int
    """Index of the command among the user's commands."""

    @property
    def text(self) -> str:
        return _command_text(self.command)


def _filled_commands(options: CompareOptions) -> Iterator[_FilledCommand]:
    """Yield each command with each different combination of its parameter values."""
    texts_by_command = [
        (*_argument_texts(command), *_surrounding_texts(options, index))
        for index, command in enumerate(options.commands)
    ]
    for key in options.parameters:
        if not any(_has_placeholder(texts, key) for texts in texts_by_command):
            raise UnusableInput(
                f"no command mentions the parameter {{{key}}}",
                hint=f"write {{{key}}} into a command, or leave the parameter out",
            )
    labels, factor = _command_labels(options), _command_factor(options)
    for index, (command, texts) in enumerate(zip(options.commands, texts_by_command, strict=True)):
        label = {factor: labels[index]} if options.parameters and len(labels) > 1 else {}
        seen_texts: set[tuple[str, ...]] = set()
        for values in itertools.product(*options.parameters.values()):
            setting = dict(zip(options.parameters, values, strict=True))
            filled_texts = tuple(_fill_in(text, setting) for text in texts)
            if filled_texts in seen_texts:
                continue
            seen_texts.add(filled_texts)
            levels = {key: value for key, value in setting.items() if _has_placeholder(texts, key)}
            argv = filled_texts[: len(_argument_texts(command))]
            yield _FilledCommand(
                argv[0] if isinstance(command, str) else argv, label | levels, setting, index
            )


def _command_text(command: str | tuple[str, ...]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def _argument_texts(command: str | tuple[str, ...]) -> tuple[str, ...]:
    return (command,) if isinstance(command, str) else command


def _surrounding_texts(options: CompareOptions, index: int) -> tuple[str, ...]:
    """Return the hooks and the environment of a command, with its parameters in braces."""
    environments = [text for text in options.environments if _assigns(text, options.names)]
    values_by_option = [*(getattr(options, hook) for hook in _HOOK_KEYS), environments]
    # An option has one value for all commands, or one for each command.
    return tuple(
        values[0] if len(values) == 1 else values[index]
        for values in values_by_option
        if len(values) in (1, len(options.commands))
    )


def _command_labels(options: CompareOptions) -> list[str]:
    """Return the label of each command, without the values of its parameters.

    The label is the name that the user chose. By default it is the program if the programs of all
    commands are different, else the whole command.
    """
    texts = list(map(_command_text, options.commands))
    programs = [os.path.basename(text.split()[0]) if text.split() else "" for text in texts]
    short_texts = programs if len(texts) > 1 and len(set(programs)) == len(texts) else texts
    chosen_names = options.names if len(options.names) <= len(texts) else ()
    labels = [*chosen_names, *short_texts[len(chosen_names) :]]
    return labels if len(set(labels)) == len(labels) else texts


def _fill_in(text: str, setting: Mapping[str, str]) -> str:
    for key, value in setting.items():
        text = text.replace("{" + key + "}", value)
    return text


def _has_placeholder(texts: Iterable[str], key: str) -> bool:
    return any("{" + key + "}" in text for text in texts)


def _condition_names(options: CompareOptions, commands: Sequence[_FilledCommand]) -> list[str]:
    chosen_names = options.names
    if len(chosen_names) > len(commands):
        raise UnusableInput(
            f"{len(chosen_names)} names for {len(commands)} commands",
            hint=f"give at most one {option('names')} for each command",
        )
    texts = [command.text for command in commands]
    if options.parameters and len(chosen_names) <= len(options.commands):
        labels = _command_labels(options)
        texts = [_name_with_values(labels[command.index], command, options) for command in commands]
        chosen_names = ()
    names: dict[str, None] = {}
    for name in [*chosen_names, *texts[len(chosen_names) :]]:
        numbered_names = (f"{name} ({number})" for number in itertools.count(2))
        possible_names = itertools.chain([name], numbered_names)
        names[next(unique for unique in possible_names if unique not in names)] = None
    return list(names)


def _name_with_values(label: str, command: _FilledCommand, options: CompareOptions) -> str:
    """Return a label with the parameter values, such as ``sm, n=50000``."""
    values = (
        f", {key}={value}"
        for key, value in command.levels.items()
        if key in options.parameters and not _has_placeholder((label,), key)
    )
    return _fill_in(label, command.setting) + "".join(values)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
"""Beginning of an assignment: the name of the variable and the sign."""


def _assigns(text: str, names: Sequence[str]) -> bool:
    """Return whether a value of ``--env`` is a list of assignments, as in hyperfine."""
    if any(text.startswith(f"{name}:") for name in names):
        return False
    return not text.strip() or _ASSIGNMENT.match(text) is not None


def _environment_of_each(
    options: CompareOptions, names: Sequence[str], commands: Sequence[_FilledCommand]
) -> list[dict[str, str]]:
    assignment_lists = [text for text in options.environments if _assigns(text, names)]
    if assignment_lists and not any(map(str.strip, assignment_lists)):
        raise UnusableInput(
            f"{option('env')} {assignment_lists[0]!r} sets no variable",
            hint=f"give a variable, such as {option('env')} KEY=VALUE, or leave the option out",
        )
    environments = [
        {} if text is None else _assignments(text)
        for text in _filled_values(assignment_lists, "env", options, commands)
    ]
    positions = {str(index + 1): index for index in range(len(names))}
    positions |= {name: index for index, name in enumerate(names)}
    for text in options.environments:
        if text in assignment_lists:
            continue
        # Try the names of conditions first, because a name may contain a colon.
        prefixes = (name for name in names if text.startswith(f"{name}:"))
        condition_text = max(prefixes, key=len, default=text.partition(":")[0])
        key, equals, value = text[len(condition_text) + 1 :].partition("=")
        if not condition_text or not key or not equals:
            raise UnusableInput(
                f"{option('env')} {text!r} is not of the form WHICH:KEY=VALUE",
                hint=f"give a name or a position from 1 as WHICH, such as {option('env')} "
                "'2:LD_PRELOAD=lib.so'",
            )
        if condition_text not in positions:
            choices = ", ".join(f"{index} = {name}" for index, name in enumerate(names, start=1))
            raise UnusableInput(
                f"{option('env')} {text!r} names no condition: {condition_text!r}",
                hint=f"give one of these positions or names: {choices}",
            )
        environments[positions[condition_text]][key] = value
    return environments


def _assignments(text: str) -> dict[str, str]:
    """Return the variables of a list of assignments: ``KEY=VALUE KEY="A VALUE"``."""
    variables: dict[str, str] = {}
    for word in split_command(text, f"cannot split {option('env')}"):
        key, _, value = word.partition("=")
        if _ASSIGNMENT.match(word) is None:
            raise UnusableInput(
                f"{option('env')} {text!r}: {word!r} is not an assignment",
                hint=f"quote a value that has spaces: {option('env')} 'KEY=\"A VALUE\"'",
            )
        variables[key] = value
    return variables


_HOOK_KEYS = ("setup", "prepare", "conclude", "cleanup")


def _hooks_of_each(options: CompareOptions, commands: Sequence[_FilledCommand]) -> list[Hooks]:
    values_by_hook = (
        _filled_values(getattr(options, hook), hook, options, commands) for hook in _HOOK_KEYS
    )
    hooks = [Hooks(*values) for values in zip(*values_by_hook, strict=True)]
    return list(map(_with_setup_repeated, hooks)) if repeated_setup(options) else hooks


def repeated_setup(options: CompareOptions) -> str | None:
    """Return a parameter that is in ``--setup`` but in no command, or ``None``.

    Such a parameter has an effect only through the setup. Trials of different values alternate, so
    the setup then runs before each trial.
    """
    environments = [text for text in options.environments if _assigns(text, options.names)]
    trial_texts = [word for command in options.commands for word in _argument_texts(command)]
    trial_texts += [*environments, *options.prepare]
    return next(
        (
            key
            for key in options.parameters
            if _has_placeholder(options.setup, key) and not _has_placeholder(trial_texts, key)
        ),
        None,
    )


def _with_setup_repeated(hooks: Hooks) -> Hooks:
    """Return hooks in which the setup is the first part of the preparation of each trial."""
    if hooks.setup is None:
        return hooks
    prepare = hooks.setup
    if hooks.prepare is not None:
        prepare = f"({hooks.setup}\n) && ({hooks.prepare}\n)"
    return replace(hooks, setup=None, prepare=prepare)


def _filled_values(
    values: Sequence[str],
    option_name: str,
    options: CompareOptions,
    commands: Sequence[_FilledCommand],
) -> list[str | None]:
    """Return the values of `_values_for_each`, with values for the parameters."""
    texts = _values_for_each(values, option_name, options, commands)
    return [
        None if text is None else _fill_in(text, command.setting)
        for text, command in zip(texts, commands, strict=True)
    ]


def _values_for_each(
    values: Sequence[str], name: str, options: CompareOptions, commands: Sequence[_FilledCommand]
) -> list[str | None]:
    """Return a value of an option for each condition, from one value or one for each command."""
    if len(values) <= 1:
        return [*values] * len(commands) if values else [None] * len(commands)
    if len(values) == len(commands):
        return list(values)
    if len(values) == len(options.commands):
        return [values[command.index] for command in commands]
    raise UnusableInput(
        f"{option(name)} is given {len(values)} times for {len(commands)} conditions",
        hint=f"give {option(name)} once for all conditions, or {len(commands)} times",
    )


def _argument_vector(
    command: _FilledCommand,
    options: CompareOptions,
    native_programs: Path,
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    if options.shell not in (None, NO_SHELL):
        shell = split_command(options.shell)
        argv = [*shell, "-c", command.text] if shell and command.text.strip() else []
    elif isinstance(command.command, str):
        argv = split_command(command.command)
        if options.shell != NO_SHELL:
            _refuse_shell_syntax(command.command)
    else:
        argv = list(command.command)
    if not argv or not argv[0]:
        raise UnusableInput("a command is empty", hint="give a program and its arguments")
    if any("\0" in argument for argument in argv):
        raise UnusableInput(
            f"the command {command.command!r} contains a null byte",
            hint="leave the null byte out: no program can receive it",
        )
    layouts = options.layouts or 0
    return (layout_program(argv[0], native_programs, environment, layouts=layouts), *argv[1:])


_QUOTED_PART = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_OPERATOR = re.compile(r"\|\|?|&&?|\d*(>>?|<<?<?)&?\S*|&>>?\S*|\S*;")
"""Operator of a pipeline, a list of commands or a redirection."""
_WORD = re.compile(rf"(?:{_QUOTED_PART.pattern}|[^\s\"'\\])+", re.DOTALL)
_EXPANSION = re.compile(r"\$[A-Za-z_{(]|`|^~(/|$)")
"""A variable, the output of a command, or the home folder."""


def _refuse_shell_syntax(text: str) -> None:
    """Raise `UnusableInput` if an unquoted word of a command has a meaning only for a shell."""
    for word in _WORD.findall(text):
        unquoted = _QUOTED_PART.sub("x", word)
        if _SHELL_OPERATOR.fullmatch(unquoted) or _EXPANSION.search(unquoted):
            reason = "needs a shell"
        elif _matches_files(word, unquoted):
            reason = "is a pattern for file names here, which needs a shell"
        else:
            continue
        raise UnusableInput(
            f"`{word}` in {text!r} {reason}",
            hint="add -S to run commands through /bin/sh (in Python: ['sh', '-c', '…']), or quote "
            "the word",
        )


def _matches_files(word: str, unquoted: str) -> bool:
    """Return whether a word is a pattern that matches the name of a file."""
    if not glob.has_magic(unquoted):
        return False
    pattern = _QUOTED_PART.sub(lambda part: glob.escape("".join(shlex.split(part[0]))), word)
    return next(glob.iglob(pattern), None) is not None


def split_command(text: str, problem: str = "cannot split the command") -> list[str]:
    """Return the arguments of a command, split as in a POSIX shell.

    Raise `UnusableInput`, whose message begins with ``problem``, if a quote is open.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UnusableInput(
            f"{problem} {text!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash"
            if "quotation" in str(error)
            else "remove the backslash at the end, or double it",
        ) from error


SHELL_HINT = "check its spelling; for a shell built-in or a pipeline add -S"
"""Hint for a program that does not exist."""


def find_program(
    name: str, native_programs: Path, environment: Mapping[str, str], hint: str = SHELL_HINT
) -> str:
    """Return the absolute path of a program.

    Raise `UnusableInput` if the program cannot be executed or does not exist. ``hint`` is the hint
    for a program that does not exist.
    """
    names_folder = "/" in name
    if (own_program := own_file(name, native_programs)) is not None:
        return str(own_program)
    path = shutil.which(name, path=environment.get("PATH"))
    if path is not None:
        return os.path.abspath(path)
    if names_folder and os.path.isdir(name):
        raise UnusableInput(
            f"{name} is a folder, not a program", hint="give a program in that folder"
        )
    if names_folder and os.path.exists(name):
        raise UnusableInput(f"{name} cannot be executed", hint=f"chmod +x {shlex.quote(name)}")
    if name in PROGRAMS_OF_STUDIES:
        raise missing_studies_error(name)
    place_phrase = "" if names_folder else " on the PATH"
    raise UnusableInput(f"there is no program {name!r}{place_phrase}", hint=hint)


def layout_program(
    name: str,
    native_programs: Path,
    environment: Mapping[str, str],
    hint: str = SHELL_HINT,
    *,
    layouts: int,
) -> str:
    """Return the absolute path of a program; the path keeps ``{layout}`` if the name has it.

    Raise `UnusableInput` if the program of a layout does not exist, or cannot be executed.
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
    """Return the values of each parameter, from the options ``-L``, ``-P`` and ``-D``.

    Raise `UnusableInput` if a parameter is given twice, or if a range is wrong.
    """
    values = [(name, parameter_list(text)) for name, text in lists]
    values += [(name, parameter_scan(low, high, step)) for name, low, high in scans]
    for name, count in Counter(name for name, _ in values).most_common(1):
        if count > 1:
            raise UnusableInput(
                f"the parameter {name} is given twice", hint="give all its values in one option"
            )
    return dict(values)


def parameter_list(text: str) -> tuple[str, ...]:
    r"""Return the values of ``-L NAME VALUES``, split at commas; ``\,`` is a comma."""
    values = [""]
    for token in re.findall(r"\\[,\\]|.", text, re.DOTALL):
        if token == ",":
            values.append("")
        else:
            # An escaped character loses its backslash.
            values[-1] += token[-1]
    return tuple(values)


_MAX_EXACT_COUNT = 10**15
"""Maximum number of values that an error message gives exactly."""


def parameter_scan(low: str, high: str, step: str | None) -> tuple[str, ...]:
    """Return the values of ``-P NAME MIN MAX`` with ``-D STEP``, in decimal arithmetic.

    Raise `UnusableInput` if a bound or the step is not a number, if MIN is above MAX, or if there
    are too many values.
    """
    try:
        start, end = Decimal(low), Decimal(high)
        stride = Decimal(step) if step is not None else Decimal(1)
    except InvalidOperation as error:
        raise UnusableInput(
            f"{option('parameter_scan', low)} {high} with step {step or 1}: a bound or the step is "
            "not a number",
            hint="give numbers, such as -P threads 1 8 -D 1",
        ) from error
    if not (start.is_finite() and end.is_finite() and stride.is_finite()) or stride <= 0:
        raise UnusableInput(
            f"{option('parameter_scan', low)} {high} needs finite numbers and a step above zero, "
            f"not {step or 1}",
            hint="give numbers such as -P threads 1 8 -D 0.5",
        )
    if start > end:
        raise UnusableInput(
            f"{option('parameter_scan')} begins at {low}, above its end {high}",
            hint="give the smaller number first",
        )
    try:
        steps = (end - start) / stride
    except ArithmeticError:
        # The quotient is too large for a `Decimal`.
        steps = Decimal("Infinity")
    if steps >= MAX_CONDITIONS:
        # A number with thousands of digits cannot be printed.
        count = int(steps) + 1 if steps < _MAX_EXACT_COUNT else f"{_MAX_EXACT_COUNT} or more"
        raise UnusableInput(
            f"{option('parameter_scan')} makes {count} values, more than {MAX_CONDITIONS}",
            hint="give a larger step with -D",
        )
    return tuple(str(start + stride * index) for index in range(int(steps) + 1))


_PLAIN_PATH = re.compile(r"[\w@%+=:,./ -]*")
"""Letters of any language, digits, and characters without a meaning for a shell."""


def refuse_in_shell_line(line: str, paths: Mapping[str, str], hint: str) -> None:
    """Refuse paths with characters that a shell would interpret.

    ``paths`` has the path for each name that the line may contain in braces. Equipoise does not
    quote such a path, because the right quotes depend on the text around it.

    Raise `UnusableInput` if the line uses such a path.
    """
    for name, path in paths.items():
        if "{" + name + "}" in line and _PLAIN_PATH.fullmatch(path) is None:
            raise UnusableInput(
                f"{{{name}}} stands for {path}, which has characters that a shell would interpret",
                hint=hint,
            )
