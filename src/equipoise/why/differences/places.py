"""Where stacks end: by which door of the kernel, in which function of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from equipoise.why.differences.result import Function
from equipoise.why.evidence.stacks import Stacks

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one stack ends, and what was sampled there."""

    door: str | None
    """By which the kernel was entered; ``None`` if it was not."""
    functions: tuple[Function, ...]
    """Of the program, the outermost first."""
    weight: float

    @property
    def function(self) -> Function | None:
        """That which ran, or called the kernel; ``None`` if none was seen."""
        return self.functions[-1] if self.functions else None


def places(stacks: Stacks) -> tuple[Place, ...]:
    """Where each of the stacks ends."""
    # Each function is made once: a profile has many stacks of few functions.
    functions = [
        None if frame.kind in {"kernel", "size"} else Function(frame.name, frame.module, frame.kind)
        for frame in stacks.frames
    ]
    doors = [frame.name if frame.kind == "kernel" else None for frame in stacks.frames]
    return tuple(
        Place(
            doors[stack.frames[-1]] if stack.frames else None,
            tuple(one for at in stack.frames if (one := functions[at]) is not None),
            stack.weight,
        )
        for stack in stacks.stacks
    )


def weights(found: Iterable[Place], keys: Callable[[Place], Iterable[Key]]) -> Mapping[Key, float]:
    """The weight of the places by what each belongs to, once for each of its different keys."""
    sums: dict[Key, float] = defaultdict(float)
    for place in found:
        # No set: its order is another one in each process, and ties are told in this order.
        for key in dict.fromkeys(keys(place)):
            sums[key] += place.weight
    return sums
