"""Find the columns in a formula, and refuse code that a formula may not contain.

The library formulaic evaluates the Python in a formula. So a formula from somebody else could start
a program or overwrite a file. A formula may therefore contain only arithmetic, formulaic's
transforms (functions such as ``C`` and ``poly``) and NumPy's elementwise functions. A short formula
could also need more memory than any machine has, so sizes are checked first. A term, such as
``age:educ``, is a product of factors.
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
"""Largest number of characters of a formula."""
MAX_TERMS = 100_000
"""Largest number of terms, counting equal terms, because formulaic makes all of them."""
MAX_COLUMNS_PER_FACTOR = 1000
"""Largest number of columns of one transform, such as a spline."""
MAX_CELLS = 1_000_000_000
"""Largest number of rows times columns that a formula makes: 8 GB."""
_MAX_INTEGER = 2**63
"""Limit of integers, as in NumPy. Integers of Python have no limit."""

_SIZED_TRANSFORMS = frozenset({"bs", "cc", "cr", "cs", "poly", "hashed", "lag"})
"""Transforms with an argument that is a number of columns or rows."""
_SIZE_ARGUMENTS = frozenset({"df", "degree", "levels", "k"})
"""Keywords of arguments that are a number of columns or rows."""
_MAX_POWER = 100
"""Largest power of a sum of terms, as in ``(a + b)**2``."""
_MAX_SHOWN_CODE = 40
"""Largest number of characters of code in an error."""
_PRODUCTS = {"*": "crossed", "/": "crossed", "%in%": "crossed", ":": "product", "in": "crossed"}
"""Operators that multiply terms. The product of a and b is a:b; crossed, they are a, b and a:b."""

_CONSTANT_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: math.pow,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
"""Function for each operator of Python that may stand between two constants."""

_NUMPY_FUNCTIONS = frozenset({"clip", "round", "where"})
"""Functions of NumPy that are allowed in addition to its universal functions."""
_ARITHMETIC_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    *(ast.Name, ast.Load, ast.Tuple, ast.List, ast.keyword),
)
"""Parts of code that a formula may contain anywhere."""
_CODE_HINT = (
    "use arithmetic, comparisons, formulaic's transforms (I, C, log, poly, bs, scale, …) and "
    "NumPy's elementwise functions (np.log1p); compute anything else as a column first"
)
_SIZE_HINT = (
    "use numbers up to 2**63 and transforms with at most 1000 columns; compare texts, or convert "
    "them to categories with C()"
)


def columns_in(formula: str, texts: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names of the columns in a formula, each once, without evaluating the formula.

    formulaic's own list of columns cuts names at a dot, and lacks the arguments of some transforms
    (``scale``, ``poly``). ``texts`` has the names of the columns with texts.

    Raise `UnusableInput` if the formula contains code that is not allowed, or is too large to be
    computed. The error shows this part of the formula.
    """
    if len(formula) > MAX_FORMULA_LENGTH:
        raise UnusableInput(
            f"the formula has {len(formula)} characters, more than {MAX_FORMULA_LENGTH}",
            hint="give a matrix of covariates instead",
        )
    parser, transforms, code = (
        importlib.import_module(f"formulaic.{name}")
        for name in ("parser", "transforms", "utils.code")
    )
    transform_names = frozenset(transforms.TRANSFORMS)
    columns: list[str] = []
    formula_parser = parser.DefaultFormulaParser()
    terms = term_bound(formula_parser.get_ast(formula))
    if terms > MAX_TERMS:
        raise UnusableInput(
            f"formula '{formula}' multiplies to more than {MAX_TERMS} terms",
            hint="name the interactions that matter, such as age:educ",
        )
    for token in formula_parser.get_tokens(formula):
        if token.kind is token.Kind.NAME:
            columns.append(token.token)
        elif token.kind is token.Kind.PYTHON:
            # formulaic converts names in backquotes to names of Python.
            names: dict[str, str] = {}
            tree = ast.parse(code.sanitize_variable_names(token.token, {}, names), mode="eval")
            for forbidden in _forbidden_nodes(tree, transform_names - {"np"}):
                raise UnusableInput(
                    f"formula '{formula}': {ast.unparse(forbidden)} is code that a formula may not "
                    "contain",
                    hint=_CODE_HINT,
                )
            text_names = {*texts, *(alias for alias, name in names.items() if name in texts)}
            for problem in size_problems(tree, text_names):
                raise UnusableInput(f"formula '{formula}': {problem}", hint=_SIZE_HINT)
            columns += [
                names.get(name, name) for name in _names_in(tree) if name not in transform_names
            ]
    return tuple(dict.fromkeys(columns))


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                yield name
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))]):
                yield name


def _forbidden_nodes(node: ast.AST, transforms: frozenset[str]) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and _is_allowed_function(node.func, transforms):
        children: list[ast.AST] = [*node.args, *node.keywords]
    elif isinstance(node, _ARITHMETIC_NODES):
        children = list(ast.iter_child_nodes(node))
    else:
        children = []
        if not _is_allowed_leaf(node):
            yield node
    for child in children:
        yield from _forbidden_nodes(child, transforms)


