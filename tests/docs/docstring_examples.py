"""Examples in docstrings: the examples of a package's public names, and their run by doctest."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples_of(module: ModuleType) -> dict[str, doctest.DocTest]:
    """Return the examples of each public name of a module; a name may have none.

    The public names are those of ``__all__``. An example may use the public name itself; it imports
    everything else.
    """
    parser = doctest.DocTestParser()
    tests = {}
    for name in module.__all__:
        value = getattr(module, name)
        # A value that is neither a class nor a function has the docstring of its type.
        is_documented = inspect.isclass(value) or inspect.isroutine(value)
        text = (inspect.getdoc(value) if is_documented else None) or ""
        place = f"{module.__name__}.{name}"
        tests[name] = parser.get_doctest(text, {name: value}, place, None, None)
    return tests


def failure_of(test: doctest.DocTest) -> str:
    """Run the examples of one name, and return the report of doctest; empty if all are right."""
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=report.append)
    return "".join(report)
