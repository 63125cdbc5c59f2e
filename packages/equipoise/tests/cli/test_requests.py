"""A command line becomes one typed request: every option has a field, and every field an option."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from equipoise.cli.main import command_names, module_of_command
from equipoise.cli.options.declaration import pass_request, read_request

WITHOUT_A_REQUEST = {"completion", "layouts"}
"""Commands whose function has a parameter for each of its few options."""


def command_of(name: str) -> click.Command:
    module = module_of_command(name)
    assert module is not None
    command = importlib.import_module(module).command
    assert isinstance(command, click.Command)
    return command


def request_class(name: str) -> type[Struct]:
    callback = command_of(name).callback
    assert callback is not None
    (request,) = inspect.signature(inspect.unwrap(callback), eval_str=True).parameters.values()
    kind = request.annotation
    assert isinstance(kind, type) and issubclass(kind, Struct)
    return kind


def leaves(kind: type[Struct]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each field that is not a group, and whether it needs an option."""
    for field in fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from leaves(field.type)
        else:
            is_required = field.default is NODEFAULT and field.default_factory is NODEFAULT
            yield field.name, is_required


@pytest.mark.parametrize("name", sorted({*command_names()} - WITHOUT_A_REQUEST))
def test_every_option_fills_a_field_and_every_required_field_has_an_option(name: str) -> None:
    options = {str(parameter.name) for parameter in command_of(name).params}
    named = dict(leaves(request_class(name)))
    assert options - named.keys() == set()
    assert {field for field, is_required in named.items() if is_required} - options == set()


class Group(Struct, frozen=True):
    """Two options that belong together."""

    quiet: bool = False
    level: int = 3


class Whole(Struct, frozen=True):
    """A request of a made-up command."""

    file: Path
    group: Group
    quiet: bool


def test_groups_are_filled_from_the_same_options_and_keep_their_defaults() -> None:
    request = read_request(Whole, {"file": Path("a"), "quiet": True})
    assert request == Whole(Path("a"), Group(quiet=True, level=3), quiet=True)


def test_a_command_takes_its_request() -> None:
    @pass_request(Whole)
    def shown(request: Whole) -> int:
        """Say how it is."""
        return request.group.level

    call: Callable[..., int] = shown
    assert call(file=Path("a"), quiet=False, level=7) == 7
    assert shown.__doc__ == "Say how it is."


def test_options_are_taken_apart_in_one_place() -> None:
    folder = Path(inspect.getfile(pass_request)).parents[1]
    taking = {
        file.name
        for file in folder.rglob("*.py")
        if re.search(r"\*\*(options|arguments): (Any|object)", file.read_text())
    }
    assert taking == {"declaration.py"}
