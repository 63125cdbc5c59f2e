"""The command line as it was typed, which a report repeats."""

from __future__ import annotations

from typing import Any

import click

from equipoise.design.command_line import shell_line

_KEY = "equipoise.arguments"
OUTPUTS = frozenset({"report_file", "figures", "json_file", "plot_file", "quiet", "color"})
"""Options that change no number."""


class Remembering(click.Command):
    """A command that remembers its arguments as the user typed them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the arguments, then parse them as usual."""
        ctx.meta[_KEY] = tuple(args)
        return super().parse_args(ctx, args)


def typed_arguments() -> tuple[str, ...]:
    """Return the arguments of the running command as the user typed them."""
    typed: tuple[str, ...] = click.get_current_context().meta[_KEY]
    return typed


def command_line(seed: int | None) -> str:
    """Return `typed_command` as a line for a shell."""
    return shell_line(typed_command(seed))


def typed_command(seed: int | None) -> tuple[str, ...]:
    """Return the words of the running command, without where its outputs go.

    Parameters
    ----------
    seed
        Seed that the command drew, if none was given.
    """
    context = click.get_current_context()
    parser = context.command.make_parser(context)
    values, _, order = parser.parse_args(list(typed_arguments()))
    options: list[str] = []
    arguments: list[str] = []
    for parameter in dict.fromkeys(order):
        value: Any = values[str(parameter.name)]
        if parameter.name in OUTPUTS:
            continue
        if isinstance(parameter, click.Argument):
            arguments.append(str(value))
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            options.append(parameter.opts[0])
        else:
            for one in value if parameter.multiple else (value,):
                options += [parameter.opts[0], str(one)]
    if seed is not None and "--seed" not in options:
        options += ["--seed", str(seed)]
    command = ["equipoise", str(context.info_name)]
    # Behind two hyphens, an argument that begins with a hyphen is no option.
    if any(argument.startswith("-") for argument in arguments):
        return (*command, *options, "--", *arguments)
    return (*command, *arguments, *options)
