"""Stacks with weights, as the native observer writes them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

Kind = Literal["user", "inlined", "python", "told", "kernel", "size", "unknown"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A function in a stack.

    A kernel's frame is the door by which it was entered: the name of a system call,
    ``page_fault``, ``interrupt``. ``told`` is named by what made the code while it ran, ``size``
    is how large an allocated block is.
    """

    name: str
    module: str
    """The file that it is in, without its folder."""
    kind: Kind


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, and what was sampled there."""

    frames: tuple[int, ...]
    """Places in ``Stacks.frames``, the outermost first."""
    samples: int
    weight: float


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stacks, each once, the heaviest first."""

    frames: tuple[Frame, ...]
    stacks: tuple[Stack, ...]

    def weight(self) -> float:
        """The sum of all weights."""
        return sum(stack.weight for stack in self.stacks)

    def of_frame(self) -> dict[Frame, float]:
        """The weight of each frame itself: of the stacks in which it is the innermost."""
        sums: dict[Frame, float] = defaultdict(float)
        for stack in self.stacks:
            if stack.frames:
                sums[self.frames[stack.frames[-1]]] += stack.weight
        return dict(sums)

    def below_frame(self) -> dict[Frame, float]:
        """The weight of each frame and of all that it called: of the stacks in which it is."""
        sums: dict[Frame, float] = defaultdict(float)
        for stack in self.stacks:
            for place in set(stack.frames):
                sums[self.frames[place]] += stack.weight
        return dict(sums)
