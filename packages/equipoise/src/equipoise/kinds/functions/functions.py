"""Functions and code of the user, checked and made ready to send to a fresh process."""

from __future__ import annotations

import ast
import builtins
import dis
import hashlib
import inspect
import itertools
import marshal
import pickletools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import cloudpickle
from msgspec import Struct

from equipoise.model.errors import UnusableInput

CODE_FILE = "<code>"
"""File name of compiled code, in tracebacks."""
_FUNCTION = "_equipoise_function"
_SETUP = "_equipoise_setup"
_ARGUMENT = "_equipoise_argument"
_LOOP = """
def _equipoise_loop(_equipoise_clock, _equipoise_function, _equipoise_setup):
    _equipoise_calls = yield
    while True:
        _equipoise_begin = _equipoise_clock()
        for _equipoise_call in _equipoise_calls:
            pass
        _equipoise_end = _equipoise_clock()
        _equipoise_calls = yield _equipoise_end - _equipoise_begin
"""
"""Code of the timing loop. It is a generator, so that the names of the setup are local variables of
the loop, as in `timeit`, and keep their values between batches."""
_READ_INSTRUCTIONS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
"""Instructions that read a variable from outside a function."""
_OWN_MODULE = ("__module__", "__name__")
"""Keys of a pickled function whose values are names of its module."""
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Side(Struct, frozen=True):
    """One function or piece of code, ready to send."""

    name: str
    source: str
    """Readable text of the call."""
    loop: bytes
    """Code object of the timing loop, marshalled: a generator, or an async one."""
    awaits: bool
    modules: tuple[str, ...]
    """Modules to import before it is loaded."""
    function: bytes | None = None
    """Pickled function; ``None`` for code."""
    setup_function: bytes | None = None
    """Pickled function that makes the argument of each call."""
    code: bytes | None = None
    """Code object of the code, marshalled; ``None`` for a function."""
    setup_code: bytes | None = None
    names: bytes | None = None
    """Pickled values of the names that the code uses but does not define."""
    can_renew: bool = False
    """Whether the data of a call can be made again, by the setup or from ``names``."""

    @property
    def digest(self) -> str:
        """Digest of the function or code, with its data and its setup."""
        parts = (self.function, self.setup_function, self.code, self.setup_code, self.names)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def function_sides(
    functions: Sequence[Callable[..., object]],
    setup: Callable[[], object] | None,
    names: Sequence[str] = (),
) -> tuple[Side, ...]:
    """Return functions ready to send.

    ``setup`` makes the argument of each call; without it there is no argument. ``names`` are by
    default those of the functions. Raise `UnusableInput` if a function cannot be sent to another
    process, or calling it runs nothing.
    """
    if setup is not None and not callable(setup):
        raise UnusableInput(
            f"setup is not a function: {setup!r}",
            hint="give a function that returns the argument of each call, such as lambda: data",
        )
    distinct_names = _distinct(
        names or [_name_of(function) for function in functions], len(functions)
    )
    pickled_setup = None if setup is None else _pickled(setup, "setup")
    return tuple(
        _function_side(function, name, pickled_setup)
        for function, name in zip(functions, distinct_names, strict=True)
    )


def code_sides(
    codes: Sequence[str],
    setup: str,
    available: Mapping[str, object],
    names: Sequence[str] = (),
) -> tuple[Side, ...]:
    """Return pieces of code ready to send, each with its own setup.

    ``available`` has values of names that the code may use; only used ones are sent. Raise
    `UnusableInput` if a piece is empty or is not Python code, or a used value cannot be sent.
    """
    setup_tree = _parsed(setup, "setup")
    if setup and not setup_tree.body:
        raise UnusableInput("setup is empty", hint="leave it out, or write what the code needs")
    trees = [_parsed(code, repr(code)) for code in codes]
    for code, tree in zip(codes, trees, strict=True):
        if not tree.body:
            raise UnusableInput(
                f"code {code!r} is empty", hint='give Python code, such as "sorted(x)"'
            )
    distinct_names = _distinct(names or [" ".join(code.split()) for code in codes], len(codes))
    return tuple(
        _code_side(name, code, tree, setup_tree, available)
        for name, code, tree in zip(distinct_names, codes, trees, strict=True)
    )


def _function_side(function: Callable[..., object], name: str, setup: bytes | None) -> Side:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise runs_nothing(name, "a generator")
    awaits = inspect.iscoroutinefunction(function)
    argument = "" if setup is None else _ARGUMENT
    call = f"{'await ' if awaits else ''}{_FUNCTION}({argument})"
    prepare = "" if setup is None else f"{_ARGUMENT} = {_SETUP}()"
    pickled = _pickled(function, name)
    modules = _modules_of(pickled) | (set() if setup is None else _modules_of(setup))
    return Side(
        name=name,
        source=f"{name}({'' if setup is None else 'setup()'})",
        loop=_loop(ast.parse(call), ast.parse(prepare), awaits=awaits),
        awaits=awaits,
        modules=_in_order(modules, awaits),
        function=pickled,
        setup_function=setup,
        can_renew=setup is not None,
    )


def runs_nothing(name: str, returned: str) -> UnusableInput:
    """Return the error for a function whose call only returns something lazy."""
    return UnusableInput(
        f"{name} returns {returned}: a call does not run its body",
        hint="compare a function that consumes it, such as lambda: list(f()), or an async def",
    )


