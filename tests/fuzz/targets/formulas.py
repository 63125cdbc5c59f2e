"""Formulas of ``equipoise match`` and ``balance``, over a small table."""

from __future__ import annotations

import functools
import importlib
import random
from pathlib import Path
from typing import Any

import numpy as np

from equipoise_matching.matching.frames import covariates_of
from tests.fuzz.case import Case, Target, WrongResult
from tests.fuzz.mutators import any_number, any_text, mutated_bytes

COLUMNS = ("age", "educ", "word", "a.b", "two words", "big", "flag", "I", "constant")
_OPERATORS = ("+", "+", "+", ":", "*", "/", "**", "-", "|", "~", "%in%", "^", "==", "<", "and", ",")
_PYTHON = (
    *("__import__('os').system('id')", "np.load", "open", "eval", "().__class__", "lambda: 0"),
    *("[x for x in age]", "age.values.tofile('x')", "'a' * 9", "True", "None", "...", "1j", "b''"),
    *("contr.treatment", "contr.poly", "np.__dict__", "f'{age}'", "{1: 2}", "age[0]", "np.e"),
)
_SAMPLES = (
    b"treat ~ age + I(age**2) + age:educ",
    b"treat ~ age*word + bs(educ, df=4) + scale(age)",
    b"treat ~ C(word, contr.treatment) + poly(age, 2) + np.log1p(educ) + `two words`",
    b"treat ~ (age + educ + word)**2 - 1 + Q('a.b')",
)


@functools.cache
def _table() -> dict[str, Any]:
    generator = np.random.default_rng(5)
    rows = 40
    return {
        "treat": np.arange(rows) % 2,
        "age": generator.integers(18, 60, rows),
        "educ": generator.normal(12, 2, rows),
        "word": np.array([f"w{place % 3}" for place in range(rows)], dtype=object),
        "a.b": generator.normal(0, 1, rows),
        "two words": generator.normal(0, 1, rows),
        "big": generator.normal(0, 1, rows) * 1e300,
        "flag": generator.normal(0, 1, rows) > 0,
        "I": np.arange(rows, dtype=np.int8),
        "constant": np.ones(rows),
    }


@functools.cache
def _functions() -> tuple[str, ...]:
    transforms = importlib.import_module("formulaic.transforms").TRANSFORMS
    of_numpy = (
        "log",
        "exp",
        "sqrt",
        "power",
        "clip",
        "round",
        "where",
        "tile",
        "zeros",
        "vectorize",
    )
    return (*transforms, *(f"np.{name}" for name in of_numpy), "print", "exec")


def _make(generator: random.Random) -> Case:
    if generator.random() < 0.3:
        content = mutated_bytes(generator, generator.choice(_SAMPLES), _SAMPLES)
    else:
        left = "treat" if generator.random() < 0.9 else _term(generator, 1)
        content = f"{left} ~ {_term(generator, generator.choice((1, 2, 3, 4)))}".encode(
            "utf-8", "replace"
        )
    return Case("formula", content)


def _term(generator: random.Random, depth: int) -> str:
    if depth == 0:
        return _leaf(generator)
    match generator.randrange(6):
        case 0 | 1:
            operator = generator.choice(_OPERATORS)
            return f"{_term(generator, depth - 1)} {operator} {_term(generator, depth - 1)}"
        case 2:
            return f"({_term(generator, depth - 1)})"
        case 3 | 4:
            arguments = [_term(generator, depth - 1)]
            if generator.random() < 0.4:
                arguments.append(_keyword(generator))
            return f"{generator.choice(_functions())}({', '.join(arguments)})"
        case _:
            return _leaf(generator)


def _keyword(generator: random.Random) -> str:
    name = generator.choice(("df=", "degree=", "knots=", "center=", "base=", "", "levels=", "raw="))
    return name + generator.choice(
        (str(any_number(generator)), "4", "3", "[20, 30]", "age", "True")
    )


def _leaf(generator: random.Random) -> str:
    match generator.randrange(10):
        case 0:
            return str(any_number(generator))
        case 1:
            return generator.choice(_PYTHON)
        case 2:
            return repr(any_text(generator))
        case 3:
            return f"`{generator.choice((*COLUMNS, any_text(generator)))}`"
        case _:
            return generator.choice(COLUMNS[:3])


def _run(case: Case, folder: Path) -> None:
    formula = case.content.decode("utf-8", "replace")
    found = covariates_of(formula, _table())
    rows = len(_table()["treat"])
    if found.matrix.shape != (rows, len(found.names)) or len(found.treated) != rows:
        raise WrongResult(f"a matrix of {found.matrix.shape} for {len(found.names)} names")
    if not np.isfinite(found.matrix).all():
        raise WrongResult("the matrix is not finite")


TARGET = Target("formulas", "formulas (`match`, `balance`, `genmatch`)", 13, _make, _run)
