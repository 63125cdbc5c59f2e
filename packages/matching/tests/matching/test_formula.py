"""A formula computes columns; no program, file or module can be reached from it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from equipoise_matching.matching.formula import columns_in
from equipoise_matching.matching.frames import covariates_of
from equipoise_matching.shared.errors import UnusableInput

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
    "I([value for value in x])",
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
    with pytest.raises(UnusableInput, match="is code that a formula may not contain") as refusal:
        covariates_of(f"treat ~ x + {term}", PEOPLE)
    assert refusal.value.hint is not None
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
    with pytest.raises(UnusableInput, match="no column age.gone"):
        covariates_of("treat ~ x + scale(`age.gone`)", PEOPLE)


TOO_LARGE = (
    "I(10**10**10)",
    "I(x + 10**10**10)",
    "I(x * (1 << 10**9))",
    "I(x * (5 << 3))",
    "I((2**62) * (2**62) * x)",
    "I(-9**9**9)",
    "bs(x, df=100000000)",
    "bs(x, 100000000)",
    "bs(x, degree=100000000)",
    "bs(x, df=np.add(100000, 100000000))",
    "cr(x, df=10**8)",
    "poly(x, degree=10**8)",
    "poly(x, 1000 * 1000)",
    "hashed(kind, levels=10**9)",
    "lag(x, k=10**12)",
    "I(kind * 10**9)",
    "I(`it is` * 1000000)",
    "I(Q('kind') * 10**9)",
    "np.multiply(kind, 10**9)",
    "I('text' * 10**9)",
    "I([0] * 10**9)",
    "I((1, 2) * 10**9)",
)


@pytest.mark.parametrize("term", TOO_LARGE)
def test_a_computation_beyond_any_machine_is_refused_before_it_starts(term: str) -> None:
    people = PEOPLE.assign(**{"it is": PEOPLE["kind"]})
    with pytest.raises(UnusableInput, match="larger than|computes with|not a number up to"):
        covariates_of(f"treat ~ x + {term}", people)


@pytest.mark.parametrize(
    "formula",
    [
        "treat ~ (x + kind)**1000000000",
        "treat ~ (x + kind)**99",
        "treat ~ " + "*".join(f"x{place}" for place in range(40)),
        "treat ~ " + ":".join(f"(x + x{place} + kind)" for place in range(40)),
    ],
)
def test_interactions_that_multiply_to_too_many_terms_are_refused(formula: str) -> None:
    with pytest.raises(UnusableInput, match="multiplies to more than 100000 terms"):
        columns_in(formula)


def test_categories_with_a_value_for_each_row_are_refused_before_their_table_is_made() -> None:
    rows = 40_000
    people = pd.DataFrame(
        {"treat": [0, 1] * (rows // 2), "who": [f"p{row}" for row in range(rows)]}
    ).assign(number=range(rows))
    for term in ("who", "C(number)", "who:C(number)"):
        with pytest.raises(UnusableInput, match="columns of 40000 rows"):
            covariates_of(f"treat ~ {term}", people)


@pytest.mark.parametrize(
    "term",
    [
        "I(x / 0)",
        "I(1 / 0)",
        "I(x * 10**18)",
        "I(1 % 0)",
        "I(" + "-" * 5000 + "x)",
        "(" * 3000 + "x" + ")" * 3000,
        "I(" + "9" * 5000 + ")",
        "x + " * 10000 + "x",
    ],
    ids=["x/0", "1/0", "large", "modulo", "minuses", "parentheses", "digits", "long"],
)
def test_no_formula_ends_in_anything_but_its_columns_or_one_line(term: str) -> None:
    try:
        assert covariates_of(f"treat ~ x + {term}", PEOPLE).names
    except UnusableInput as refusal:
        assert refusal.hint


@pytest.mark.parametrize(
    "term",
    [
        "I(x / 1e20)",
        "I(x * 2**10)",
        "I(x / (1e10 * 1e10))",
        "I((kind == 'b') * x)",
        "np.where(kind == 'b', x, 0)",
        "bs(x, df=3 + 1, degree=3)",
        "bs(x, df=4, lower_bound=0, upper_bound=20000)",
        "bs(x, knots=[1500, 2])",
        "(x + kind)**2",
        "hashed(kind, levels=4)",
    ],
)
def test_a_large_formula_that_can_be_computed_is_computed(term: str) -> None:
    people = PEOPLE.assign(x=[1.0, 2000.0, 3.0, 5.0])
    assert len(covariates_of(f"treat ~ {term}", people).names) >= 1
