"""What a formula names and may compute: arithmetic, transforms, NumPy's functions of elements.

formulaic evaluates Python, and an attribute leads from NumPy to everything: a formula that came
with somebody's data could start a program or overwrite a file. What is not named here is refused.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Collection, Iterator

import numpy as np

from equipoise.matching.formula_size import MOST_LETTERS, MOST_TERMS, terms_of, too_large_code
from equipoise.model.errors import UnusableInput

_OF_NUMPY = frozenset({"clip", "round", "where"})
"""Beside its universal functions."""
_ARITHMETIC = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    *(ast.Name, ast.Load, ast.Tuple, ast.List, ast.keyword),
)
_HINT = (
    "it may have arithmetic, comparisons, formulaic's transforms (I, C, log, poly, bs, scale, …) "
    "and NumPy's functions of elements (np.log1p); compute anything else as a column first"
)
_SMALLER = (
    "arithmetic takes numbers up to 2**63, a transform at most 1000 columns; text can be compared "
    "or made categories of with C()"
)


def columns_in(formula: str, text: Collection[str] = ()) -> tuple[str, ...]:
    """The columns that a formula names, each once; nothing of it is evaluated.

    Parameters
    ----------
    text
        The columns that hold no numbers.

    formulaic's own list of them has only what stands before a dot in a name, and lacks what its
    transforms with a memory (``scale``, ``poly``) take.

    Raises
    ------
    UnusableInput
        It has any other Python in it, or asks for more than can be computed, which is named.
    """
    if len(formula) > MOST_LETTERS:
        raise UnusableInput(
            f"a formula of {len(formula)} letters; at most {MOST_LETTERS} are read",
            hint="match on a matrix of covariates instead",
        )
    parser, transforms, code = (
        importlib.import_module(f"formulaic.{name}")
        for name in ("parser", "transforms", "utils.code")
    )
    brought = frozenset(transforms.TRANSFORMS)
    found: list[str] = []
    read = parser.DefaultFormulaParser()
    terms = terms_of(read.get_ast(formula))
    if terms > MOST_TERMS:
        raise UnusableInput(
            f"formula '{formula}' multiplies to more than {MOST_TERMS} terms",
            hint="name the interactions that matter, such as age:educ",
        )
    for token in read.get_tokens(formula):
        if token.kind is token.Kind.NAME:
            found.append(token.token)
        elif token.kind is token.Kind.PYTHON:
            # Names in backquotes become names of Python, as formulaic has them become.
            names: dict[str, str] = {}
            evaluated = ast.parse(code.sanitize_variable_names(token.token, {}, names), mode="eval")
            for refused in _other_code(evaluated, brought - {"np"}):
                raise UnusableInput(
                    f"formula '{formula}': {ast.unparse(refused)} is code that no formula needs",
                    hint=_HINT,
                )
            hold_text = {*text, *(made for made, name in names.items() if name in text)}
            for what in too_large_code(evaluated, hold_text):
                raise UnusableInput(f"formula '{formula}': {what}", hint=_SMALLER)
            found += [names.get(name, name) for name in _columns(evaluated) if name not in brought]
    return tuple(dict.fromkeys(found))


def _columns(evaluated: ast.AST) -> Iterator[str]:
    for node in ast.walk(evaluated):
        match node:
            case ast.Name(id=name):
                yield name
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))]):
                yield name


def _other_code(node: ast.AST, transforms: frozenset[str]) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and _may_be_called(node.func, transforms):
        parts: list[ast.AST] = [*node.args, *node.keywords]
    elif isinstance(node, _ARITHMETIC):
        parts = list(ast.iter_child_nodes(node))
    else:
        parts = []
        if not _is_harmless(node):
            yield node
    for part in parts:
        yield from _other_code(part, transforms)


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        # formulaic writes a text into code of its own and minds no quotes in it.
        return not (isinstance(node.value, str) and set(node.value) & set("'\"\\"))
    return _attribute_of("contr", node) is not None


def _may_be_called(function: ast.AST, transforms: frozenset[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in transforms
    if _attribute_of("contr", function) is not None:
        return True
    name = _attribute_of("np", function)
    return name is not None and (name in _OF_NUMPY or isinstance(getattr(np, name, None), np.ufunc))


def _attribute_of(owner: str, node: ast.AST) -> str | None:
    """The public attribute that is taken of a name; ``None`` of anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=taken) if name == owner:
            return None if taken.startswith("_") else taken
    return None
