"""The columns that a formula names, and the code that it may contain.

formulaic evaluates Python, and an attribute leads from NumPy to everything: a formula that came
with somebody's data could start a program or overwrite a file. A formula may therefore use
arithmetic, transforms and NumPy's functions of elements, and nothing else. A few letters can also
ask for more than any machine has: each number that allocates (powers of constants, repeated text,
the columns of a spline, the terms that interactions multiply to) is read before anything is
evaluated.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeGuard

import numpy as np

from equipoise_matching.shared.errors import UnusableInput

MAX_FORMULA_LENGTH = 20_000
MAX_TERMS = 100_000
"""Terms before equal ones are put together; formulaic has to make all of them."""
MAX_COLUMNS_OF_A_TERM = 1000
MAX_CELLS = 1_000_000_000
"""Rows times columns of the table that a formula makes; 8 GB."""
_MAX_WHOLE_NUMBER = 2**63
"""NumPy has no larger whole number; Python's may have any length."""

_SIZED_TRANSFORMS = frozenset({"bs", "cc", "cr", "cs", "poly", "hashed", "lag"})
"""Transforms of which an argument is a number of columns or rows."""
_SIZES = frozenset({"df", "degree", "levels", "k"})
_MAX_POWER = 100
_PRODUCTS = {"*": "crossed", "/": "crossed", "%in%": "crossed", ":": "product", "in": "crossed"}

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: math.pow,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
"""Operators between constants; no others are allowed there."""

_NUMPY_FUNCTIONS = frozenset({"clip", "round", "where"})
"""Functions of NumPy that are allowed in addition to its universal functions."""
_ARITHMETIC = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    *(ast.Name, ast.Load, ast.Tuple, ast.List, ast.keyword),
)
_CODE_HINT = (
    "it may have arithmetic, comparisons, formulaic's transforms (I, C, log, poly, bs, scale, …) "
    "and NumPy's functions of elements (np.log1p); compute anything else as a column first"
)
_SIZE_HINT = (
    "arithmetic takes numbers up to 2**63, a transform at most 1000 columns; text can be compared "
    "or made categories of with C()"
)


def columns_in(formula: str, text: Collection[str] = ()) -> tuple[str, ...]:
    """Return the columns that a formula names, each once; evaluate nothing of it.

    formulaic's own list of them has only the part of a name before a dot, and lacks the arguments
    of its transforms with a memory (``scale``, ``poly``). ``text`` are the columns that hold no
    numbers.

    Raise `UnusableInput`, naming any other Python in the formula, or a part that is too large to be
    computed.
    """
    if len(formula) > MAX_FORMULA_LENGTH:
        raise UnusableInput(
            f"a formula of {len(formula)} letters; at most {MAX_FORMULA_LENGTH} are read",
            hint="match on a matrix of covariates instead",
        )
    parser, transforms, code = (
        importlib.import_module(f"formulaic.{name}")
        for name in ("parser", "transforms", "utils.code")
    )
    transform_names = frozenset(transforms.TRANSFORMS)
    columns: list[str] = []
    formula_parser = parser.DefaultFormulaParser()
    terms = terms_of(formula_parser.get_ast(formula))
    if terms > MAX_TERMS:
        raise UnusableInput(
            f"formula '{formula}' multiplies to more than {MAX_TERMS} terms",
            hint="name the interactions that matter, such as age:educ",
        )
    for token in formula_parser.get_tokens(formula):
        if token.kind is token.Kind.NAME:
            columns.append(token.token)
        elif token.kind is token.Kind.PYTHON:
            # Names in backquotes become names of Python, as formulaic has them become.
            names: dict[str, str] = {}
            evaluated = ast.parse(code.sanitize_variable_names(token.token, {}, names), mode="eval")
            for refused in _other_code(evaluated, transform_names - {"np"}):
                raise UnusableInput(
                    f"formula '{formula}': {ast.unparse(refused)} is code that a formula may not "
                    "contain",
                    hint=_CODE_HINT,
                )
            text_names = {*text, *(made for made, name in names.items() if name in text)}
            for problem in too_large_code(evaluated, text_names):
                raise UnusableInput(f"formula '{formula}': {problem}", hint=_SIZE_HINT)
            columns += [
                names.get(name, name) for name in _columns(evaluated) if name not in transform_names
            ]
    return tuple(dict.fromkeys(columns))


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
        # formulaic writes a text into its own code and does not escape quotes.
        return not (isinstance(node.value, str) and set(node.value) & set("'\"\\"))
    return _attribute_of("contr", node) is not None


