"""Check the user's functions and code, and make them ready to send to a fresh process."""

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
from equipoise.model.quantities import counted

CODE_FILE = "<code>"
"""File name of compiled code in tracebacks."""
_FUNCTION_NAME = "_equipoise_function"
_SETUP_NAME = "_equipoise_setup"
_ARGUMENT_NAME = "_equipoise_argument"
"""Names in the timing loop. No name in the user's code is equal to them."""
_LOOP_SOURCE = """
def _equipoise_loop(_equipoise_clock, _equipoise_function, _equipoise_setup):
    _equipoise_calls = yield
    while True:
        _equipoise_begin = _equipoise_clock()
        for _equipoise_call in _equipoise_calls:
            pass
        _equipoise_end = _equipoise_clock()
        _equipoise_calls = yield _equipoise_end - _equipoise_begin
"""
"""Code of the timing loop. It is a generator, so local variables keep their values between batches.
"""
_READ_INSTRUCTIONS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
"""Bytecode instructions that read a variable from outside a function."""
_MODULE_NAME_KEYS = ("__module__", "__name__")
"""Keys of a pickled function whose values are the name of the function's own module."""
_COMPILE_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""Flag with which code may contain ``await`` outside a function."""


class Benchmark(Struct, frozen=True):
    """One function or piece of code, ready to send to a fresh process."""

    name: str
    source: str
    """Readable text of the call, or the code."""
    loop: bytes
    """Marshalled code object of the timing loop, a generator or an async generator."""
    is_async: bool
    """Whether a call must be awaited."""
    modules: tuple[str, ...]
    """Modules that a process imports before it loads the function or code."""
    function: bytes | None = None
    """Pickled function; ``None`` for code."""
    setup_function: bytes | None = None
    """Pickled function that makes the argument of each call."""
    code: bytes | None = None
    """Marshalled code object of the code; ``None`` for a function."""
    setup_code: bytes | None = None
    """Marshalled code object of the setup; ``None`` for a function."""
    variables: bytes | None = None
    """Pickled values of the names that the code uses but does not define."""
    can_make_fresh_data: bool = False
    """Whether a call can get fresh data, by the setup or from ``variables``."""

    @property
    def digest(self) -> str:
        """Digest of the function or code, with its data and its setup."""
        contents = (self.function, self.setup_function, self.code, self.setup_code, self.variables)
        return hashlib.blake2b(repr(contents).encode(), digest_size=16).hexdigest()


def function_benchmarks(
    functions: Sequence[Callable[..., object]],
    setup: Callable[[], object] | None,
    names: Sequence[str] = (),
) -> tuple[Benchmark, ...]:
    """Return the benchmarks of functions.

    ``setup`` makes the argument of each call; without a setup there is no argument. ``names`` are
    by default the functions' own names. Raise `UnusableInput` if a function cannot be sent to
    another process, or calling it does not run its body.
    """
    if setup is not None and not callable(setup):
        raise UnusableInput(
            f"setup is not a function: {setup!r}",
            hint="give a function that returns the argument of each call, such as lambda: data",
        )
    unique_names = _distinct_names(
        names or [_name_of(function) for function in functions], len(functions)
    )
    pickled_setup = None if setup is None else _pickle(setup, "setup")
    return tuple(
        _function_benchmark(function, name, pickled_setup)
        for function, name in zip(functions, unique_names, strict=True)
    )


def code_benchmarks(
    codes: Sequence[str],
    setup: str,
    variables: Mapping[str, object],
    names: Sequence[str] = (),
) -> tuple[Benchmark, ...]:
    """Return the benchmarks of pieces of code, which share the code of a setup.

    ``variables`` has values of names that the code may use; only the used values are sent. Raise
    `UnusableInput` if a piece is empty or is not Python code, or a used value cannot be sent.
    """
    setup_tree = _parse(setup, "setup")
    if setup and not setup_tree.body:
        raise UnusableInput("setup is empty", hint="remove setup=, or write what the code needs")
    trees = [_parse(code, repr(code)) for code in codes]
    for code, tree in zip(codes, trees, strict=True):
        if not tree.body:
            raise UnusableInput(
                f"code {code!r} is empty", hint='give Python code, such as "sorted(x)"'
            )
    unique_names = _distinct_names(names or [" ".join(code.split()) for code in codes], len(codes))
    return tuple(
        _code_benchmark(name, code, tree, setup_tree, variables)
        for name, code, tree in zip(unique_names, codes, trees, strict=True)
    )


def _function_benchmark(
    function: Callable[..., object], name: str, setup: bytes | None
) -> Benchmark:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise lazy_result_error(name, "a generator")
    is_async = inspect.iscoroutinefunction(function)
    argument = "" if setup is None else _ARGUMENT_NAME
    call_line = f"{'await ' if is_async else ''}{_FUNCTION_NAME}({argument})"
    setup_line = "" if setup is None else f"{_ARGUMENT_NAME} = {_SETUP_NAME}()"
    pickled = _pickle(function, name)
    modules = _modules_of(pickled) | (set() if setup is None else _modules_of(setup))
    return Benchmark(
        name=name,
        source=f"{name}({'' if setup is None else 'setup()'})",
        loop=_marshalled_loop(ast.parse(call_line), ast.parse(setup_line), is_async=is_async),
        is_async=is_async,
        modules=_sorted_modules(modules, is_async),
        function=pickled,
        setup_function=setup,
        can_make_fresh_data=setup is not None,
    )


def lazy_result_error(name: str, result: str) -> UnusableInput:
    """Return the error for a function whose call returns a generator or a coroutine."""
    return UnusableInput(
        f"{name} returns {result}: a call does not run the body of the function",
        hint="compare a function that uses the result, such as lambda: list(f()), or an async def",
    )


def _code_benchmark(
    name: str, text: str, tree: ast.Module, setup: ast.Module, variables: Mapping[str, object]
) -> Benchmark:
    code, setup_code = _compile(tree, repr(text)), _compile(setup, "setup")
    is_async = any(
        code_object.co_flags & inspect.CO_COROUTINE for code_object in (code, setup_code)
    )
    used_values = {
        variable: variables[variable]
        for variable in sorted({*_variables_read_by(code), *_variables_read_by(setup_code)})
        if variable in variables
        and not (variable.startswith("__") or _is_builtin(variable, variables[variable]))
    }
    try:
        pickled = _pickle(used_values, name) if used_values else None
    except UnusableInput:
        for variable, value in used_values.items():
            _pickle(value, f"{variable}, which {name} uses,")
        raise
    modules = set() if pickled is None else _modules_of(pickled)
    return Benchmark(
        name=name,
        source=text,
        loop=_marshalled_loop(tree, setup, is_async=is_async),
        is_async=is_async,
        modules=_sorted_modules(modules | _modules_imported_by(setup), is_async),
        code=marshal.dumps(code),
        setup_code=marshal.dumps(setup_code),
        variables=pickled,
        can_make_fresh_data=bool(setup.body or pickled),
    )


def _marshalled_loop(tree: ast.Module, setup: ast.Module, *, is_async: bool) -> bytes:
    """Return the timing loop as marshalled code: `_LOOP_SOURCE` with a setup and its statements."""
    loop = ast.parse(_LOOP_SOURCE)
    function = loop.body[0]
    assert isinstance(function, ast.FunctionDef)
    endless_loop = function.body[1]
    assert isinstance(endless_loop, ast.While)
    loop_of_calls = endless_loop.body[1]
    assert isinstance(loop_of_calls, ast.For)
    loop_of_calls.body = tree.body or [ast.Pass()]
    function.body = [*setup.body, *function.body]
    if is_async:
        fields: dict[str, Any] = {name: getattr(function, name) for name in function._fields}
        loop.body = [ast.AsyncFunctionDef(**fields)]
    compiled = compile(ast.fix_missing_locations(loop), CODE_FILE, "exec")
    code = next(constant for constant in compiled.co_consts if isinstance(constant, types.CodeType))
    return marshal.dumps(code)


def _parse(text: str, description: str) -> ast.Module:
    if not isinstance(text, str):
        raise UnusableInput(
            f"{description} is not a string of Python code",
            hint="put the code in quotes, or compare functions with equipoise.compare(f, g)",
        )
    try:
        return ast.parse(text, CODE_FILE)
    except (SyntaxError, ValueError) as error:
        raise _code_error(description, error) from None


def _compile(tree: ast.Module, description: str) -> types.CodeType:
    try:
        # The code must be valid in a module and in the timing loop, so both are compiled.
        _marshalled_loop(tree, ast.Module([], []), is_async=True)
        code: types.CodeType = compile(tree, CODE_FILE, "exec", _COMPILE_FLAGS)
        return code
    except (SyntaxError, ValueError) as error:
        raise _code_error(description, error) from None


def _code_error(description: str, error: Exception) -> UnusableInput:
    return UnusableInput(
        f"{description} is not code that can be timed: {error}",
        hint="give Python statements, as for timeit, without return",
    )


def _is_builtin(name: str, value: object) -> bool:
    builtin_values = vars(builtins)
    return name in builtin_values and value is builtin_values[name]


def _variables_read_by(code: types.CodeType) -> Iterator[str]:
    """Yield the names of the global variables and builtins that code may read."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READ_INSTRUCTIONS:
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _variables_read_by(inner)