def _code_side(
    name: str, text: str, tree: ast.Module, setup: ast.Module, available: Mapping[str, object]
) -> Side:
    code, setup_code = _compiled(tree, repr(text)), _compiled(setup, "setup")
    awaits = any(each.co_flags & inspect.CO_COROUTINE for each in (code, setup_code))
    used = {
        variable: available[variable]
        for variable in sorted({*_names_in(code), *_names_in(setup_code)})
        if variable in available
        and not (variable.startswith("__") or _is_builtin(variable, available[variable]))
    }
    try:
        pickled = _pickled(used, name) if used else None
    except UnusableInput:
        for variable, value in used.items():
            _pickled(value, f"{variable}, which {name} uses,")
        raise
    modules = set() if pickled is None else _modules_of(pickled)
    return Side(
        name=name,
        source=text,
        loop=_loop(tree, setup, awaits=awaits),
        awaits=awaits,
        modules=_in_order(modules | _imported_by(setup), awaits),
        code=marshal.dumps(code),
        setup_code=marshal.dumps(setup_code),
        names=pickled,
        can_renew=bool(setup.body or pickled),
    )


def _loop(tree: ast.Module, setup: ast.Module, *, awaits: bool) -> bytes:
    """Return the marshalled code of a timing loop around some statements."""
    loop = ast.parse(_LOOP)
    function = loop.body[0]
    assert isinstance(function, ast.FunctionDef)
    endless_loop = function.body[1]
    assert isinstance(endless_loop, ast.While)
    calls = endless_loop.body[1]
    assert isinstance(calls, ast.For)
    calls.body = tree.body or [ast.Pass()]
    function.body = [*setup.body, *function.body]
    if awaits:
        kinds: dict[str, Any] = {name: getattr(function, name) for name in function._fields}
        loop.body = [ast.AsyncFunctionDef(**kinds)]
    compiled = compile(ast.fix_missing_locations(loop), CODE_FILE, "exec")
    code = next(constant for constant in compiled.co_consts if isinstance(constant, types.CodeType))
    return marshal.dumps(code)


def _parsed(text: str, place: str) -> ast.Module:
    if not isinstance(text, str):
        raise UnusableInput(
            f"{place} is not a text",
            hint="eq.compare(f, g) compares functions, eq.compare_code compares code",
        )
    try:
        return ast.parse(text, CODE_FILE)
    except (SyntaxError, ValueError) as error:
        raise _not_timeable(place, error) from None


def _compiled(tree: ast.Module, place: str) -> types.CodeType:
    try:
        # Some statements are only allowed in a module, so check the code as a loop body, too.
        _loop(tree, ast.Module([], []), awaits=True)
        code: types.CodeType = compile(tree, CODE_FILE, "exec", _FLAGS)
        return code
    except (SyntaxError, ValueError) as error:
        raise _not_timeable(place, error) from None


def _not_timeable(place: str, error: Exception) -> UnusableInput:
    return UnusableInput(
        f"{place} is not code that can be timed: {error}",
        hint="give statements as timeit takes them, without return",
    )


def _is_builtin(name: str, value: object) -> bool:
    """Return whether the value of a name is the builtin of that name."""
    builtin_values = vars(builtins)
    return name in builtin_values and value is builtin_values[name]


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the variables that code may read from outside, without attributes."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READ_INSTRUCTIONS:
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names_in(inner)


def _imported_by(tree: ast.Module) -> set[str]:
    """Return the modules that statements import at the outermost level."""
    modules = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    return modules


def _pickled(value: object, name: str) -> bytes:
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise UnusableInput(
            f"{name} cannot be sent to a fresh process: {error}",
            hint="make what it needs inside the function, or in setup: files, locks and "
            "connections belong to one process",
        ) from None


def _modules_of(pickled: bytes) -> set[str]:
    """Return the modules that a pickle names, so that they are imported before the clock runs.

    The module in which a function was defined is not among them: the pickle contains the function.
    A name in the code of a function may be that of a module that it imports.
    """
    modules: set[str] = set()
    texts: set[str] = set()
    pushed: list[str | None] = [None, None]
    memo: list[str | None] = []
    for operation, argument, _ in pickletools.genops(pickled):
        match operation.name:
            case "MEMOIZE":
                memo.append(pushed[-1])
                continue
            case "STACK_GLOBAL":
                modules.add(str(pushed[-2]))
                argument = None
            case "BINGET" | "LONG_BINGET":
                argument = memo[int(str(argument))]
        pushed.append(argument if isinstance(argument, str) else None)
        if isinstance(argument, str) and pushed[-2] not in _OWN_MODULE:
            texts.add(argument)
    modules |= texts & sys.modules.keys()
    return modules - {"__main__", "builtins"}


def _in_order(modules: set[str], awaits: bool) -> tuple[str, ...]:
    return tuple(sorted(modules | ({"asyncio"} if awaits else set())))


def _name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None) or getattr(
        getattr(function, "func", None), "__qualname__", None
    )
    return str(name or type(function).__qualname__).rpartition("<locals>.")[2]


def _distinct(names: Sequence[str], count: int) -> list[str]:
    if len(names) != count:
        raise UnusableInput(
            f"there are {len(names)} names for {count} functions", hint="give each one a name"
        )
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        distinct.append(
            name
            if name not in distinct
            else next(
                candidate
                for candidate in numbered
                if candidate not in distinct and candidate not in names
            )
        )
    return distinct
