"""Layouts as a random level of a comparison: each block of a campaign runs in one of K.

A layout is an enlarged environment, a longer path by which the program is executed, addresses that
the kernel draws or keeps, and, where a command has ``{layout}`` in it, an executable of its own
(``equipoise layouts``). All conditions of a block have the same, so that the ratio within a block
is one of that layout.
"""

from __future__ import annotations

import os
from dataclasses import replace

from equipoise.design.coin import Addresses, draw_layouts
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan

BLOCKS_IN_EACH = 2
"""The least from which the variance between layouts can be told from that within."""


def with_layouts(plan: Plan, count: int, addresses: Addresses = "drawn") -> Plan:
    """The plan over so many layouts, drawn by its coin.

    Unless a least number of blocks was asked for, it is so many that each layout has two.

    Raises
    ------
    UnusableInput
        A condition has a server, or the blocks that it may have are too few.
    """
    served = next((one.name for one in plan.conditions if one.server is not None), None)
    if served is not None:
        raise UnusableInput(
            f"{served} is a server: layouts are drawn of programs that run for one trial",
            hint="leave out the layouts; the size of its environment is drawn all the same",
        )
    least = BLOCKS_IN_EACH * count
    stopping = plan.stopping
    if stopping.blocks < least:
        raise UnusableInput(
            f"{stopping.blocks} blocks are too few for {count} layouts",
            hint=f"allow --blocks {least}: at least two for each layout",
        )
    if not stopping.min_blocks_explicit:
        stopping = replace(stopping, min_blocks=max(stopping.min_blocks, least))
    return replace(plan, stopping=stopping, layouts=draw_layouts(plan.seed, count, addresses))


def longer_path(path: str, more: int) -> str:
    """The same file by a path that is so many bytes longer.

    Slashes in a row count as one (POSIX.1-2017, 4.13), so no folder and no link is needed. The
    kernel puts the path on the new stack, above the environment; the arguments stay what they are.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return f"{folder.rstrip('/')}{'/' * (1 + more)}{name}"
