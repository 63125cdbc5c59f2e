"""The command line as it was typed: a plan keeps its words, and a report repeats them."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from equipoise.design.command_line import arguments_after_options, shell_line

_KEY = "equipoise.arguments"
OUTPUTS = frozenset(
    "report_file figures json_file plot_file markdown flame_graph firefox quiet verbose color "
    "show_env style time_unit_name export_json export_csv export_markdown export_asciidoc "
    "export_orgmode".split()
)
"""Options that change no number."""


class CommandRecorder(click.Command):
    """A command that records its arguments as the user typed them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the arguments, then parse them as usual."""
        ctx.meta[_KEY] = tuple(args)
        return super().parse_args(ctx, args)


def typed_arguments() -> tuple[str, ...]:
    """Return the arguments of the running command as the user typed them."""
    typed: tuple[str, ...] = click.get_current_context().meta[_KEY]
    return typed


def command_line(**settled: object) -> str:
    """Return `typed_command` as a line for a shell."""
    return shell_line(typed_command(**settled))


def typed_command(**settled: object) -> tuple[str, ...]:
    """Return the words of the running command, without where its outputs go.

    Parameters
    ----------
    settled
        Values that the command drew or looked up, such as a seed or a commit, by the names of the
        parameters. Each replaces the typed value; ``None`` leaves the parameter out.
    """
    context = click.get_current_context()
    parser = context.command.make_parser(context)
    values, _, order = parser.parse_args(list(typed_arguments()))
    names = (str(parameter.name) for parameter in order)
    # The order has every argument, typed or not.
    typed = {
        name: values[name]
        for name in names
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    parameters = {parameter.name: parameter for parameter in context.command.params}
    options: list[str] = []
    arguments: list[str] = []
    is_command = False
    for name, value in (typed | settled).items():
        parameter = parameters[name]
        if name in OUTPUTS or value is None:
            continue
        if isinstance(parameter, click.Argument):
            arguments += map(str, value if parameter.nargs == -1 else (value,))
            is_command = parameter.type is click.UNPROCESSED
        else:
            options += _typed_option(parameter, value)
    command = ("equipoise", str(context.command.name))
    if is_command and arguments:
        return (*command, *options, "--", *arguments)
    if any(argument.startswith("-") for argument in arguments):
        return (*command, *options, *arguments_after_options(arguments))
    return (*command, *arguments, *options)


def _typed_option(option: click.Parameter, value: Any) -> list[str]:
    """Return the words that give an option its value, or its values."""
    name = max(option.opts, key=len)
    if isinstance(option, click.Option) and option.is_flag:
        return [name]
    words: list[str] = []
    for part in value if option.multiple else (value,):
        words += [name, *map(str, part if option.nargs > 1 else (part,))]
    return words