def _is_allowed_leaf(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        # formulaic inserts texts into its own code without escaping quotes.
        return not (isinstance(node.value, str) and set(node.value) & set("'\"\\"))
    return _attribute_of("contr", node) is not None


def _is_allowed_function(function: ast.AST, transforms: frozenset[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in transforms
    if _attribute_of("contr", function) is not None:
        return True
    name = _attribute_of("np", function)
    return name is not None and (
        name in _NUMPY_FUNCTIONS or isinstance(getattr(np, name, None), np.ufunc)
    )


def _attribute_of(owner: str, node: ast.AST) -> str | None:
    """Return the name of a public attribute of ``owner``; ``None`` for any other node."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == owner:
            return None if attribute.startswith("_") else attribute
    return None


def size_problems(code: ast.AST, texts: Collection[str]) -> Iterator[str]:
    """Yield a clause about each part of the code that would need too much memory.

    Arithmetic with a column in ``texts`` is refused, because 1000 * text repeats the text.
    """
    for node in ast.walk(code):
        if isinstance(node, ast.BinOp):
            if any(_may_be_text(side, texts) for side in (node.left, node.right)):
                yield f"{_short_code(node)} computes with text"
            elif _has_no_column(node) and _constant_value(node) is None:
                yield f"{_short_code(node)} is not arithmetic, or is larger than 2**63"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _transform_problems(node, node.func.id)
        elif _is_numpy_call(node) and any(_may_be_text(child, texts) for child in node.args):
            yield f"{_short_code(node)} computes with text"


def term_bound(tree: Any) -> float:
    """Return an upper bound of the number of terms of a formula, from formulaic's syntax tree."""
    if not hasattr(tree, "operator"):
        return 1.0
    counts = [term_bound(argument) for argument in tree.args]
    symbol = str(tree.operator.symbol)
    if symbol in ("**", "^"):
        power = _small_integer(str(getattr(tree.args[-1], "token", "")))
        return math.inf if power is None or power > _MAX_POWER else _power(counts[0], power)
    product_kind = _PRODUCTS.get(symbol)
    if product_kind is None or len(counts) < 2:
        return sum(counts)
    product = counts[0] * counts[1]
    return product if product_kind == "product" else product + counts[0] + counts[1]


def cell_bound(
    terms: Iterable[Iterable[str]], texts: Collection[str], levels: Callable[[str], int], rows: int
) -> float:
    """Return an upper bound of the number of cells that a formula makes: rows times columns.

    A term is a list of its factors' code. Columns in ``texts`` become categories, and ``levels``
    returns the number of different values of a column.
    """
    bounds = (math.prod(_column_bound(factor, texts, levels) for factor in term) for term in terms)
    return rows * sum(bounds)


def _column_bound(factor: str, texts: Collection[str], levels: Callable[[str], int]) -> float:
    """Return an upper bound of the number of columns of a factor."""
    if factor in texts:
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
                return max([1.0, *(_constant_value(size) or 1.0 for size in _size_arguments(node))])
    return 1


def _transform_problems(call: ast.Call, name: str) -> Iterator[str]:
    """Yield a clause about each argument of the transform ``name`` that makes too many columns."""
    if name not in _SIZED_TRANSFORMS:
        return
    for size in _size_arguments(call):
        number = _constant_value(size)
        if number is None or not 0 <= number <= MAX_COLUMNS_PER_FACTOR:
            yield (
                f"{_short_code(size)} in {_short_code(call)} is not a number up to "
                f"{MAX_COLUMNS_PER_FACTOR}"
            )


def _size_arguments(call: ast.Call) -> Iterator[ast.AST]:
    """Yield the arguments of a transform that may be a number of columns or rows."""
    sizes = [value for value in call.args[1:] if not isinstance(value, (ast.List, ast.Tuple))]
    sizes += [keyword.value for keyword in call.keywords if keyword.arg in _SIZE_ARGUMENTS]
    for size in sizes:
        # None, True, False or a text is not a number.
        if not (isinstance(size, ast.Constant) and isinstance(size.value, bool | str | None)):
            yield size


def _may_be_text(node: ast.AST, texts: Collection[str]) -> bool:
    """Return whether a value may be a text or a list. Multiplication repeats these."""
    match node:
        case ast.Constant(value=str() | bytes()) | ast.List() | ast.Tuple():
            return True
        case ast.Name(id=name) | ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=name)]):
            return name in texts
        case ast.Compare():
            return False
    children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return any(_may_be_text(child, texts) for child in children)


def _is_numpy_call(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node calls a NumPy function other than ``where``, which only selects."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name)):
            return name != "where"
    return False


def _has_no_column(node: ast.AST) -> bool:
    return not any(isinstance(child, (ast.Name, ast.Call)) for child in ast.walk(node))


def _constant_value(node: ast.AST) -> float | None:
    """Return the value of arithmetic with constants; ``None`` for other code or large values.

    The value is computed in floats, because Python's integers may have any length.
    """
    match node:
        case ast.Constant(value=float() as value):
            return value
        case ast.Constant(value=int() as integer) if abs(integer) <= _MAX_INTEGER:
            return float(integer)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            inner = _constant_value(operand)
            return -inner if inner is not None and isinstance(sign, ast.USub) else inner
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _CONSTANT_OPERATORS:
            left_value, right_value = _constant_value(left), _constant_value(right)
            if left_value is not None and right_value is not None:
                with contextlib.suppress(ArithmeticError, ValueError):
                    value = _CONSTANT_OPERATORS[type(sign)](left_value, right_value)
                    limit = sys.float_info.max if _has_float(node) else _MAX_INTEGER
                    return value if abs(value) <= limit else None
    return None


def _has_float(node: ast.AST) -> bool:
    constants = (child for child in ast.walk(node) if isinstance(child, ast.Constant))
    return any(isinstance(constant.value, float) for constant in constants)


def _small_integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else None


def _power(count: float, power: int) -> float:
    try:
        return math.pow(count, power)
    except OverflowError:
        return math.inf


def _short_code(node: ast.AST) -> str:
    code = ast.unparse(node)
    return code if len(code) <= _MAX_SHOWN_CODE else f"{code[:_MAX_SHOWN_CODE]}…"
