"""Every public name of equipoise_matching has an example in its docstring, and the examples run."""

from __future__ import annotations

import pytest

import equipoise_matching
from equipoise_matching import tables
from tests.docs.docstring_examples import examples_of, failure_of

EXAMPLES = {
    f"{module.__name__}.{name}": test
    for module in (equipoise_matching, tables)
    for name, test in examples_of(module).items()
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_of_a_public_name_print_their_output(name: str) -> None:
    assert failure_of(EXAMPLES[name]) == ""


def test_every_public_name_has_at_least_one_example() -> None:
    assert [name for name, test in EXAMPLES.items() if not test.examples] == []


def test_an_example_with_another_output_fails() -> None:
    def double(number: int) -> int:
        """Return twice the number.

        >>> double(2)
        5
        """
        return 2 * number

    module = type(pytest)("module")
    module.__dict__.update(__all__=["double"], double=double)
    assert "Expected:\n    5\nGot:\n    4" in failure_of(examples_of(module)["double"])
