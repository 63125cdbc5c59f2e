"""From commands to conditions: words, parameters, names, environments, hooks and programs.

A command is split into words like in a POSIX shell, and run without a shell unless the user names
one. Parameters are in braces, as in hyperfine.
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
NO_SHELL = "none"
"""Name for no shell; shell syntax then gives plain arguments."""


class CompareOptions(Struct, frozen=True):
    """Options of `compare`; only the numbers are checked already."""

    commands: tuple[str | tuple[str, ...], ...]
    """Commands; a string is split into words, a tuple of words is used unchanged."""
    names: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    """Variables as ``WHICH:KEY=VALUE`` or, in hyperfine's form, ``KEY=VALUE …`` for all or for
    each."""
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of each name in braces in a command, its environment or a hook."""
    pairs: tuple[str, ...] = ()
    """Pairs as ``BASELINE:CANDIDATE``, positions from 1; by default they follow from the
    commands."""
    shell: str | None = None
    """Shell that runs the commands; by default there is no shell, and shell syntax is refused."""
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    input: str | None = None
    """File for standard input; ``null`` or ``None`` for nothing."""
    outputs: tuple[str, ...] = ()
    """Outputs: ``null``, ``inherit``, ``count`` or a file, for all commands or for each."""
    metrics: str | Sequence[str] = (PRIMARY_METRIC,)
    """Metrics, of which the first decides; a text is split at commas."""
    ignore_failure: bool = False
    ignored_exits: tuple[int, ...] = ()
    """Exit statuses that are ignored; empty for all."""
    washout: bool = False
    """Whether a washout runs before each counted trial."""
    control: bool = False
    """Whether the baseline runs a second time, to check the tool."""
    adjust: bool = False
    """Whether costs of two conditions are adjusted by covariates read before each trial."""
    what_varies: bool = False
    """Whether to find the sources of chance of one command instead of comparing several."""
    layouts: int | None = None
    """Number of memory layouts."""
    aslr: Addresses | None = None
    """Whether the kernel draws the addresses in the layouts."""
    ranking: bool | None = None
    """Whether to rank the conditions; by default if possible."""
    limits: CampaignLimits = CampaignLimits()


def conditions_of(options: CompareOptions, native_programs: Path) -> tuple[Condition, ...]:
    """Return a condition for each command and parameter value, the baseline first.

    The package's own programs in ``native_programs`` come before those on the PATH. Raise
    `UnusableInput` if there is no command, if a command is empty or has open quotes, if a program
    does not exist or cannot be executed, or if an option does not name a condition.
    """
    commands = list(_filled_commands(options))
    if not commands:
        raise UnusableInput(
            "compare needs a command",
            hint="give the baseline first: equipoise compare 'OLD COMMAND' 'NEW COMMAND'",
        )
    if len(commands) > MAX_CONDITIONS:
        raise UnusableInput(
            f"{len(commands)} conditions are more than the {MAX_CONDITIONS} of one block",
            hint="give fewer parameter values",
        )
    names = _names(options, commands)
    environments = _environments(options, names, commands)
    hooks = _hooks(options, commands)
    outputs = _outputs_of_each(options, commands)
    return tuple(
        Condition(
            name,
            _argument_vector(command, options, native_programs, environment),
            levels=command.levels,
            environment=environment,
            hooks=hook,
            output=output,
        )
        for name, command, environment, hook, output in zip(
            names, commands, environments, hooks, outputs, strict=True
        )
    )


def output_of_all(options: CompareOptions) -> Output:
    """Return the destination of the standard output of conditions without their own."""
    return output_from(options.outputs[0]) if len(options.outputs) == 1 else Output()


def output_from(kind: str) -> Output:
    """Return the destination; raise `UnusableInput` for a file in a missing folder."""
    match kind:
        case "null":
            return Output("discard")
        case "inherit" | "count":
            return Output(kind)
        case _:
            folder = Path(kind).resolve().parent
            if not folder.is_dir():
                raise UnusableInput(
                    f"{option('output', kind)}: there is no folder {folder}", hint="create it first"
                )
            return Output("file", os.path.abspath(kind))


def _outputs_of_each(
    options: CompareOptions, commands: Sequence[_FilledCommand]
) -> list[Output | None]:
    if len(options.outputs) < 2:
        return [None] * len(commands)
    kinds = _one_for_each(options.outputs, "output", options, commands)
    return [None if kind is None else output_from(kind) for kind in kinds]


