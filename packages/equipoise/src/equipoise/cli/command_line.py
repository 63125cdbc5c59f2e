"""The command line of the running command, which plans and reports record."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

from equipoise.design.command_line import arguments_after_options, shell_line

_TYPED_ARGUMENTS = "equipoise.arguments"
"""Key of the typed arguments in the ``meta`` of click's context."""
OUTPUT_OPTIONS = frozenset(
    "report_file figures json_file plot_file markdown flame_graph firefox quiet verbose color "
    "show_env style time_unit_name export_json export_csv export_markdown export_asciidoc "
    "export_orgmode".split()
)
"""Options that change no measured number. A recorded command line leaves them out."""


class CommandRecorder(click.Command):
    """A command that records its arguments as the user typed them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record the arguments, then parse them."""
        ctx.meta[_TYPED_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


def typed_arguments() -> tuple[str, ...]:
    """Return the arguments of the running command as the user typed them."""
    arguments: tuple[str, ...] = click.get_current_context().meta[_TYPED_ARGUMENTS]
    return arguments


def typed_parameter_besides(allowed: Collection[str]) -> str | None:
    """Return the first typed parameter that is not allowed: an option, or ``a command``."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        is_typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_typed and name not in allowed:
            is_argument = isinstance(parameter, click.Argument)
            return "a command" if is_argument else max(parameter.opts, key=len)
    return None


def command_line(**replacements: object) -> str:
    """Return `typed_command` as a line for a shell."""
    return shell_line(typed_command(**replacements))


def typed_command(**replacements: object) -> tuple[str, ...]:
    """Return the arguments of the running command, without options for output files.

    ``replacements`` are values in place of the typed values, by parameter: for example, the seed
    that was drawn. The value ``None`` leaves the parameter out.
    """
    context = click.get_current_context()
    parser = context.command.make_parser(context)
    values, _, ordered_parameters = parser.parse_args(list(typed_arguments()))
    names = (str(parameter.name) for parameter in ordered_parameters)
    # `ordered_parameters` also has the parameters that the user did not type.
    typed_values = {
        name: values[name]
        for name in names
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    parameters = {parameter.name: parameter for parameter in context.command.params}
    options: list[str] = []
    arguments: list[str] = []
    # A command to measure (CMD after --) may have options, which click must not process.
    ends_with_command = False
    for name, value in (typed_values | replacements).items():
        parameter = parameters[name]
        if name in OUTPUT_OPTIONS or value is None:
            continue
        if isinstance(parameter, click.Argument):
            arguments += map(str, value if parameter.nargs == -1 else (value,))
            ends_with_command = parameter.type is click.UNPROCESSED
        else:
            options += _typed_option(parameter, value)
    command = ("equipoise", str(context.command.name))
    if ends_with_command and arguments:
        return (*command, *options, "--", *arguments)
    if any(argument.startswith("-") for argument in arguments):
        return (*command, *options, *arguments_after_options(arguments))
    return (*command, *arguments, *options)


def _typed_option(option: click.Parameter, value: Any) -> list[str]:
    name = max(option.opts, key=len)
    if isinstance(option, click.Option) and option.is_flag:
        return [name]
    arguments: list[str] = []
    for option_value in value if option.multiple else (value,):
        arguments += [name, *map(str, option_value if option.nargs > 1 else (option_value,))]
    return arguments