def _may_be_called(function: ast.AST, transforms: frozenset[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in transforms
    if _attribute_of("contr", function) is not None:
        return True
    name = _attribute_of("np", function)
    return name is not None and (
        name in _NUMPY_FUNCTIONS or isinstance(getattr(np, name, None), np.ufunc)
    )


def _attribute_of(owner: str, node: ast.AST) -> str | None:
    """Return the public attribute that is read from a name; ``None`` of anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == owner:
            return None if attribute.startswith("_") else attribute
    return None


def too_large_code(code: ast.AST, text: Collection[str]) -> Iterator[str]:
    """Yield a sentence about each part of a piece of Python that is too large to be computed.

    To multiply a column of ``text`` by a number repeats its text.
    """
    for node in ast.walk(code):
        if isinstance(node, ast.BinOp):
            if any(_is_text(side, text) for side in (node.left, node.right)):
                yield f"{_short(node)} computes with text"
            elif _has_no_column(node) and _folded(node) is None:
                yield f"{_short(node)} is not arithmetic, or larger than any number of a table"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _too_large_transform(node, node.func.id)
        elif _is_of_numpy(node) and any(_is_text(argument, text) for argument in node.args):
            yield f"{_short(node)} computes with text"


def terms_of(tree: Any) -> float:
    """Bound the number of terms that the parsed formula of formulaic has to make."""
    if not hasattr(tree, "operator"):
        return 1.0
    counts = [terms_of(argument) for argument in tree.args]
    symbol = str(tree.operator.symbol)
    if symbol in ("**", "^"):
        power = _whole(str(getattr(tree.args[-1], "token", "")))
        return math.inf if power is None or power > _MAX_POWER else _power(counts[0], power)
    kind = _PRODUCTS.get(symbol)
    if kind is None or len(counts) < 2:
        return sum(counts)
    product = counts[0] * counts[1]
    return product if kind == "product" else product + counts[0] + counts[1]


def cells_of(
    terms: Iterable[Iterable[str]],
    text: Collection[str],
    levels: Callable[[str], int],
    rows: int,
) -> float:
    """Bound rows times columns of the table that a formula makes.

    Each term is the code of its factors. Columns of ``text`` become categories; ``levels`` returns
    the number of different values of a column.
    """
    return rows * sum(math.prod(_width(factor, text, levels) for factor in term) for term in terms)


def _width(factor: str, text: Collection[str], levels: Callable[[str], int]) -> float:
    """Return the number of columns of one factor, at most."""
    if factor in text:
        return levels(factor)
    try:
        code = ast.parse(factor, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return 1
    for node in ast.walk(code):
        match node:
            case ast.Call(func=ast.Name(id="C"), args=[ast.Name(id=name), *_]):
                return levels(name)
            case ast.Call(func=ast.Name(id=name)) if name in _SIZED_TRANSFORMS:
                return max([1.0, *(_folded(size) or 1.0 for size in _sizes(node))])
    return 1


def _too_large_transform(call: ast.Call, name: str) -> Iterator[str]:
    if name not in _SIZED_TRANSFORMS:
        return
    for size in _sizes(call):
        number = _folded(size)
        if number is None or not 0 <= number <= MAX_COLUMNS_OF_A_TERM:
            yield (
                f"in {_short(call)} {_short(size)} is not a number up to {MAX_COLUMNS_OF_A_TERM}"
            )


def _sizes(call: ast.Call) -> Iterator[ast.AST]:
    """Yield the arguments of a transform that are numbers of columns."""
    sizes = [value for value in call.args[1:] if not isinstance(value, (ast.List, ast.Tuple))]
    sizes += [keyword.value for keyword in call.keywords if keyword.arg in _SIZES]
    for size in sizes:
        # None, True, False or a text is not a number.
        if not (isinstance(size, ast.Constant) and isinstance(size.value, bool | str | None)):
            yield size


def _is_text(node: ast.AST, text: Collection[str]) -> bool:
    """Return whether a value may be text, or a list, which a product would repeat."""
    match node:
        case ast.Constant(value=str() | bytes()) | ast.List() | ast.Tuple():
            return True
        case ast.Name(id=name) | ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=name)]):
            return name in text
        case ast.Compare():
            return False
    parts = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return any(_is_text(part, text) for part in parts)


def _is_of_numpy(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a function of NumPy is called that computes; `where` only chooses."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name)):
            return name != "where"
    return False


def _has_no_column(node: ast.AST) -> bool:
    return not any(isinstance(part, (ast.Name, ast.Call)) for part in ast.walk(node))


def _folded(node: ast.AST) -> float | None:
    """Return the value of arithmetic with constants; ``None`` without one, or if it is too large.

    It is computed in floats: whole numbers could have any length.
    """
    match node:
        case ast.Constant(value=float() as value):
            return value
        case ast.Constant(value=int() as whole) if abs(whole) <= _MAX_WHOLE_NUMBER:
            return float(whole)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            inner = _folded(operand)
            return -inner if inner is not None and isinstance(sign, ast.USub) else inner
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            first, second = _folded(left), _folded(right)
            if first is not None and second is not None:
                with contextlib.suppress(ArithmeticError, ValueError):
                    value = _OPERATORS[type(sign)](first, second)
                    limit = sys.float_info.max if _has_float(node) else _MAX_WHOLE_NUMBER
                    return value if abs(value) <= limit else None
    return None


def _has_float(node: ast.AST) -> bool:
    constants = (part for part in ast.walk(node) if isinstance(part, ast.Constant))
    return any(isinstance(constant.value, float) for constant in constants)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else None


def _power(count: float, power: int) -> float:
    try:
        return math.pow(count, power)
    except OverflowError:
        return math.inf


def _short(node: ast.AST) -> str:
    code = ast.unparse(node)
    return code if len(code) <= 40 else f"{code[:40]}…"
