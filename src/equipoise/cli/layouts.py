"""``equipoise layouts``: one program in many layouts, by relinking."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from equipoise.design.layouts import parse_compilation
from equipoise.measure.builds import host_linker, make_layouts

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
    as docs/nondeterminism.md shows.
    """
    compilation = parse_compilation(line)
    where = Path(f"{compilation.output}.layouts") if folder is None else folder
    linker = host_linker()
    made = make_layouts(compilation, where, range(seed, seed + count), linker)
    for program in made.programs:
        click.echo(str(program))
    click.echo(f"{made.different} different layouts of {count}: {_HOW[linker]}", err=True)
    if linker == "objects":
        click.echo("  hint: apt install lld", err=True)
    if made.different < count:
        click.echo(
            f"warning: {count - made.different} layouts are the same as others: there is too "
            "little to shuffle",
            err=True,
        )
    if made.different < 2:
        click.echo(f"  hint: split {shlex.join(compilation.sources)} into functions", err=True)
    return 0
