"""``equipoise layouts``: link one program in many memory layouts.

A layout is the order in which the linker places functions in memory. It can change the speed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from equipoise.design.layouts import Compilation, parse_compilation
from equipoise.measure.builds import Layouts, host_linker, make_layouts

_LINKER_SENTENCES = {
    "lld": "lld shuffled the sections of every function",
    "mold": "mold shuffled the sections of every function",
    "objects": "only the order of the objects was shuffled, because lld and mold are missing",
}
"""Sentences on how the layouts were made, by the linker; ``objects`` means any other linker."""


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
    help="Seed of the first layout; the next layouts have the next numbers.",
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    show_default="the program's name with .layouts",
    help="Folder for objects and layouts.",
)
@click.argument("line", nargs=-1, required=True, metavar="-- CC …")
def command(count: int, seed: int, folder: Path | None, line: tuple[str, ...]) -> int:
    """Compile a program once and link it in K random layouts.

    A speed-up in one layout may be luck: compare over several layouts with `equipoise compare
    --layouts`, as docs/explanation/layouts.md shows.
    """
    compilation = parse_compilation(line)
    folder = folder or Path(f"{compilation.output}.layouts")
    layouts = make_layouts(compilation, folder, range(seed, seed + count), host_linker())
    for program in layouts.programs:
        click.echo(str(program))
    for sentence in _summary_lines(layouts, compilation):
        click.echo(sentence, err=True)
    return 0


def _summary_lines(layouts: Layouts, compilation: Compilation) -> Iterator[str]:
    distinct_count, count = layouts.distinct_count, len(layouts.programs)
    yield f"{distinct_count} different layouts of {count}: {_LINKER_SENTENCES[layouts.linker]}"
    if layouts.linker == "objects":
        yield "  hint: install lld, for example with apt install lld"
    if distinct_count < count:
        yield (
            f"warning: {count - distinct_count} layouts are the same as others: the program has "
            "too few functions or objects to shuffle"
        )
    if distinct_count < 2:
        yield f"  hint: split {shlex.join(compilation.sources)} into functions"