def contrasts_of(
    options: CompareOptions, conditions: Sequence[Condition]
) -> tuple[Contrast, ...] | None:
    """Return the contrasts of commands with parameters; ``None`` if all are with the first.

    At each value, the candidates are compared with the first command at that value. A candidate
    without the parameter is compared with the first command at its first value. Raise
    `UnusableInput` if a chosen pair does not name two conditions.
    """
    if options.pairs:
        return tuple(_chosen_pair(pair, len(conditions)) for pair in options.pairs)
    factor = _command_factor(options)
    first = conditions[0].levels
    if factor not in first:
        return None
    settings = [_without_factor(condition.levels, factor) for condition in conditions]
    baselines = [
        place
        for place, condition in enumerate(conditions)
        if condition.levels[factor] == first[factor]
    ]
    contrasts: list[Contrast] = []
    for place, setting in enumerate(settings):
        if place in baselines:
            continue
        # A command may lack a parameter: only values that both have must be equal.
        agreeing = (
            baseline for baseline in baselines if _settings_agree(settings[baseline], setting)
        )
        baseline = next(agreeing, None)
        if baseline is None:
            return None
        contrasts.append(Contrast(baseline, place, factor, setting))
    return tuple(contrasts)


def _settings_agree(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> bool:
    """Return whether two settings have the same values of the parameters that both have."""
    return all(candidate[key] == baseline[key] for key in baseline.keys() & candidate.keys())


def _without_factor(levels: Mapping[str, str], factor: str) -> dict[str, str]:
    return {name: level for name, level in levels.items() if name != factor}


def _chosen_pair(pair: str, conditions: int) -> Contrast:
    if re.fullmatch("[0-9]+:[0-9]+", pair):
        baseline, candidate = (int(position) - 1 for position in pair.split(":"))
        if baseline != candidate and {baseline, candidate} <= set(range(conditions)):
            return Contrast(baseline, candidate)
    raise UnusableInput(
        f"{option('pair', pair)} does not name two of the {conditions} conditions",
        hint=f"give the positions of baseline and candidate, from 1: {option('pair', '1:2')}",
    )


def _command_factor(options: CompareOptions) -> str:
    """Return the name of the factor whose levels are the commands."""
    return COMMAND if COMMAND not in options.parameters else "program"


def with_control(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Add the control: the baseline under another name."""
    names = {condition.name for condition in conditions}
    name = f"{conditions[0].name} (control)"
    while name in names:
        name += "'"
    return (*conditions, replace(conditions[0], name=name))


class _FilledCommand(Struct, frozen=True):
    """One command with the values of its parameters."""

    words: str | tuple[str, ...]
    levels: dict[str, str]
    setting: dict[str, str]
    """Values of all parameters."""
    place: int
    """Index of the command among those of the user."""

    @property
    def text(self) -> str:
        return _text(self.words)


def _filled_commands(options: CompareOptions) -> Iterator[_FilledCommand]:
    """Yield each command with each combination of values that changes it."""
    texts_of_each = [
        (*_templates(command), *_surrounding_texts(options, place))
        for place, command in enumerate(options.commands)
    ]
    for key in options.parameters:
        if not any(_mentions(texts, key) for texts in texts_of_each):
            raise UnusableInput(
                f"no command mentions the parameter {{{key}}}",
                hint=f"write {{{key}}} where its value belongs, or leave the parameter out",
            )
    labels, factor = _labels(options), _command_factor(options)
    for place, (command, texts) in enumerate(zip(options.commands, texts_of_each, strict=True)):
        named = {factor: labels[place]} if options.parameters and len(labels) > 1 else {}
        seen: set[tuple[str, ...]] = set()
        for values in itertools.product(*options.parameters.values()):
            setting = dict(zip(options.parameters, values, strict=True))
            filled = tuple(_fill(text, setting) for text in texts)
            if filled in seen:
                continue
            seen.add(filled)
            used = {key: value for key, value in setting.items() if _mentions(texts, key)}
            parts = filled[: len(_templates(command))]
            yield _FilledCommand(
                parts[0] if isinstance(command, str) else parts, named | used, setting, place
            )


def _text(command: str | tuple[str, ...]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def _templates(command: str | tuple[str, ...]) -> tuple[str, ...]:
    return (command,) if isinstance(command, str) else command


def _surrounding_texts(options: CompareOptions, place: int) -> tuple[str, ...]:
    """Return the hooks and the environment of a command, before parameters are filled in."""
    lists = [getattr(options, option) for option in _HOOKS]
    lists.append([text for text in options.environments if _is_for_each(text, options.names)])
    number = len(options.commands)
    return tuple(
        lines[0] if len(lines) == 1 else lines[place]
        for lines in lists
        if len(lines) in (1, number)
    )


def _labels(options: CompareOptions) -> list[str]:
    """Return the label of each command, without the values of its parameters.

    It is the chosen name; else the program, if the programs of all commands differ; else the
    command itself.
    """
    texts = list(map(_text, options.commands))
    programs = [os.path.basename(text.split()[0]) if text.split() else "" for text in texts]
    short = programs if len(texts) > 1 and len(set(programs)) == len(texts) else texts
    chosen = options.names if len(options.names) <= len(texts) else ()
    labels = [*chosen, *short[len(chosen) :]]
    return labels if len(set(labels)) == len(labels) else texts


def _fill(text: str, setting: Mapping[str, str]) -> str:
    for key, value in setting.items():
        text = text.replace("{" + key + "}", value)
    return text


def _mentions(texts: Iterable[str], key: str) -> bool:
    return any("{" + key + "}" in text for text in texts)


def _names(options: CompareOptions, commands: Sequence[_FilledCommand]) -> list[str]:
    """Return a name for each command; a repeated name gets a number.

    With parameters, a name or label is used for all values of a command, with the value after it.
    """
    chosen = options.names
    if len(chosen) > len(commands):
        raise UnusableInput(
            f"{len(chosen)} names for {len(commands)} commands",
            hint=f"give at most one {option('names')} for each command",
        )
    texts = [command.text for command in commands]
    if options.parameters and len(chosen) <= len(options.commands):
        labels = _labels(options)
        texts = [_name_with_values(labels[command.place], command, options) for command in commands]
        chosen = ()
    names: dict[str, None] = {}
    for name in [*chosen, *texts[len(chosen) :]]:
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        candidates = itertools.chain([name], numbered)
        names[next(unique for unique in candidates if unique not in names)] = None
    return list(names)


def _name_with_values(label: str, command: _FilledCommand, options: CompareOptions) -> str:
    """Return a label with the values that it does not mention: ``sm, n=50000``."""
    values = (
        f", {key}={value}"
        for key, value in command.levels.items()
        if key in options.parameters and not _mentions((label,), key)
    )
    return _fill(label, command.setting) + "".join(values)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def _is_for_each(text: str, names: Sequence[str]) -> bool:
    """Return whether a value of ``--env`` has hyperfine's form, with assignments only."""
    if any(text.startswith(f"{name}:") for name in names):
        return False
    return not text.strip() or _ASSIGNMENT.match(text) is not None


def _environments(
    options: CompareOptions, names: Sequence[str], commands: Sequence[_FilledCommand]
) -> list[dict[str, str]]:
    for_each = [text for text in options.environments if _is_for_each(text, names)]
    if for_each and not any(map(str.strip, for_each)):
        raise UnusableInput(
            f"{option('env')} {for_each[0]!r} sets nothing",
            hint="leave it out; an empty value is only for a command next to others with variables",
        )
    environments = [
        {} if text is None else _assignments(text)
        for text in _filled_for_each(for_each, "env", options, commands)
    ]
    positions = {str(index + 1): index for index in range(len(names))}
    positions |= {name: index for index, name in enumerate(names)}
    for setting in options.environments:
        if setting in for_each:
            continue
        # A name may contain a colon, so known names are tried before the first colon.
        prefixes = (name for name in names if setting.startswith(f"{name}:"))
        which = max(prefixes, key=len, default=setting.partition(":")[0])
        key, equals, value = setting[len(which) + 1 :].partition("=")
        if not which or not key or not equals:
            raise UnusableInput(
                f"{option('env')} {setting!r} is not of the form WHICH:KEY=VALUE",
                hint=f"WHICH is a name or a position from 1, as in {option('env')} "
                "'2:LD_PRELOAD=lib.so'",
            )
        if which not in positions:
            known = ", ".join(f"{index} = {name}" for index, name in enumerate(names, start=1))
            raise UnusableInput(
                f"{option('env')} {setting!r} names no condition: {which!r}",
                hint=f"the conditions are {known}",
            )
        environments[positions[which]][key] = value
    return environments


def _assignments(text: str) -> dict[str, str]:
    """Return the variables of hyperfine's ``--env 'KEY=VALUE KEY="A VALUE"'``."""
    variables: dict[str, str] = {}
    for word in split_command(text, f"cannot split {option('env')}"):
        key, _, value = word.partition("=")
        if _ASSIGNMENT.match(word) is None:
            raise UnusableInput(
                f"{option('env')} {text!r}: {word!r} is not an assignment",
                hint=f"quote a value with spaces: {option('env')} 'KEY=\"A VALUE\"'",
            )
        variables[key] = value
    return variables


_HOOKS = ("setup", "prepare", "conclude", "cleanup")


def _hooks(options: CompareOptions, commands: Sequence[_FilledCommand]) -> list[Hooks]:
    columns = (_filled_for_each(getattr(options, hook), hook, options, commands) for hook in _HOOKS)
    hooks = [Hooks(*lines) for lines in zip(*columns, strict=True)]
    return [_with_setup_repeated(hook) for hook in hooks] if repeated_setup(options) else hooks


def repeated_setup(options: CompareOptions) -> str | None:
    """Return the parameter because of which ``--setup`` runs before each trial, or ``None``.

    Trials of all values alternate. A parameter in ``--setup`` but in no command acts only through
    the setup, which the setup of the next value would undo.
    """
    environments = [text for text in options.environments if _is_for_each(text, options.names)]
    used = [word for command in options.commands for word in _templates(command)]
    used += [*environments, *options.prepare]
    return next(
        (
            key
            for key in options.parameters
            if _mentions(options.setup, key) and not _mentions(used, key)
        ),
        None,
    )


def _with_setup_repeated(hooks: Hooks) -> Hooks:
    if hooks.setup is None:
        return hooks
    then = "" if hooks.prepare is None else f" && ({hooks.prepare}\n)"
    return replace(hooks, setup=None, prepare=f"({hooks.setup}\n){then}" if then else hooks.setup)


def _filled_for_each(
    lines: Sequence[str],
    name: str,
    options: CompareOptions,
    commands: Sequence[_FilledCommand],
) -> list[str | None]:
    templates = _one_for_each(lines, name, options, commands)
    return [
        None if text is None else _fill(text, command.setting)
        for text, command in zip(templates, commands, strict=True)
    ]


def _one_for_each(
    lines: Sequence[str],
    name: str,
    options: CompareOptions,
    commands: Sequence[_FilledCommand],
) -> list[str | None]:
    """Return each condition's line, from lines for all, for each command or each condition."""
    if len(lines) <= 1:
        return [*lines] * len(commands) if lines else [None] * len(commands)
    if len(lines) == len(commands):
        return list(lines)
    if len(lines) == len(options.commands):
        return [lines[command.place] for command in commands]
    raise UnusableInput(
        f"{len(lines)} times {option(name)} for {len(commands)} conditions",
        hint=f"give {option(name)} once for all conditions, or once for each",
    )


def _argument_vector(
    command: _FilledCommand,
    options: CompareOptions,
    native_programs: Path,
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    if options.shell not in (None, NO_SHELL):
        shell = split_command(options.shell)
        words = [*shell, "-c", command.text] if shell and command.text.strip() else []
    elif isinstance(command.words, str):
        words = split_command(command.words)
        if options.shell != NO_SHELL:
            _refuse_shell_syntax(command.words)
    else:
        words = list(command.words)
    if not words or not words[0]:
        raise UnusableInput("a command is empty", hint="write the program to run")
    if any("\0" in word for word in words):
        raise UnusableInput(
            f"the command {command.words!r} contains a null byte",
            hint="leave it out: no program can receive a null byte",
        )
    layouts = options.layouts or 0
    return (find_programs(words[0], native_programs, environment, layouts=layouts), *words[1:])


_QUOTED_PART = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_OPERATOR = re.compile(r"\|\|?|&&?|\d*(>>?|<<?<?)&?\S*|&>>?\S*|\S*;")
"""Words of a pipeline, a list or a redirection."""


_WORD = re.compile(rf"(?:{_QUOTED_PART.pattern}|[^\s\"'\\])+", re.DOTALL)
_EXPANSION = re.compile(r"\$[A-Za-z_{(]|`|^~(/|$)")
"""A variable, the output of a command, or the home folder."""


def _refuse_shell_syntax(text: str) -> None:
    """Refuse a command with a word that only a shell understands, unless it is quoted.

    A program would receive the word as an argument, and usually report a missing file.
    """
    for word in _WORD.findall(text):
        unquoted = _QUOTED_PART.sub("x", word)
        if _SHELL_OPERATOR.fullmatch(unquoted) or _EXPANSION.search(unquoted):
            reason = "needs a shell"
        elif _names_files(word, unquoted):
            reason = "is a pattern for file names here, which needs a shell"
        else:
            continue
        raise UnusableInput(
            f"`{word}` in {text!r} {reason}",
            hint="add -S to run commands through /bin/sh (in Python: ['sh', '-c', '…']), or quote "
            "the word",
        )


def _names_files(word: str, unquoted: str) -> bool:
    """Return whether a shell would replace a word by names of files.

    A shell leaves a pattern unchanged if no file matches.
    """
    if not glob.has_magic(unquoted):
        return False
    pattern = _QUOTED_PART.sub(lambda part: glob.escape("".join(shlex.split(part[0]))), word)
    return next(glob.iglob(pattern), None) is not None


def split_command(text: str, problem: str = "cannot split the command") -> list[str]:
    """Return the words of a command, split like in a POSIX shell.

    ``problem`` begins the message of the error, before the text. Raise `UnusableInput` if a quote
    is open.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UnusableInput(
            f"{problem} {text!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash",
        ) from error


SHELL_OPTION = "check its spelling; a shell built-in or a pipeline needs -S"


def find_program(
    name: str, native_programs: Path, environment: Mapping[str, str], hint: str = SHELL_OPTION
) -> str:
    """Return the path of a program; a missing program is bad input, not a failed trial.

    Raise `UnusableInput` if it cannot be executed or, with ``hint``, if it does not exist.
    """
    has_folder = "/" in name
    if (own := own_file(name, native_programs)) is not None:
        return str(own)
    path = shutil.which(name, path=environment.get("PATH"))
    if path is not None:
        return os.path.abspath(path)
    if has_folder and os.path.isdir(name):
        raise UnusableInput(f"{name} is a folder, not a program", hint="name a program in it")
    if has_folder and os.path.exists(name):
        raise UnusableInput(f"{name} cannot be executed", hint=f"chmod +x {shlex.quote(name)}")
    if name in PROGRAMS_OF_STUDIES:
        raise missing_studies_error(name)
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
    """Return the path of a program; ``{layout}`` in its name stays, for all layouts.

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
    r"""Return the values of ``-L NAME VALUES``, split at commas; ``\,`` is a comma."""
    values = [""]
    for token in re.findall(r"\\[,\\]|.", text, re.DOTALL):
        if token == ",":
            values.append("")
        else:
            # An escaped character loses its backslash.
            values[-1] += token[-1]
    return tuple(values)


_MAX_COUNT = 10**15


def parameter_scan(low: str, high: str, step: str | None) -> tuple[str, ...]:
    """Return the values of ``-P NAME MIN MAX`` with ``-D STEP``, in decimal arithmetic.

    Raise `UnusableInput` if a bound or the step is not a number, if the bounds cross, or if there
    are too many values.
    """
    try:
        start, end = Decimal(low), Decimal(high)
        stride = Decimal(step) if step is not None else Decimal(1)
    except InvalidOperation as error:
        raise UnusableInput(
            f"{option('parameter_scan', low)} {high} with step {step or 1} is not made of numbers",
            hint="as in -P threads 1 8 -D 1",
        ) from error
    if not (start.is_finite() and end.is_finite() and stride.is_finite()) or stride <= 0:
        raise UnusableInput(
            f"the step of {option('parameter_scan')} must be above zero", hint="as in -D 0.5"
        )
    if start > end:
        raise UnusableInput(
            f"{option('parameter_scan')} begins at {low}, above its end {high}",
            hint="exchange them",
        )
    try:
        steps = (end - start) / stride
    except ArithmeticError:
        # The quotient has more digits than the largest exponent allows.
        steps = Decimal("Infinity")
    if steps >= MAX_CONDITIONS:
        # A count with thousands of digits could not be printed.
        count = int(steps) + 1 if steps < _MAX_COUNT else f"{_MAX_COUNT} or more"
        raise UnusableInput(
            f"{option('parameter_scan')} makes {count} values, over {MAX_CONDITIONS}",
            hint="take a larger step with -D",
        )
    return tuple(str(start + stride * index) for index in range(int(steps) + 1))


_PLAIN_PATH = re.compile(r"[\w@%+=:,./ -]*")
"""Letters of any language, digits, and characters without a meaning for a shell."""


def refuse_in_shell_line(line: str, paths: Mapping[str, str], hint: str) -> None:
    """Refuse a path with characters that a shell would interpret, if a line uses it in braces.

    ``paths`` has the path for each name. The right quoting would depend on the context in the line,
    including substitutions within quotes, so Equipoise does not try. Raise `UnusableInput`, which
    names the path.
    """
    for name, path in paths.items():
        if "{" + name + "}" in line and _PLAIN_PATH.fullmatch(path) is None:
            raise UnusableInput(
                f"{{{name}}} stands for {path}, which has characters that a shell would interpret",
                hint=hint,
            )
