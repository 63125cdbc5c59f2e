"""``eq.match`` and its kin: the functions of `equipoise_matching`, with errors of this package."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.matching import MODULE_OF_FUNCTION, require_matching
from equipoise.model.errors import UserError
from equipoise_matching import UnusableInput, genoud, tables

AGE = np.arange(40.0)
PEOPLE: dict[str, Any] = {"wage": 3 * AGE + 10 * (AGE % 2), "treat": AGE % 2, "age": AGE}
WHOSE = ("wage", "treat", ["age"])


def test_functions_of_the_package_give_the_same_through_the_laboratory() -> None:
    assert eq.match(PEOPLE, *WHOSE).estimate == tables.match(PEOPLE, *WHOSE).estimate
    balance = eq.match_balance(PEOPLE, "treat", ["age"], seed=1)
    assert str(balance) == str(tables.match_balance(PEOPLE, "treat", ["age"], seed=1))
    assert eq.genoud(_bowl, 1, seed=1).value == genoud(_bowl, 1, seed=1).value
    for name in MODULE_OF_FUNCTION:
        assert (
            getattr(eq, name).__doc__
            == getattr(require_matching(MODULE_OF_FUNCTION[name]), name).__doc__
        )


def _bowl(point: Any) -> float:
    return float(point[0] ** 2)


def test_an_error_of_a_function_that_is_handed_on_is_one_of_equipoise() -> None:
    with pytest.raises(eq.EquipoiseError, match="no column salary") as here:
        eq.match(PEOPLE, "salary", "treat", ["age"])
    with pytest.raises(UnusableInput) as there:
        tables.match(PEOPLE, "salary", "treat", ["age"])
    assert not isinstance(there.value, eq.EquipoiseError)
    assert isinstance(there.value, UserError)
    assert (here.value.what, here.value.hint) == (there.value.what, there.value.hint)


def test_an_argument_that_is_unknown_is_a_type_error_as_well() -> None:
    unknown: dict[str, Any] = {"distance": "glm"}
    with pytest.raises(TypeError, match="there is no argument distance=") as refused:
        eq.match(PEOPLE, *WHOSE, **unknown)
    assert isinstance(refused.value, eq.EquipoiseError)


def test_the_family_is_listed_and_loads_nothing_before_it_is_used() -> None:
    code = (
        "import sys, equipoise as eq; print(set(eq.__all__) <= set(dir(eq)), "
        "{'numpy', 'rich', 'msgspec', 'narwhals', 'pandas'} & set(sys.modules), "
        "callable(eq.match) and callable(eq.observe) and callable(eq.gen_match))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(" ", 1) == ["True", "set() True\n"]
    family = {"match", "match_balance", "gen_match", "observe", "compare", "run", "show"}
    assert family <= {name for name in dir(eq) if not name.startswith("__")} == {*eq.__all__}
