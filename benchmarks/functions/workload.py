"""Functions for the benchmark: two that are equal, and one that does a little more work."""

from __future__ import annotations

from collections.abc import Callable

ROUNDS = 400
MORE = 1.03
"""Work of `more` over that of `one`, in rounds of the loop."""

BODY = """
def {name}():
    total = 0
    for number in range({rounds}):
        total += number & 7
    return total
"""


def function(name: str, rounds: int = ROUNDS) -> Callable[[], int]:
    """A function that goes round its loop so often."""
    names: dict[str, Callable[[], int]] = {}
    exec(compile(BODY.format(name=name, rounds=rounds), f"<{name}>", "exec"), names)
    return names[name]


def module(rounds_of_second: int = ROUNDS) -> str:
    """A module with both functions, as a user has them in a file."""
    return BODY.format(name="one", rounds=ROUNDS) + BODY.format(
        name="other", rounds=rounds_of_second
    )
