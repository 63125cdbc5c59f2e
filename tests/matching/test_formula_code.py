"""A formula computes columns; no program, file or module can be reached from it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from equipoise.matching.formula_code import columns_in
from equipoise.matching.frames import covariates_of
from equipoise.model.errors import UnusableInput

PEOPLE = pd.DataFrame(
    {
        "treat": [0, 1, 0, 1],
        "x": [1.0, 2.0, 3.0, 5.0],
        "a b": [1.0, 2.0, 2.0, 9.0],
        "kind": ["it's", "b", "c", "b"],
        "re.74": [3.0, 1.0, 2.0, 2.0],
        "__import__('os').system('touch made')": [1.0, 2.0, 4.0, 3.0],
    }
)
CODE = (
    "I(__import__('os').system('touch made') * x)",
    "I(np.testing._private.utils.os.system('touch made') * x)",
    "np.save('made', x)",
    "np.fromfile('/etc/passwd')",
    "x.to_csv('made')",
    "{open('made', 'w') or x}",
    "eval('x')",
    "I(x.__class__.__init__.__globals__)",
    "I([one for one in x])",
    "I((lambda: x)())",
    "I(f'{x}')",
    "x[0]",
    "np.vectorize(print)(x)",
    "contr._x(x)",
    "C(kind, \"' + __import__('os').system('touch made') + '\")",
    "C(kind, levels=['\\\\'])",
)
ARITHMETIC = (
    "x",
    "I(x**2)",
    "{x - 1}",
    "I(`a b` * x > 2)",
    "np.log1p(x)",
    "np.where(x > 2, x, 0)",
    "log(x)",
    "re.74",
    "`re.74`:x",
    "I(`re.74` / 1000)",
    "poly(x, degree=2)",
    "bs(x, df=4)",
    "scale(x)",
    "C(kind)",
    "C(kind, contr.treatment('b'))",
    "C(kind, contr.sum)",
    "Q('a b')",
    "`__import__('os').system('touch made')`",
)


@pytest.mark.parametrize("term", CODE)
def test_other_code_is_refused_before_it_runs(
    term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnusableInput, match="is code that no formula needs") as refusal:
        covariates_of(f"treat ~ x + {term}", PEOPLE)
    assert refusal.value.mend is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("term", ARITHMETIC)
def test_arithmetic_transforms_and_functions_of_elements_are_computed(term: str) -> None:
    assert len(covariates_of(f"treat ~ {term}", PEOPLE).names) >= 1


def test_a_formula_names_its_columns_whole_and_once() -> None:
    formula = (
        "treat ~ re.74 + poly(x, degree=2):`a b` + I(`re.74`**2) + Q('kind') + C(kind, contr.sum)"
    )
    assert columns_in(formula) == ("treat", "re.74", "x", "a b", "kind")


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(UnusableInput, match="no column age.then"):
        covariates_of("treat ~ x + scale(`age.then`)", PEOPLE)