def _modules_imported_by(tree: ast.Module) -> set[str]:
    modules = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    return modules


def _pickle(value: object, name: str) -> bytes:
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise UnusableInput(
            f"{name} cannot be sent to a fresh process: {error}",
            hint="create files, locks and connections inside the function, or in setup=: they "
            "belong to one process",
        ) from None


def _modules_of(pickled: bytes) -> set[str]:
    """Return the modules that a pickle needs.

    A function's own module is not included, because the pickle contains the function. A name in the
    code of a function counts if an imported module has this name.
    """
    modules: set[str] = set()
    texts: set[str] = set()
    stack_texts: list[str | None] = [None, None]
    memo_texts: list[str | None] = []
    for operation, argument, _ in pickletools.genops(pickled):
        match operation.name:
            case "MEMOIZE":
                memo_texts.append(stack_texts[-1])
                continue
            case "STACK_GLOBAL":
                modules.add(str(stack_texts[-2]))
                argument = None
            case "BINGET" | "LONG_BINGET":
                argument = memo_texts[int(str(argument))]
        stack_texts.append(argument if isinstance(argument, str) else None)
        if isinstance(argument, str) and stack_texts[-2] not in _MODULE_NAME_KEYS:
            texts.add(argument)
    modules |= texts & sys.modules.keys()
    return modules - {"__main__", "builtins"}


def _sorted_modules(modules: set[str], is_async: bool) -> tuple[str, ...]:
    return tuple(sorted(modules | ({"asyncio"} if is_async else set())))


def _name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None) or getattr(
        getattr(function, "func", None), "__qualname__", None
    )
    return str(name or type(function).__qualname__).rpartition("<locals>.")[2]


def _distinct_names(names: Sequence[str], count: int) -> list[str]:
    """Return the names; a repeated name gets a number, such as ``f (2)``."""
    if len(names) != count:
        raise UnusableInput(
            f"names= has {counted(len(names), 'name')} for {count} functions",
            hint="give one name for each function",
        )
    unique_names: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        unique_names.append(
            name
            if name not in unique_names
            else next(
                candidate
                for candidate in numbered
                if candidate not in unique_names and candidate not in names
            )
        )
    return unique_names
