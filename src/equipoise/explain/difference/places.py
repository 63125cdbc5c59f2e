"""Where a stack ends: by which door of the kernel, in which function of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from equipoise.explain.difference.result import Function
from equipoise.explain.evidence.stacks import Frame, Stacks

Key = TypeVar("Key")


def door(frames: Sequence[Frame]) -> str | None:
    """By which door the kernel was entered; ``None`` if it was not. The outermost frame first."""
    return frames[-1].name if frames and frames[-1].kind == "kernel" else None


def functions_inwards(frames: Sequence[Frame]) -> tuple[Function, ...]:
    """The functions of the program in a stack, the outermost first."""
    return tuple(
        Function(frame.name, frame.module, frame.kind)
        for frame in frames
        if frame.kind not in {"kernel", "size"}
    )


def innermost_function(frames: Sequence[Frame]) -> Function | None:
    """The function of the program that ran, or called the kernel; ``None`` if none was seen."""
    functions = functions_inwards(frames)
    return functions[-1] if functions else None


def weights(
    stacks: Stacks, keys: Callable[[Sequence[Frame]], Iterator[Key]]
) -> Mapping[Key, float]:
    """The weight of the stacks by what each belongs to, once for each of its different keys."""
    sums: dict[Key, float] = defaultdict(float)
    for stack in stacks.stacks:
        frames = [stacks.frames[place] for place in stack.frames]
        for key in set(keys(frames)):
            sums[key] += stack.weight
    return sums
