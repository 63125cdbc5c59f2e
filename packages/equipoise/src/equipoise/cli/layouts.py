"""``equipoise layouts``: one program in many layouts, by relinking."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from equipoise.design.layouts import Compilation, parse_compilation
from equipoise.measure.builds import Layouts, host_linker, make_layouts

_HOW = {
    "lld": "lld shuffled the sections of every function",
    "mold": "mold shuffled the sections of every function",
    "objects": "only the order of the objects was shuffled, for want of lld or mold",
}


@click.command(
    "layouts",
    context_settings={"ignore_unknown_options": True},
    epilog="Example: equipoise layouts --count 12 -- cc -O2 main.c list.c -o program",
)
@click.option("--count", type=click.IntRange(2, 1000), default=12, show_default=True, metavar="K")
@click.option(
    "--seed",
    type=click.IntRange(min=1, max=2**31),
    default=1,
    show_default=True,
    metavar="N",
    help="The first layout's seed; the others follow.",
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    show_default="the program's name with .layouts",
    help="Where objects and layouts go.",
)
@click.argument("line", nargs=-1, required=True, metavar="-- CC …")
def command(count: int, seed: int, folder: Path | None, line: tuple[str, ...]) -> int:
    """Compile a program once and link it in K layouts, each drawn by a seed.

    A speed-up in one layout may be luck: compare over several with `equipoise compare --layouts`,
    as docs/explanation/layouts.md shows.
    """
    compilation = parse_compilation(line)
    folder = folder or Path(f"{compilation.output}.layouts")
    layouts = make_layouts(compilation, folder, range(seed, seed + count), host_linker())
    for program in layouts.programs:
        click.echo(str(program))
    for sentence in _remarks(layouts, compilation):
        click.echo(sentence, err=True)
    return 0


def _remarks(layouts: Layouts, compilation: Compilation) -> Iterator[str]:
    """Say how many layouts differ, and what would make more of them differ."""
    different, count = layouts.different, len(layouts.programs)
    yield f"{different} different layouts of {count}: {_HOW[layouts.linker]}"
    if layouts.linker == "objects":
        yield "  hint: apt install lld"
    if different < count:
        yield (
            f"warning: {count - different} layouts are the same as others: there is too little to "
            "shuffle"
        )
    if different < 2:
        yield f"  hint: split {shlex.join(compilation.sources)} into functions"
